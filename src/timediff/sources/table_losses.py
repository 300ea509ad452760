"""What a table's measurements are counted for: what is lost of them, and what a user should look at."""

from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import numpy as np

from timediff.data.cohort import Cohort
from timediff.sources.extraction import many
from timediff.sources.losses import AFTER_GRID, LossCounts, counted, counts_by, duplicates
from timediff.sources.table_reading import Reading
from timediff.sources.table_settings import GRID, TableFeature, TableSettings
from timediff.sources.units import suspicions

NOTHING, READ, UNPARSED, LIMITED = range(4)
FEW_STRANGE, RARE_STRANGE = 3, 0.005  # values that look like another unit, and of all, are not worth a word
NO_END = 0.1  # of the stays without a measurement in the last tenth of the grid are


def rule_of(entry: TableFeature, settings: TableSettings) -> str:
    return "class" if entry.feature.discrete else entry.rule or settings.rule


def fate(reading: Reading) -> Any:
    """What becomes of each value as it is read: NOTHING there, READ, UNPARSED, or LIMITED."""
    limited = ibis.literal(False) if reading.parsed is None else reading.parsed.notnull()
    return ibis.cases(
        (~reading.there, NOTHING), (reading.wrong, UNPARSED), (reading.value.notnull(), READ), (limited, LIMITED),
        else_=NOTHING,
    ).cast("int8")  # fmt: skip


def count_losses(settings: TableSettings, names: Sequence[str], read: Any, timed: Any) -> LossCounts:
    """`read` has a row a row of the table, with the fate of each value; `timed` the rows of stays with a start."""
    value, end = {n: f"value_{i}" for i, n in enumerate(names)}, {n: f"fate_{i}" for i, n in enumerate(names)}
    rules = {entry.name: rule_of(entry, settings) for entry in settings.feature}
    lost = {name: dict[str, int]() for name in names}

    def note(reason: str, counts: Mapping[str, int]) -> None:
        for name, count in counts.items():
            if count:
                lost[name][reason] = count

    def of_fate(which: int) -> dict[str, int]:
        return counted(read, {name: read[end[name]] == which for name in names})

    unparsed, limited, good = of_fate(UNPARSED), of_fate(LIMITED), of_fate(READ)
    untimed = counted(read, {name: (read[end[name]] == READ) & read["at"].isnull() for name in names})
    by_reason = counts_by(timed, "reason", list(value.values()))
    timed_at_all = {name: sum(counts[value[name]] for counts in by_reason.values()) for name in names}
    note("unparsed", unparsed)
    note("outside the limits", limited)
    note("without a time", untimed)
    note(
        "of a stay without a start or an end",
        {name: good[name] - untimed[name] - timed_at_all[name] for name in names},
    )
    for reason in ("before the start", AFTER_GRID, "after the end of the stay"):
        if reason in by_reason:
            note(reason, {name: by_reason[reason][value[name]] for name in names})
    inside = timed.filter(timed["reason"] == "")
    at = [name for name in names if rules[name] == "at"]
    between = inside["time"] % settings.width != 0
    note("off the grid", counted(inside, {name: inside[value[name]].notnull() & between for name in at}))
    for exact in (True, False):
        some = [name for name in names if rules[name] != "sum" and (rules[name] == "at") == exact]
        rows = inside.filter(~between) if exact else inside
        twice = duplicates(rows, ["stay_id", "time"], [value[name] for name in some])
        note("duplicates", {name: twice[value[name]] for name in some})
    found = {name: good[name] + unparsed[name] + limited[name] for name in names}
    return LossCounts(found, lost, (AFTER_GRID,) if settings.cut else ())


def strange_units(
    main: Any, settings: TableSettings, readings: Mapping[str, Reading], measured: Mapping[str, int]
) -> list[str]:
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
        if count >= max(FEW_STRANGE, RARE_STRANGE * measured[entry.name]):
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
