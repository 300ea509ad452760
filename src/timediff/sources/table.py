"""Any long or wide table: a CSV (.csv, .csv.gz) or Parquet file, its columns named by settings, on a grid.

Types come from the settings, never from a look at the first rows: a column of a CSV is text until a number is wanted.
"""

import difflib
import functools
import operator
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import ibis
import numpy as np
import pyarrow as pa

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.errors import Problems, TimeDiffError, listed
from timediff.runtime.cell_values import cells
from timediff.runtime.progress import Progress, silent
from timediff.sources import sql
from timediff.sources.base import Source, bundled, local
from timediff.sources.engines import Files, connect_files
from timediff.sources.extraction import Extraction, any_measured, apply, check_bounds, columns, many, on_grid
from timediff.sources.grid import Rule, to_steps
from timediff.sources.table_files import header_of, is_parquet, repeated
from timediff.sources.table_reading import Reading, identity, time_of, value_of, wrong
from timediff.sources.table_settings import UNITS, TableFeature, TableSettings


class TableSource(Source[TableSettings]):
    settings = TableSettings
    defaults = bundled("table")

    def extract(self, source: str, settings: TableSettings, progress: Progress = silent) -> Extraction:
        schema = settings.schema
        path = _file(local(source))
        beside = None if settings.static is None else _file(path.parent / settings.static)
        with connect_files(path.parent, [path, *([] if beside is None else [beside])], progress) as engine:
            main = _opened(engine, path, "table_main", settings)
            static = None if beside is None else _opened(engine, beside, "table_static", settings)
            homes = _homes(settings, main, static, path, beside)
            main = _kept(engine, main.select(_needed(settings, main)), "timediff_rows", path)
            static = static if static is None or beside is None else _kept(engine, static, "timediff_static", beside)
            return _extracted(engine, settings, schema, main, static, homes)


def _extracted(
    engine: Files, settings: TableSettings, schema: Schema, main: Any, static: Any, homes: dict[str, str]
) -> Extraction:
    """`homes` says where each static column stands: in "main", in "static", or as a "variable" of a long table."""
    stay, time = identity(main[settings.stay], settings, settings.stay), time_of(main, settings.time, settings)
    temporal = [entry for entry in settings.feature if entry.scope == "temporal"]
    usual = "variable" if settings.layout == "long" else "main"
    readings = {entry.name: value_of(_raw(main, entry, settings), entry, settings, usual) for entry in temporal}
    whole: dict[str, dict[str, Reading]] = {"main": {}, "static": {}}
    for entry in settings.feature:
        if entry.scope == "static":
            home = homes[entry.name]
            table = static if home == "static" else main
            raw = _raw(main, entry, settings) if home == "variable" else table[entry.place]
            whole["static" if home == "static" else "main"][entry.name] = value_of(raw, entry, settings, home)
    if "" in homes:  # the start of the stay; no feature has an empty name
        whole[homes[""]][""] = time_of(main if homes[""] == "main" else static, settings.origin, settings)

    found = wrong(main, [stay, time, *readings.values(), *whole["main"].values()], stay)
    keys = {"main": stay}
    if static is not None:
        keys["static"] = identity(static[settings.stay], settings, f"{settings.static}: {settings.stay}")
        found += wrong(static, [keys["static"], *whole["static"].values()], keys["static"])
    if settings.layout == "long":
        found += _unheard(main, settings, [e for e in settings.feature if homes.get(e.name, "variable") == "variable"])
    if found:
        raise Problems(engine.read[0].name, found)

    tables = {"main": main, "static": static}
    per_stay = {home: _one_a_stay(tables[home], keys[home], whole[home]) for home in keys}
    stay_id = np.unique(np.concatenate([table["stay_id"] for table in per_stay.values()]))
    values = {
        name: _placed(stay_id, table["stay_id"], table[f"value_{i}"])
        for home, table in per_stay.items()
        for i, name in enumerate(whole[home])
    }

    # Numbered, since a feature may be called `time` or `at`.
    numbered = {f"value_{i}": reading.value for i, reading in enumerate(readings.values())}
    measured = main.select(stay_id=stay.value, at=time.value, **numbered)
    anything = functools.reduce(operator.or_, (measured[name].notnull() for name in numbered))
    measured = engine.keep(measured.filter(measured["at"].notnull(), anything), "timediff_measured")
    span = columns(measured.group_by("stay_id").agg(first=measured["at"].min(), last=measured["at"].max()))
    first, last = (_placed(stay_id, span["stay_id"], span[name]) for name in ("first", "last"))
    origin = {"first": first, "zero": np.zeros(len(stay_id))}.get(settings.origin, values.pop("", first))
    series = _series(engine, settings, schema, measured, stay_id, origin)

    rules = {}
    if settings.origin not in ("first", "zero"):
        rules[f"a known start ({settings.origin})"] = ~np.isnan(origin)
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
    cohort = Cohort(schema, stay_id[kept], {name: grid[kept] for name, grid in series.items()}, chosen)
    check_bounds(cohort)
    return Extraction(cohort, len(stay_id), dropped, engine.facts())


def _file(path: Path) -> Path:
    if not path.is_file():
        raise TimeDiffError(f"{path} is not a file; expected a table as .csv, .csv.gz or .parquet.")
    if not path.name.lower().endswith((".csv", ".csv.gz", ".parquet")):
        raise TimeDiffError(f"{path} is neither .csv, .csv.gz nor .parquet; convert it to one of them.")
    return path


def _opened(engine: Files, path: Path, view: str, settings: TableSettings) -> Any:
    """A file as an Ibis table; all columns of a CSV are text."""
    names = header_of(path, settings.separator)
    if is_parquet(path):
        return engine.open(path, lambda file: sql.select(sql.parquet_relation(file)), view)
    if not any(names):
        raise Problems(path.name, ["there is no line with the columns' names; name each column once in the first line"])
    names = [name or f"column {i}" for i, name in enumerate(names, 1)]  # pandas and R leave the index nameless
    if twice := repeated(names):
        what = f"two columns are called {listed(twice)}"
        raise Problems(path.name, [f"{what}; name each column once in the first line"])
    types = dict.fromkeys(names, "VARCHAR")
    return engine.open(path, lambda file: sql.select(sql.csv_relation(file, types, settings.separator)), view)


def _needed(settings: TableSettings, main: Any) -> list[str]:
    wanted = {settings.stay, settings.time, settings.variable, settings.value, settings.origin}
    return [name for name in main.columns if name in wanted | {entry.place for entry in settings.feature}]


def _kept(engine: Files, table: Any, name: str, path: Path) -> Any:
    """The file, read once; from here on nothing can be wrong with the file itself."""
    kept = engine.keep(table, name)
    if not kept.count().to_pyarrow().as_py():
        raise TimeDiffError(f"{path.name} has no rows.")
    return kept


def _homes(settings: TableSettings, main: Any, static: Any, path: Path, beside: Path | None) -> dict[str, str]:
    """Where each static feature (and, under "", the start of the stay) stands; every missing column is named."""
    found, homes = [], {}

    def require(name: str | None, table: Any, file: Path) -> None:
        if name is not None and name not in table.columns:
            found.append(f"{file.name} has no column {name!r}; {_nearest(name, table.columns)}")

    wanted = [settings.stay, settings.time]
    if settings.layout == "long":
        wanted += [name for name in (settings.variable, settings.value) if name is not None]
    else:
        wanted += [entry.place for entry in settings.feature if entry.scope == "temporal"]
    for name in dict.fromkeys(wanted):
        require(name, main, path)
    if static is not None and beside is not None:
        require(settings.stay, static, beside)
    whole = {entry.name: entry.place for entry in settings.feature if entry.scope == "static"}
    if settings.origin not in ("first", "zero"):
        whole[""] = settings.origin
    for name, column in whole.items():
        if static is not None and column in static.columns:
            homes[name] = "static"
        elif column in main.columns or (settings.layout == "wide" or not name):
            homes[name] = "main"
            require(column, main, path)
        else:
            homes[name] = "variable"
    if found:
        raise Problems("table", found)
    return homes


def _raw(main: Any, entry: TableFeature, settings: TableSettings) -> Any:
    """A feature's values in the table's rows, null in rows of another variable."""
    if settings.layout == "wide":
        return main[entry.place]
    return ibis.ifelse(main[settings.variable].cast("string") == entry.place, main[settings.value], ibis.null())


def _unheard(main: Any, settings: TableSettings, entries: Sequence[TableFeature]) -> list[str]:
    names = main[settings.variable].cast("string")
    known = {str(name) for name in main.select(name=names).distinct().to_pyarrow()["name"].to_pylist()}
    return [
        f"no row has the variable {entry.place!r}; column {settings.variable!r} has {cells(sorted(known))}"
        for entry in entries
        if known and entry.place not in known
    ]


def _one_a_stay(table: Any, stay: Reading, readings: dict[str, Reading]) -> dict[str, Array]:
    """stay_id and value_0, value_1, …: the one value that each column has in all rows of a stay."""
    chosen = table.select(stay_id=stay.value, **{f"value_{i}": r.value for i, r in enumerate(readings.values())})
    names = [name for name in chosen.columns if name != "stay_id"]
    values = {name: chosen[name].max() for name in names}
    differ = {f"differ_{name}": chosen[name].min() != chosen[name].max() for name in names}
    found = chosen.group_by("stay_id").agg(**values, **differ).order_by("stay_id").to_pyarrow()
    problems = []
    for name, (feature, reading) in zip(names, readings.items(), strict=True):
        if count := sum(bool(differs) for differs in found[f"differ_{name}"].to_pylist()):
            what = f"feature {feature!r} ({reading.label})" if feature else f"the start of the stay ({reading.label})"
            problems.append(
                f"{what} has more than one value in {many(count, 'stay')}; it is static, so expected one a stay"
            )
    if problems:
        raise Problems("table", problems)
    arrays = {name: found[name].to_numpy() for name in ("stay_id", *names)}
    for name, reading in zip(names, readings.values(), strict=True):
        if reading.identity:  # whole numbers with nulls would lose digits as doubles
            arrays[name] = np.array([np.nan if v is None else v for v in found[name].to_pylist()], dtype=object)
    return arrays


def _series(
    engine: Files, settings: TableSettings, schema: Schema, measured: Any, stay_id: Array, origin: Floats
) -> dict[str, Floats]:
    """Each feature in an (N, L) array."""
    known = ~np.isnan(origin)
    starts = pa.table({"stay_id": stay_id[known], "origin": origin[known].astype(np.int64)})
    starts = engine.backend.create_table("timediff_starts", starts, temp=True, overwrite=True)
    timed = measured.join(starts, "stay_id").mutate(time=lambda t: t["at"] - t["origin"])
    by_rule: dict[str, list[str]] = {}
    temporal = {f"value_{i}": e for i, e in enumerate(e for e in settings.feature if e.scope == "temporal")}
    for name, entry in temporal.items():
        rule_of = "class" if entry.feature.discrete else entry.rule or settings.rule
        by_rule.setdefault(rule_of, []).append(name)
    values = {}
    for rule, names in by_rule.items():
        chosen = timed.select("stay_id", "time", *names)
        if rule == "class":  # two classes at one time have no mean: the later one in the list counts
            chosen = chosen.group_by(["stay_id", "time"]).agg(**{name: chosen[name].max() for name in names})
        of_step = cast(Rule, "last" if rule == "class" else rule)
        found = columns(to_steps(chosen, ["stay_id"], names, "time", settings.width, settings.steps, of_step))
        for name in names:
            values[temporal[name].name] = on_grid(stay_id, settings.steps, found, found[name])
    return {feature.name: values[feature.name] for feature in schema.temporal}


def _placed(stay_id: Array, keys: Array, values: Array) -> Array:
    """Values of some stays, at their places among all; NaN elsewhere."""
    placed = np.full(len(stay_id), np.nan, dtype=object if values.dtype == object else np.float64)
    placed[np.searchsorted(stay_id, keys)] = values
    return placed


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {listed(known, most=8)}"
