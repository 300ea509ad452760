"""Any long or wide table: a text file, Parquet, Excel or a data frame, its columns named by settings, on a grid.

Types come from the settings, never from a look at the first rows: a column of a CSV is text until a number is wanted.
"""

import functools
import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import ibis
import numpy as np
import pyarrow as pa

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.errors import Problems
from timediff.runtime.cell_values import cells
from timediff.runtime.progress import Progress, silent
from timediff.sources.base import Source, bundled, local
from timediff.sources.engines import Files, connect_files
from timediff.sources.extraction import (
    Extraction,
    any_measured,
    apply,
    check_bounds,
    columns,
    many,
    on_grid,
    to_resolution,
)
from timediff.sources.grid import Rule, to_steps
from timediff.sources.losses import AFTER_GRID
from timediff.sources.table_inputs import Given, in_order, named_files
from timediff.sources.table_joining import END, MAIN, START, VARIABLE, Tables, open_tables
from timediff.sources.table_losses import count_losses, fate, rule_of, strange_units, without_end
from timediff.sources.table_reading import Reading, Units, time_of, value_of, wrong
from timediff.sources.table_settings import GRID, LAST, UNITS, TableFeature, TableSettings


class TableSource(Source[TableSettings]):
    settings = TableSettings
    defaults = bundled("table")

    def extract(self, source: str, settings: TableSettings, progress: Progress = silent) -> Extraction:
        path = local(source)
        return extract_tables(named_files(path, settings), settings, path.name, path.parent, progress)


def extract_tables(
    given: Mapping[str, Given], settings: TableSettings, source: str, where: Path = Path(), progress: Progress = silent
) -> Extraction:
    """The cohort in files or Arrow tables: SOURCE under "", the others by the names that settings have for them."""
    schema = settings.schema
    with connect_files(where, in_order(given), progress) as engine:
        return _extracted(engine, settings, schema, open_tables(engine, given, settings, source), source)


def _extracted(engine: Files, settings: TableSettings, schema: Schema, tables: Tables, source: str) -> Extraction:
    main, stay = tables.main.opened, tables.main.stay
    time = time_of(main.table[settings.time], settings.time, settings, settings.time in main.durations)
    units = _units(tables, settings)
    temporal = [entry for entry in settings.feature if entry.scope == "temporal"]
    usual = VARIABLE if settings.layout == "long" else MAIN
    readings = {
        entry.name: value_of(
            _raw(main.table, entry, settings), entry, settings, usual, units.get(entry.unit_column or ""),
            entry.place in main.durations and usual == MAIN,
        )
        for entry in temporal
    }  # fmt: skip
    whole = _whole(tables, settings, units)
    _require_right(tables, settings, stay, time, readings, whole, source)

    per_stay = {
        home: _one_a_stay(one.opened.table, one.stay, whole[home], one.opened.name)
        for home, one in tables.homes.items()
    }
    stay_id = np.unique(np.concatenate([table["stay_id"] for table in per_stay.values()]))
    values = {
        name: _placed(stay_id, table["stay_id"], table[f"value_{i}"])
        for home, table in per_stay.items()
        for i, name in enumerate(whole[home])
    }
    for entry in settings.feature:
        if entry.name in values and (entry.recorded or entry.unit_column) and entry.kind == "continuous":
            values[entry.name] = to_resolution(values[entry.name], entry.resolution)

    # Numbered, since a feature may be called `time` or `at`.
    numbered = {f"value_{i}": reading.value for i, reading in enumerate(readings.values())}
    fates = {f"fate_{i}": fate(reading) for i, reading in enumerate(readings.values())}
    read = engine.keep(main.table.select(stay_id=stay.value, at=time.value, **numbered, **fates), "timediff_read")
    anything = functools.reduce(operator.or_, (read[name].notnull() for name in numbered))
    measured = read.filter(read["at"].notnull(), anything).drop(*fates)
    span = columns(measured.group_by("stay_id").agg(first=measured["at"].min(), last=measured["at"].max()))
    first, last = (_placed(stay_id, span["stay_id"], span[name]) for name in ("first", "last"))
    origin = {"first": first, "zero": np.zeros(len(stay_id))}.get(settings.origin, values.pop(START, first))
    length = _lengths(settings, origin, last, values.pop(END, None))
    timed = _timed(engine, settings, measured, stay_id, origin, length)
    losses = count_losses(settings, list(readings), read, timed)
    series = _series(settings, schema, timed.filter(timed["reason"] == ""), stay_id)

    rules = {}
    if settings.origin not in ("first", "zero"):
        rules[f"a known start ({settings.origin})"] = ~np.isnan(origin)
    if settings.length not in (GRID, LAST):
        rules[f"a known end ({settings.length})"] = ~np.isnan(length)
    rules["at least one measurement on the grid"] = any_measured(series)
    if settings.hours is not None:
        rules[f"measured for at least {settings.hours:g} h"] = last - origin >= settings.hours * UNITS["h"]
    for feature in schema.static:
        if feature.role not in (None, "event_time"):  # no time: no event was seen
            rules[f"a known {feature.name}"] = values[feature.name] == values[feature.name]  # NaN is not itself
    kept, dropped = apply(rules)
    chosen = {name: column[kept] for name, column in values.items()}
    if schema.patient is not None and settings.ids == "number":
        chosen[schema.patient.name] = chosen[schema.patient.name].astype(np.int64)
    lengths = length[kept].astype(np.int64)
    cohort = Cohort(
        schema,
        stay_id[kept],
        {name: grid[kept] for name, grid in series.items()},
        chosen,
        None if (lengths == settings.steps).all() else lengths,
    )
    check_bounds(cohort)
    notes = (*strange_units(main.table, settings, readings, losses.found), *without_end(cohort, settings))
    return Extraction(cohort, len(stay_id), dropped, engine.facts(), losses, notes)


def _units(tables: Tables, settings: TableSettings) -> dict[str, Units]:
    """Columns of units by name; that of a long table also under ""."""
    table, found = tables.main.opened.table, {}
    wanted = {entry.unit_column for entry in settings.feature} | {settings.unit_column}
    for name in filter(None, wanted):
        raw = table[name].cast("string").strip()
        known = table.select(unit=raw).distinct().to_pyarrow()["unit"].to_pylist()
        found[name] = Units(name, table[name], tuple(sorted(unit for unit in known if unit)))
    if settings.layout == "long" and settings.unit_column is not None:
        found[""] = found[settings.unit_column]
    return found


def _whole(tables: Tables, settings: TableSettings, units: Mapping[str, Units]) -> dict[str, dict[str, Reading]]:
    """What each table says of whole stays: static features, start and end."""
    whole: dict[str, dict[str, Reading]] = {home: {} for home in tables.homes}
    main = tables.main.opened.table
    for entry in settings.feature:
        if entry.scope != "static":
            continue
        home = tables.whole[entry.name]
        if home == VARIABLE:
            whole[MAIN][entry.name] = value_of(_raw(main, entry, settings), entry, settings, home, units.get(""))
        else:
            opened = tables.homes[home].opened
            unit_of = units.get(entry.unit_column) if entry.unit_column is not None and home == MAIN else None
            is_duration = entry.place in opened.durations
            whole[home][entry.name] = value_of(opened.table[entry.place], entry, settings, home, unit_of, is_duration)
    for name, column, unit in ((START, settings.origin, None), (END, settings.length, settings.length_unit)):
        if name in tables.whole:
            opened = tables.homes[tables.whole[name]].opened
            whole[tables.whole[name]][name] = time_of(
                opened.table[column], column, settings, column in opened.durations, unit
            )
    return whole


def _require_right(
    tables: Tables,
    settings: TableSettings,
    stay: Reading,
    time: Reading,
    readings: Mapping[str, Reading],
    whole: Mapping[str, Mapping[str, Reading]],
    source: str,
) -> None:
    """Says what no column should hold; with unparsed = "missing" only of what says whose a row is."""
    found = []
    for home, one in tables.homes.items():
        read = [*([time, *readings.values()] if home == MAIN else []), *whole[home].values()]
        if settings.unparsed == "missing":
            read = [reading for reading in read if reading.identity]
        found += wrong(one.opened.table, [one.stay, *read], one.stay)
    if settings.layout == "long":
        unheard = [entry for entry in settings.feature if tables.whole.get(entry.name, VARIABLE) == VARIABLE]
        found += _unheard(tables.main.opened.table, settings, unheard)
    found += _many_units(tables.main.opened.table, settings, readings)
    if found:
        raise Problems(source, found)


def _many_units(main: Any, settings: TableSettings, readings: Mapping[str, Reading]) -> list[str]:
    """Features of which values have several units and that do not say which one is wanted."""
    asked = {
        entry.name: entry.unit_column or settings.unit_column
        for entry in settings.feature
        if entry.unit is None and entry.name in readings and entry.kind == "continuous"
    }
    asked = {name: column for name, column in asked.items() if column is not None}
    if not asked:
        return []
    counts = {
        f"n{i}": main[column].cast("string").strip().nullif("").nunique(where=readings[name].value.notnull())
        for i, (name, column) in enumerate(asked.items())
    }
    row = main.agg(**counts).to_pyarrow().to_pylist()[0]
    return [
        f"feature {name!r}: its values have {row[f'n{i}']:,} different units in column {column!r}; set its unit, to "
        "which they are brought"
        for i, (name, column) in enumerate(asked.items())
        if row[f"n{i}"] > 1
    ]


def _raw(main: Any, entry: TableFeature, settings: TableSettings) -> Any:
    """A feature's values in the table's rows, null in rows of another variable."""
    if settings.layout == "wide":
        return main[entry.place]
    of_it = main[settings.variable].cast("string").strip() == entry.place
    return ibis.ifelse(of_it, main[settings.value], ibis.null())


def _unheard(main: Any, settings: TableSettings, entries: Sequence[TableFeature]) -> list[str]:
    names = main[settings.variable].cast("string").strip()
    known = {str(name) for name in main.select(name=names).distinct().to_pyarrow()["name"].to_pylist()}
    return [
        f"no row has the variable {entry.place!r}; column {settings.variable!r} has {cells(sorted(known))}"
        for entry in entries
        if known and entry.place not in known
    ]


def _one_a_stay(table: Any, stay: Reading, readings: Mapping[str, Reading], file: str) -> dict[str, Array]:
    """stay_id and value_0, value_1, …: the one value that each column has in all rows of a stay."""
    chosen = table.select(stay_id=stay.value, **{f"value_{i}": r.value for i, r in enumerate(readings.values())})
    names = [name for name in chosen.columns if name != "stay_id"]
    values = {name: chosen[name].max() for name in names}
    differ = {f"differ_{name}": chosen[name].min() != chosen[name].max() for name in names}
    found = chosen.group_by("stay_id").agg(**values, **differ).order_by("stay_id").to_pyarrow()
    problems = []
    for name, (feature, reading) in zip(names, readings.items(), strict=True):
        if count := sum(bool(differs) for differs in found[f"differ_{name}"].to_pylist()):
            known = {START: "the start of the stay", END: "the end of the stay"}.get(feature, f"feature {feature!r}")
            what = f"{known} ({reading.label})"
            problems.append(
                f"{what} has more than one value in {many(count, 'stay')}; it is static, so expected one a stay"
            )
    if problems:
        raise Problems(file, problems)
    arrays = {name: found[name].to_numpy() for name in ("stay_id", *names)}
    for name, reading in zip(names, readings.values(), strict=True):
        if reading.identity:  # whole numbers with nulls would lose digits as doubles
            arrays[name] = np.array([np.nan if v is None else v for v in found[name].to_pylist()], dtype=object)
    return arrays


def _lengths(settings: TableSettings, origin: Floats, last: Floats, end: Floats | None) -> Floats:
    """How many steps each stay has; NaN where that is not known."""
    longest, width = settings.steps, settings.width
    if settings.length == GRID:
        return np.full(len(origin), float(longest))
    if settings.length == LAST:  # the step of the last measurement is the last one
        steps = np.floor((last - origin) / width) + 1
        return np.clip(np.where(np.isnan(steps), longest, steps), 1, longest)
    assert end is not None
    moment = (settings.length_unit or settings.time_unit) == "timestamp"
    span = end - origin if moment else end
    return np.where(span > 0, np.minimum(np.ceil(span / width), longest), np.nan)


def _timed(
    engine: Files, settings: TableSettings, measured: Any, stay_id: Array, origin: Floats, length: Floats
) -> Any:
    """Measurements of stays with a known start and end, with the time since then, and the `reason` why one is lost."""
    known = ~np.isnan(origin) & ~np.isnan(length)
    ends = (length[known] * settings.width).astype(np.int64)
    starts = pa.table({"stay_id": stay_id[known], "origin": origin[known].astype(np.int64), "end": ends})
    starts = engine.backend.create_table("timediff_starts", starts, temp=True, overwrite=True)
    timed = measured.join(starts, "stay_id").mutate(time=lambda t: t["at"] - t["origin"])
    reason = ibis.cases(
        (timed["time"] < 0, "before the start"),
        (timed["time"] >= settings.width * settings.steps, AFTER_GRID),
        (timed["time"] >= timed["end"], "after the end of the stay"),
        else_="",
    )
    return engine.keep(timed.mutate(reason=reason), "timediff_timed")


def _series(settings: TableSettings, schema: Schema, timed: Any, stay_id: Array) -> dict[str, Floats]:
    """Each feature in an (N, L) array."""
    by_rule: dict[str, list[str]] = {}
    temporal = {f"value_{i}": e for i, e in enumerate(e for e in settings.feature if e.scope == "temporal")}
    for name, entry in temporal.items():
        by_rule.setdefault(rule_of(entry, settings), []).append(name)
    values = {}
    for rule, names in by_rule.items():
        chosen = timed.select("stay_id", "time", *names)
        if rule == "class":  # two classes at one time have no mean: the later one in the list counts
            chosen = chosen.group_by(["stay_id", "time"]).agg(**{name: chosen[name].max() for name in names})
        of_step = cast(Rule, "last" if rule == "class" else rule)
        found = columns(to_steps(chosen, ["stay_id"], names, "time", settings.width, settings.steps, of_step))
        for name in names:
            entry, cells_ = temporal[name], found[name]
            if entry.kind == "continuous" and (entry.recorded or entry.unit_column or settings.unit_column):
                cells_ = to_resolution(cells_, entry.resolution)
            values[entry.name] = on_grid(stay_id, settings.steps, found, cells_)
    return {feature.name: values[feature.name] for feature in schema.temporal}


def _placed(stay_id: Array, keys: Array, values: Array) -> Array:
    """Values of some stays, at their places among all; NaN elsewhere."""
    placed = np.full(len(stay_id), np.nan, dtype=object if values.dtype == object else np.float64)
    placed[np.searchsorted(stay_id, keys)] = values
    return placed
