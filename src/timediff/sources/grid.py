"""Measurements in time → the steps of a grid, as Ibis expressions.

Step k is [k, k + 1) widths from the origin, but for the rules `nearest` and `nearest_row`: there it is what lies within
half a width of k widths.
"""

from collections.abc import Sequence
from typing import Any, Literal, get_args

import ibis

from timediff.errors import TimeDiffError

Rule = Literal["last", "first", "mean", "median", "sum", "nearest", "nearest_row", "at"]
NEAREST = ("nearest", "nearest_row")
LONGEST_STEP = 3660 * 86400  # seconds
UNITS = {"s": 1, "min": 60, "h": 3600, "d": 86400}


def step_seconds(step: str) -> int:
    """Seconds of a duration such as "1h", "30min" or "2d"."""
    number = step.rstrip("abcdefghijklmnopqrstuvwxyz ")
    try:
        seconds = round(float(number or 1) * UNITS[step[len(number) :].strip()])
    except (KeyError, ValueError, OverflowError) as error:
        raise TimeDiffError(f"step is {step[:40]!r}; expected a duration in s, min, h or d, such as '1h'") from error
    if seconds < 1:
        raise TimeDiffError(f"step is {step!r}; expected at least one second")
    if seconds > LONGEST_STEP:
        raise TimeDiffError(f"step is {step[:40]!r}; expected at most ten years")
    return seconds


def step_problems(step: str) -> list[str]:
    """What is wrong with a step."""
    try:
        step_seconds(step)
    except TimeDiffError as error:
        return [str(error)]
    return []


def rule_problems(what: str, rule: str | None) -> list[str]:
    """What is wrong with the rule of one variable; None is the common one."""
    if rule in (None, *get_args(Rule)):
        return []
    return [f"{what}: rule is {rule!r}; expected one of {', '.join(get_args(Rule))}"]


def seconds(time: Any) -> Any:
    """Seconds since 1970 of a timestamp; 64 bits, since the databases' dates lie beyond 2038."""
    return time.epoch_seconds().cast("int64")


def average_ties(measured: Any, keys: Sequence[str], values: Sequence[str], time: str, rule: Rule) -> Any:
    """Measurements of equal times as one, their mean; a sum counts each of them."""
    if rule == "sum":
        return measured
    return measured.group_by([*keys, time]).agg(**{v: measured[v].mean() for v in values})


def on_clock(moment: Any, width: int) -> Any:
    """The first whole step of the clock at or after a moment: the next full hour. Both in seconds since 1970."""
    return ((moment + (width - 1)) // width * width).cast("int64")


def to_steps(
    measured: Any, keys: Sequence[str], values: Sequence[str], time: str, width: int, steps: int, rule: Rule
) -> Any:
    """One row a step that has a value: `keys`, step, and the value of each column of `values`.

    `measured` has a row a measurement, with its `time` since the origin; the first key is the stay. Equal times are
    averaged first.
    """
    inside = _inside(measured, time, width, steps, rule)
    return untied_to_steps(average_ties(inside, keys, values, time, rule), keys, values, time, width, steps, rule)


def untied_to_steps(
    measured: Any, keys: Sequence[str], values: Sequence[str], time: str, width: int, steps: int, rule: Rule
) -> Any:
    """The same of measurements whose equal times are averaged already."""
    inside = _inside(measured, time, width, steps, rule)
    if rule == "at":  # only measurements exactly on the grid, as the paper samples
        inside = inside.filter(inside[time] % width == 0)
    if len(values) == 1:  # then a row without a value says nothing
        inside = inside.filter(inside[values[0]].notnull())
    if rule in NEAREST:
        return _nearest(inside, keys, values, time, width, rule)
    stepped = inside.mutate(step=(inside[time] // width).cast("int64"))
    return stepped.group_by([*keys, "step"]).agg(
        **{v: _aggregate(stepped, v, time, rule, sparse=len(values) > 1) for v in values}
    )


def _inside(measured: Any, time: str, width: int, steps: int, rule: Rule) -> Any:
    """What the grid covers."""
    if rule in NEAREST:  # twice the time, so that half a width is a whole number
        late = 2 * measured[time] + width
        return measured.filter(late >= 0, late < 2 * width * steps)
    return measured.filter(measured[time] >= 0, measured[time] < width * steps)


def _nearest(inside: Any, keys: Sequence[str], values: Sequence[str], time: str, width: int, rule: Rule) -> Any:
    """The measurement, or the stay's row of measurements, that is nearest to each point; of two, the earlier one."""
    # What lies halfway between two points is nearest to the later one, as a rounded time is.
    stepped = inside.mutate(step=((2 * inside[time] + width) // (2 * width)).cast("int64"))
    off = stepped[time] - stepped["step"] * width
    stepped = stepped.mutate(far=2 * off.abs() + ibis.ifelse(off > 0, 1, 0))  # no two times have the same
    if rule == "nearest":
        sparse = len(values) > 1
        found = {v: stepped[v].argmin(stepped.far, where=stepped[v].notnull() if sparse else None) for v in values}
        return stepped.group_by([*keys, "step"]).agg(**found)
    place = [keys[0], "step"]
    nearest = stepped.group_by(place).agg(least=stepped.far.min())
    rows = stepped.join(nearest, place)
    return rows.filter(rows.far == rows.least).select(*keys, "step", *values)


def _aggregate(table: Any, value: str, time: str, rule: Rule, sparse: bool) -> Any:
    column = table[value]
    there = column.notnull() if sparse else None
    if rule in ("last", "at"):
        return column.argmax(table[time], where=there)
    if rule == "first":
        return column.argmin(table[time], where=there)
    return {"mean": column.mean, "median": column.median, "sum": column.sum}[rule]()
