"""What a table's measurements are counted for: what is lost of them, and what a user should look at."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from timediff.data.cohort import Cohort
from timediff.sources.extraction import many
from timediff.sources.losses import AFTER_GRID, Losses, counted, duplicates
from timediff.sources.table_reading import Reading
from timediff.sources.table_settings import GRID, TableFeature, TableSettings
from timediff.sources.units import suspicions

FEW_STRANGE = 3  # values that look like another unit are not worth a word
NO_END = 0.1  # of the stays without a measurement in the last tenth of the grid are


def rule_of(entry: TableFeature, settings: TableSettings) -> str:
    return "class" if entry.feature.discrete else entry.rule or settings.rule


def count_losses(
    settings: TableSettings,
    main: Any,
    time: Reading,
    readings: Mapping[str, Reading],
    measured: Any,
    timed: Any,
) -> Losses:
    """`measured` are rows with a time and a value, `timed` those of stays with a start, and the reason of each loss."""
    place = {name: f"value_{i}" for i, name in enumerate(readings)}
    rules = {entry.name: rule_of(entry, settings) for entry in settings.feature}
    found = counted(main, {name: reading.there for name, reading in readings.items()})
    lost = {name: dict[str, int]() for name in readings}

    def note(reason: str, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            if count:
                lost[name][reason] = count

    note("unparsed", counted(main, {name: reading.wrong & reading.there for name, reading in readings.items()}))
    limited = {n: r.parsed.notnull() & r.value.isnull() for n, r in readings.items() if r.parsed is not None}
    note("outside the limits", counted(main, limited))
    note("without a time", counted(main, {n: r.value.notnull() & time.value.isnull() for n, r in readings.items()}))
    before = counted(measured, {name: measured[place[name]].notnull() for name in readings})
    after = counted(timed, {name: timed[place[name]].notnull() for name in readings})
    note("of a stay without a start or an end", {name: before[name] - after[name] for name in readings})
    for reason in ("before the start", AFTER_GRID, "after the end of the stay"):
        there = timed["reason"] == reason
        note(reason, counted(timed, {name: timed[place[name]].notnull() & there for name in readings}))
    inside = timed.filter(timed["reason"] == "")
    at = [name for name in readings if rules[name] == "at"]
    between = inside["time"] % settings.width != 0
    note("off the grid", counted(inside, {name: inside[place[name]].notnull() & between for name in at}))
    for exact in (True, False):
        names = [name for name in readings if rules[name] != "sum" and (rules[name] == "at") == exact]
        rows = inside.filter(~between) if exact else inside
        twice = duplicates(rows, ["stay_id", "time"], [place[name] for name in names])
        note("duplicates", {name: twice[place[name]] for name in names})
    return Losses(found, lost, (AFTER_GRID,) if settings.cut else ())


def strange_units(main: Any, settings: TableSettings, readings: Mapping[str, Reading]) -> list[str]:
    """Features some of whose values look like another unit than theirs."""
    suspected = {
        f"{entry.name}\0{one.other}": (entry, one)
        for entry in settings.feature
        if entry.name in readings and readings[entry.name].parsed is not None
        for one in suspicions(entry.name, entry.unit)
    }
    strange = {}
    for key, (entry, one) in suspected.items():
        value = readings[entry.name].parsed
        outside = (value < one.low) | (value > one.high)
        strange[key] = outside & (value >= one.other_low) & (value <= one.other_high)
    found = []
    for key, count in counted(main, strange).items():
        entry, one = suspected[key]
        if count >= FEW_STRANGE:
            stated = entry.unit or f"no unit stated, taken for {one.unit}"
            found.append(
                f"feature {entry.name!r} ({stated}): {many(count, 'value')} that would be likelier in {one.other}; "
                "name the column of units in unit_column, or say recorded = the unit that all are in"
            )
    return found


def without_end(cohort: Cohort, settings: TableSettings) -> list[str]:
    """Says when stays seem to end before the grid does, and nobody said that they end."""
    if settings.length != GRID:
        return []
    late = max(1, settings.steps // 10)
    early = sum(np.isnan(grid[:, -late:]).all(axis=1).astype(int) for grid in cohort.series.values())
    quiet = int((np.asarray(early) == len(cohort.series)).sum())
    if quiet <= NO_END * len(cohort):
        return []
    return [
        f"{many(quiet, 'stay')} of {len(cohort):,} have no measurement in the grid's last {many(late, 'step')}, and "
        'count as missing there. If they were discharged, set length = the column that says when, or "last"'
    ]
