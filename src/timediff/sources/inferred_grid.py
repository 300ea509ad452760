"""A grid that fits the times of a table: its step from the gaps between measurements, its length from the stays."""

from collections.abc import Mapping
from typing import Any

import ibis
import numpy as np

from timediff.data.schema import MOST_STEPS
from timediff.errors import Problems
from timediff.sources.extraction import columns
from timediff.sources.grid import step_seconds
from timediff.sources.table_inputs import Opened
from timediff.sources.table_reading import identity, time_of
from timediff.sources.table_settings import TICKS, TableSettings

NICE = (
    "1s", "5s", "10s", "30s", "1min", "2min", "5min", "10min", "15min", "30min", "1h", "2h", "4h", "6h", "8h", "12h",
    "1d", "2d", "7d",
)  # fmt: skip
REACHED = 0.99  # of the measurements lie on the grid
NEAR = 0.95  # of a step is as good as the step
ALL = 1.25  # times as many steps as those, if that is all there are
LONG = 1000  # steps


def grid_of(main: Opened, settings: TableSettings, chosen: Mapping[str, Any]) -> tuple[str, int, list[str]]:
    """Step, number of steps, and what to say of them."""
    time = time_of(main.table[settings.time], settings.time, settings, settings.time in main.durations)
    stay = identity(main.table[settings.stay], settings, settings.stay)
    times = main.table.select(stay=stay.value, at=time.value)
    times = times.filter(times["stay"].notnull(), times["at"].notnull()).distinct()
    step = chosen.get("step") or _step(times, settings)
    if (steps := chosen.get("steps")) is not None:
        return step, steps, []
    width = step_seconds(step) * TICKS
    if settings.origin != "zero":
        first = ibis.window(group_by="stay")
        times = times.mutate(at=times["at"] - times["at"].min().over(first))
    times = times.filter(times["at"] >= 0)
    stepped = times.mutate(step=times["at"] // width).group_by("step")
    counted = columns(stepped.agg(n=lambda t: t.count()).order_by("step"))
    if len(counted["step"]) == 0:
        what = f"column {settings.time!r} has no time that could be read ({settings.time_unit}); set time_unit"
        raise Problems(main.name, [what])
    inside = np.cumsum(counted["n"]) / counted["n"].sum()
    most, longest = int(counted["step"][np.argmax(inside >= REACHED)]) + 1, int(counted["step"][-1]) + 1
    steps = min(longest if longest <= ALL * most else most, MOST_STEPS)
    notes = []
    if longest > steps:
        notes.append(f"{steps:,} steps of {step} hold 99 % of the times; the longest stay has {longest:,}")
    if steps > LONG:
        notes.append(f"{steps:,} steps are many for a model; set fewer steps with cut = true, or a longer step")
    return step, steps, notes


def _step(times: Any, settings: TableSettings) -> str:
    """The shortest usual step that is not shorter than half of the gaps between times."""
    if settings.time_unit == "step":
        return settings.step
    before = ibis.window(group_by="stay", order_by="at")
    gaps = times.mutate(gap=times["at"] - times["at"].lag().over(before))
    counted = columns(gaps.filter(gaps["gap"].notnull()).group_by("gap").agg(n=lambda t: t.count()).order_by("gap"))
    if len(counted["gap"]) == 0:
        return settings.step
    reached = np.cumsum(counted["n"]) / counted["n"].sum()
    median = float(counted["gap"][np.searchsorted(reached, 0.5)])
    return next((step for step in NICE if step_seconds(step) * TICKS >= NEAR * median), NICE[-1])
