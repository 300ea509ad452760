"""From measurements in time to cells of a grid, as Ibis expressions. Cell k is [k, k + 1) steps from the origin."""

from collections.abc import Sequence
from typing import Any, Literal

Rule = Literal["last", "first", "mean", "median", "sum", "at"]


def seconds(time: Any) -> Any:
    """Seconds since 1970 of a timestamp; 64 bits, since the databases' dates lie beyond 2038."""
    return time.epoch_seconds().cast("int64")


def cells(
    measured: Any, keys: Sequence[str], values: Sequence[str], time: str, width: int, steps: int, rule: Rule
) -> Any:
    """One row a cell: `keys`, step, and the value of each column of `values`.

    `measured` has a row a measurement, with its `time` since the origin. Equal times are averaged first.
    """
    inside = measured.filter(measured[time] >= 0, measured[time] < width * steps)
    if rule == "at":  # only measurements exactly on the grid, as the paper samples
        inside = inside.filter(inside[time] % width == 0)
    counted = inside
    if rule != "sum":
        counted = inside.group_by([*keys, time]).agg(**{v: inside[v].mean() for v in values})
    counted = counted.mutate(step=(counted[time] // width).cast("int64"))
    return counted.group_by([*keys, "step"]).agg(**{v: _one(counted, v, time, rule) for v in values})


def _one(table: Any, value: str, time: str, rule: Rule) -> Any:
    column = table[value]
    if rule in ("last", "at"):
        return column.argmax(table[time], where=column.notnull())
    if rule == "first":
        return column.argmin(table[time], where=column.notnull())
    return {"mean": column.mean, "median": column.median, "sum": column.sum}[rule]()
