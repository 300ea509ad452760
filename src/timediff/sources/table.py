"""Any long or wide table: a CSV (.csv, .csv.gz) or Parquet file, its columns named by settings, on a grid.

Types come from the settings, never from a look at the first rows: a column of a CSV is text until a number is wanted.
"""

import csv
import difflib
import functools
import gzip
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

import duckdb
import ibis
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from timediff.cohort import Cohort
from timediff.errors import Problems, TimeDiffError
from timediff.schema import Feature, Kind, Role, Schema, Scope, Split
from timediff.sources.chart import width_of
from timediff.sources.engines import Files, connect
from timediff.sources.extraction import Extraction, apply, columns
from timediff.sources.grid import Rule, cells
from timediff.sources.registry import Source
from timediff.tables import Array, Floats

TICKS = 1_000_000  # times are counted in microseconds: whole numbers, on which cells have sharp edges
UNITS = {"h": 3600 * TICKS, "min": 60 * TICKS, "s": TICKS}


@dataclass(frozen=True)
class Entry:
    """A feature, where it stands in the table, and what of it counts: above < value < below, value ≤ at_most."""

    name: str
    from_: str | None = None  # its column in a wide table, its variable in a long one; the name unless given
    kind: Kind = "continuous"
    scope: Scope = "temporal"
    role: str | None = None  # label, patient or order: the schema says so when it is none of them
    unit: str | None = None
    bounds: tuple[float, float] | None = None
    resolution: float | None = None
    classes: tuple[str, ...] | tuple[int, ...] = ()
    above: float | None = None
    below: float | None = None
    at_most: float | None = None
    rule: str | None = None  # of this feature, where it is not the table's

    @property
    def place(self) -> str:
        return self.from_ or self.name

    @property
    def feature(self) -> Feature:
        kind: Kind = "categorical" if self.role == "patient" else self.kind
        role = cast(Role | None, self.role)
        return Feature(self.name, kind, self.scope, role, self.unit, self.bounds, self.resolution, classes=self.classes)


@dataclass(frozen=True)
class TableSettings:
    layout: Literal["long", "wide"]
    stay: str  # the column that says whose row it is
    time: str  # the column that says when
    step: str  # of the grid, such as "1h" or "30min"
    steps: int
    feature: tuple[Entry, ...]
    variable: str | None = None  # long: the column that says what was measured
    value: str | None = None  # long: the column with its value
    time_unit: Literal["timestamp", "h", "min", "s", "step"] = "timestamp"
    origin: str = "first"  # the first measurement; "zero"; or the column with the start of the stay
    rule: Rule = "last"
    hours: float | None = None  # the last measurement lies at least so long after the origin
    static: str | None = None  # a second file beside SOURCE with a row a stay
    ids: Literal["number", "text"] = "number"  # what identifies stays and patients
    missing: tuple[str, ...] = ()  # texts that mean "no value", besides an empty one
    separator: str = ","
    test: float = 0.25

    @property
    def schema(self) -> Schema:
        features = tuple(entry.feature for entry in self.feature)
        by_role = {str(feature.role): feature.name for feature in features}
        return Schema(features, self.steps, self.step, Split(self.test, by_role.get("label"), by_role.get("patient")))

    @property
    def width(self) -> int:
        return width_of(self.step) * TICKS

    def problems(self) -> list[str]:
        found = []
        if self.layout == "long":
            found += [
                f'layout is "long", which needs {key} = "the column with {what}"'
                for key, what in (("variable", "what was measured"), ("value", "its value"))
                if getattr(self, key) is None
            ]
        if self.origin == "zero" and self.time_unit == "timestamp":
            found.append(
                'origin = "zero" needs times counted from the start of a stay: set time_unit to h, min, s or step'
            )
        found += [
            f"feature {entry.name!r}: rule is {entry.rule!r}; expected one of {', '.join(get_args(Rule))}"
            for entry in self.feature
            if entry.rule not in (None, *get_args(Rule))
        ]
        if len(self.separator) != 1:
            found.append(f"separator is {self.separator!r}; expected one character")
        try:
            if self.width < TICKS:
                found.append(f"step is {self.step!r}; expected at least one second")
        except (KeyError, ValueError):
            found.append(f"step is {self.step!r}; expected a duration in s, min, h or d, such as '1h'")
        return found


@dataclass(frozen=True)
class Reading:
    """A column read as what the settings say it is, and which of its rows are something else."""

    label: str
    raw: Any
    value: Any
    wrong: Any
    expected: str
    identity: bool = False  # names somebody, so is no quantity


def extract(source: str, settings: TableSettings) -> Extraction:
    schema = settings.schema
    if found := settings.problems():
        raise Problems("table settings", found)
    path = _file(Path(source))
    beside = None if settings.static is None else _file(path.parent / settings.static)
    with connect(str(path.parent)) as engine:
        assert isinstance(engine, Files)
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
    stay, time = _identity(main[settings.stay], settings, settings.stay), _time(main, settings.time, settings)
    temporal = [entry for entry in settings.feature if entry.scope == "temporal"]
    usual = "variable" if settings.layout == "long" else "main"
    readings = {entry.name: _value(_raw(main, entry, settings), entry, settings, usual) for entry in temporal}
    whole: dict[str, dict[str, Reading]] = {"main": {}, "static": {}}
    for entry in settings.feature:
        if entry.scope == "static":
            home = homes[entry.name]
            table = static if home == "static" else main
            raw = _raw(main, entry, settings) if home == "variable" else table[entry.place]
            whole["static" if home == "static" else "main"][entry.name] = _value(raw, entry, settings, home)
    if "" in homes:  # the start of the stay; no feature has an empty name
        whole[homes[""]][""] = _time(main if homes[""] == "main" else static, settings.origin, settings)

    found = _wrong(main, [stay, time, *readings.values(), *whole["main"].values()], stay)
    keys = {"main": stay}
    if static is not None:
        keys["static"] = _identity(static[settings.stay], settings, f"{settings.static}: {settings.stay}")
        found += _wrong(static, [keys["static"], *whole["static"].values()], keys["static"])
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
    rules["at least one measurement on the grid"] = _any(series)
    if settings.hours is not None:
        rules[f"measured for at least {settings.hours:g} h"] = last - origin >= settings.hours * UNITS["h"]
    for feature in schema.static:
        if feature.role is not None:
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
    quoted = str(path).replace("'", "''")
    engine.read.append(path)
    if path.suffix.lower() == ".parquet":
        try:
            pq.read_schema(path)
        except (pa.ArrowException, OSError) as error:
            raise Problems(path.name, [f"not a readable Parquet file ({str(error).splitlines()[0]})"]) from error
        relation = f"read_parquet('{quoted}')"
    else:
        names = [name.replace("'", "''") for name in _header(path, settings.separator)]
        typed = ", ".join(f"'{name}': 'VARCHAR'" for name in names)
        relation = (
            f"read_csv('{quoted}', header=true, auto_detect=false, delim='{settings.separator}', quote='\"', "
            f"escape='\"', columns={{{typed}}})"
        )
    # Times without a zone are read as they stand; those with one all come to the same clock.
    engine.backend.raw_sql("SET TimeZone = 'UTC'")
    engine.backend.raw_sql(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT * FROM {relation}")
    return engine.backend.table(view)


def _header(path: Path, separator: str) -> list[str]:
    try:
        with (
            gzip.open(path, "rt", encoding="utf-8-sig")
            if path.suffix == ".gz"
            else path.open(encoding="utf-8-sig") as file
        ):
            names = [name.strip() for name in next(csv.reader(file, delimiter=separator), [])]
            blank = not any(names)
            names = [name or f"column {i}" for i, name in enumerate(names, 1)]  # pandas and R leave the index nameless
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise Problems(path.name, [f"cannot be read ({error})"]) from error
    repeated = sorted({name for name in names if names.count(name) > 1})
    if blank or repeated:
        what = f"two columns are called {repeated[0]!r}" if repeated else "there is no line with the columns' names"
        raise Problems(path.name, [f"{what}; name each column once in the first line"])
    return names


def _needed(settings: TableSettings, main: Any) -> list[str]:
    wanted = {settings.stay, settings.time, settings.variable, settings.value, settings.origin}
    return [name for name in main.columns if name in wanted | {entry.place for entry in settings.feature}]


def _kept(engine: Files, table: Any, name: str, path: Path) -> Any:
    """The file, read once; from here on nothing can be wrong with the file itself."""
    try:
        kept = engine.keep(table, name)
    except duckdb.Error as error:
        raise Problems(path.name, [f"cannot be read ({str(error).strip().splitlines()[0]})"]) from error
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


def _raw(main: Any, entry: Entry, settings: TableSettings) -> Any:
    """A feature's values in the table's rows, null in rows of another variable."""
    if settings.layout == "wide":
        return main[entry.place]
    return ibis.ifelse(main[settings.variable].cast("string") == entry.place, main[settings.value], ibis.null())


def _identity(raw: Any, settings: TableSettings, label: str) -> Reading:
    raw = _present(raw, settings)
    if settings.ids == "text":
        return Reading(f"column {label!r}", raw, raw.cast("string"), raw.isnull() & raw.notnull(), "text", True)
    number, exact = _number(raw), _number(raw).try_cast("int64")
    if raw.type().is_string() or raw.type().is_integer():  # by way of a double it would be exact only to 2⁵³
        exact = raw.try_cast("int64")
    wrong = raw.notnull() & (number.isnull() | exact.isnull() | (number != number.round()))
    return Reading(f"column {label!r}", raw, exact, wrong, 'a whole number (or set ids = "text")', True)


def _time(table: Any, column: str, settings: TableSettings) -> Reading:
    """Microseconds since 1970, or since the start of the stay."""
    raw = _present(table[column], settings)
    if settings.time_unit == "timestamp":
        kind = raw.type()
        if kind.is_string():
            moment = raw.try_cast("timestamp")
        elif kind.is_timestamp() or kind.is_date():
            moment = raw.cast("timestamp")
        else:
            moment = ibis.null("timestamp")
        value = moment.delta(ibis.literal("1970-01-01 00:00:00").cast("timestamp"), unit="microsecond").cast("int64")
        expected = "a timestamp such as 2024-01-31 13:00:00 (or set time_unit)"
        return Reading(f"column {column!r}", raw, value, raw.notnull() & moment.isnull(), expected)
    number = _number(raw)
    scale = settings.width if settings.time_unit == "step" else UNITS[settings.time_unit]
    wrong = raw.notnull() & (number.isnull() | number.isinf() | (number.abs() > 1e9))
    return Reading(
        f"column {column!r}", raw, (number * scale).round().try_cast("int64"), wrong, "a number (or set time_unit)"
    )


def _value(raw: Any, entry: Entry, settings: TableSettings, home: str) -> Reading:
    """A feature as numbers: those within its limits, the index of its class, or a patient's id."""
    if entry.role == "patient":
        return _identity(raw, settings, entry.place)
    label = f"{'variable' if home == 'variable' else 'column'} {entry.place!r}"
    raw, feature = _present(raw, settings), entry.feature
    number = _number(raw)
    if feature.discrete:
        textual = isinstance(feature.classes[0], str)
        given = raw.cast("string") if textual else number
        index = ibis.cases(*((given == c, ibis.literal(float(i))) for i, c in enumerate(feature.classes)))
        absent = ibis.literal(False) if textual else number.isnan().fill_null(False)
        expected = f"one of its classes ({', '.join(map(str, feature.classes))})"
        return Reading(label, raw, index, raw.notnull() & index.isnull() & ~absent, expected)
    wrong = raw.notnull() & (number.isnull() | number.isinf())
    value = ibis.ifelse(number.isnan(), ibis.null(), number)
    for limit, holds in ((entry.above, operator.gt), (entry.below, operator.lt), (entry.at_most, operator.le)):
        value = value if limit is None else ibis.ifelse(holds(value, limit), value, ibis.null())
    return Reading(label, raw, value, wrong, 'a number (what means "no value" is listed in missing)')


def _present(raw: Any, settings: TableSettings) -> Any:
    if not raw.type().is_string():
        return raw
    raw = raw.strip()
    return ibis.ifelse(raw.isin(["", *settings.missing]), ibis.null(), raw)


def _number(raw: Any) -> Any:
    kind = raw.type()
    if kind.is_string():
        return raw.try_cast("float64")
    if kind.is_float32():  # 36.7 is meant, not 36.70000076
        return raw.cast("string").cast("float64")
    if kind.is_boolean():
        return raw.cast("int64").cast("float64")
    return raw.cast("float64") if kind.is_numeric() else ibis.null("float64")


def _wrong(table: Any, readings: Sequence[Reading], stay: Reading) -> list[str]:
    """What is not what the settings say it is, each column with how often and one example."""
    counts: dict[str, Any] = {"nobody": stay.raw.isnull().sum()}
    for i, reading in enumerate(readings):
        text = reading.raw.cast("string")
        counts |= {f"count_{i}": reading.wrong.sum(), f"example_{i}": text.min(where=reading.wrong)}
    row = table.agg(**counts).to_pyarrow().to_pylist()[0]
    found = [
        f"{reading.label}: {_many(row[f'count_{i}'], 'value')}, such as {row[f'example_{i}']!r}; "
        f"expected {reading.expected}"
        for i, reading in enumerate(readings)
        if row[f"count_{i}"]
    ]
    if row["nobody"]:
        found.append(f"{stay.label}: {_many(row['nobody'], 'row')} without a stay; every row belongs to one")
    return found


def _unheard(main: Any, settings: TableSettings, entries: Sequence[Entry]) -> list[str]:
    names = main[settings.variable].cast("string")
    known = {str(name) for name in main.select(name=names).distinct().to_pyarrow()["name"].to_pylist()}
    return [
        f"no row has the variable {entry.place!r}; {_nearest(entry.place, sorted(known))}"
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
                f"{what} has more than one value in {_many(count, 'stay')}; it is static, so expected one a stay"
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
    """The cells of each feature in (N, L) arrays."""
    known = ~np.isnan(origin)
    starts = pa.table({"stay_id": stay_id[known], "origin": origin[known].astype(np.int64)})
    starts = engine.backend.create_table("timediff_starts", starts, temp=True, overwrite=True)
    timed = measured.join(starts, "stay_id").mutate(time=lambda t: t["at"] - t["origin"])
    by_rule: dict[str, list[str]] = {}
    temporal = {f"value_{i}": e for i, e in enumerate(e for e in settings.feature if e.scope == "temporal")}
    for name, entry in temporal.items():
        rule_of = "class" if entry.feature.discrete else entry.rule or settings.rule
        by_rule.setdefault(rule_of, []).append(name)
    series = {feature.name: np.full((len(stay_id), schema.steps), np.nan) for feature in schema.temporal}
    for rule, names in by_rule.items():
        chosen = timed.select("stay_id", "time", *names)
        if rule == "class":  # two classes at one time have no mean: the later one in the list counts
            chosen = chosen.group_by(["stay_id", "time"]).agg(**{name: chosen[name].max() for name in names})
        of_cell = cast(Rule, "last" if rule == "class" else rule)
        found = columns(cells(chosen, ["stay_id"], names, "time", settings.width, settings.steps, of_cell))
        row, step = np.searchsorted(stay_id, found["stay_id"]), found["step"].astype(np.int64)
        for name in names:
            series[temporal[name].name][row, step] = found[name].astype(np.float64)
    return series


def _placed(stay_id: Array, keys: Array, values: Array) -> Array:
    """Values of some stays, at their places among all; NaN elsewhere."""
    placed = np.full(len(stay_id), np.nan, dtype=object if values.dtype == object else np.float64)
    placed[np.searchsorted(stay_id, keys)] = values
    return placed


def _any(series: dict[str, Floats]) -> Array:
    return np.asarray(np.any([~np.isnan(grid).all(axis=1) for grid in series.values()], axis=0))


def check_bounds(cohort: Cohort) -> None:
    found = []
    for feature in cohort.schema.features:
        if feature.bounds is not None:
            values, (low, high) = cohort.values(feature.name), feature.bounds
            if count := int(((values < low) | (values > high)).sum()):
                found.append(
                    f"feature {feature.name!r}: {_many(count, 'value')} outside its bounds {low:g} to {high:g}; "
                    "widen them, or set above, below or at_most so that such values do not count"
                )
    if found:
        raise Problems("table", found)


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]!r}?" if close else f"there are {', '.join(map(repr, list(known)[:8]))}"


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


TABLE = Source(TableSettings, extract)
