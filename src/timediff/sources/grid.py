"""From measurements in time to cells of a grid, as Ibis expressions. Cell k is [k, k + 1) steps from the origin."""

from collections.abc import Sequence
from typing import Any, Literal

Rule = Literal["last", "first", "mean", "median", "sum", "at"]


def seconds(time: Any) -> Any:
    """Seconds since 1970 of a timestamp; 64 bits, since the databases' dates lie beyond 2038."""
    return time.epoch_seconds().cast("int64")


def averaged(measured: Any, keys: Sequence[str], values: Sequence[str], time: str, rule: Rule) -> Any:
    """Measurements of equal times as one, their mean; a sum counts each of them."""
    if rule == "sum":
        return measured
    return measured.group_by([*keys, time]).agg(**{v: measured[v].mean() for v in values})


def cells(
    measured: Any, keys: Sequence[str], values: Sequence[str], time: str, width: int, steps: int, rule: Rule
) -> Any:
    """One row a cell: `keys`, step, and the value of each column of `values`.

    `measured` has a row a measurement, with its `time` since the origin. Equal times are averaged first.
    """
    inside = measured.filter(measured[time] >= 0, measured[time] < width * steps)
    return placed(averaged(inside, keys, values, time, rule), keys, values, time, width, steps, rule)


def placed(
    measured: Any, keys: Sequence[str], values: Sequence[str], time: str, width: int, steps: int, rule: Rule
) -> Any:
    """The same of measurements whose equal times are averaged already."""
    inside = measured.filter(measured[time] >= 0, measured[time] < width * steps)
    if rule == "at":  # only measurements exactly on the grid, as the paper samples
        inside = inside.filter(inside[time] % width == 0)
    if len(values) == 1:  # then a row without a value says nothing
        inside = inside.filter(inside[values[0]].notnull())
    stepped = inside.mutate(step=(inside[time] // width).cast("int64"))
    return stepped.group_by([*keys, "step"]).agg(
        **{v: _one(stepped, v, time, rule, sparse=len(values) > 1) for v in values}
    )


def _one(table: Any, value: str, time: str, rule: Rule, sparse: bool) -> Any:
    column = table[value]
    there = column.notnull() if sparse else None
    if rule in ("last", "at"):
        return column.argmax(table[time], where=there)
    if rule == "first":
        return column.argmin(table[time], where=there)
    return {"mean": column.mean, "median": column.median, "sum": column.sum}[rule]()
