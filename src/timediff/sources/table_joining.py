"""Several tables as one: more rows of measurements, and files with a row a stay or a patient."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ibis

from timediff.errors import Problems, TimeDiffError, listed
from timediff.sources.driver_messages import NOT_UTF8, from_driver, reason
from timediff.sources.engines import Files
from timediff.sources.table_inputs import Given, Opened, open_table
from timediff.sources.table_reading import Reading, identity, present
from timediff.sources.table_settings import GRID, LAST, Join, TableSettings

MAIN, VARIABLE = "main", "variable"
START, END = "", "\0end"  # of a stay, among the features of a whole stay; no feature has such a name
SHOWN = 8  # names of columns in a message
OUR_STAY = "timediff_stay"


@dataclass(frozen=True)
class Home:
    """A table with the column that says whose row it is."""

    opened: Opened
    stay: Reading


@dataclass(frozen=True)
class Tables:
    homes: Mapping[str, Home]  # "main", and joined files by their names
    whole: Mapping[str, str]  # of each static feature, start and end: the name of its home, or "variable"

    @property
    def main(self) -> Home:
        return self.homes[MAIN]


def open_tables(engine: Files, given: Mapping[str, Given], settings: TableSettings, source: str) -> Tables:
    """All tables; every column that is missing is named. `given` has SOURCE under ""."""
    opened = {
        name: open_table(engine, one, name or source, f"table_{i}", settings)
        for i, (name, one) in enumerate(given.items())
    }
    stacked = [opened[name] for name in ("", *settings.series)]
    files = {join.file: opened[join.file] for join in settings.joins}
    found, whole = _missing_columns(stacked, files, settings)
    if found:
        raise Problems("table", found)
    main = _kept(engine, _stacked(stacked, _needed(settings, stacked)), "timediff_rows")
    stay = identity(main.table[settings.stay], settings, settings.stay)
    homes = {MAIN: Home(main, stay)}
    for i, join in enumerate(settings.joins):
        file = _kept(engine, files[join.file], f"timediff_static_{i}")
        homes[join.file] = _joined(engine, file, join, homes, settings, i)
    return Tables(homes, whole)


def _kept(engine: Files, opened: Opened, name: str) -> Opened:
    """The table, read once; from here on nothing can be wrong with the file itself."""
    try:
        kept = engine.keep(opened.table, name)
    except Exception as error:
        if not from_driver(error) or NOT_UTF8 not in reason(error):
            raise
        what = f"there is {NOT_UTF8}; set encoding to what the file is in, such as latin-1, cp1252 or utf-16"
        raise Problems(opened.name, [what]) from error
    if not kept.count().to_pyarrow().as_py():
        raise TimeDiffError(f"{opened.name} has no rows.")
    return Opened(opened.name, kept, opened.durations)


def _places(settings: TableSettings) -> dict[str, str]:
    """The columns of static features, start and end, by feature."""
    places = {entry.name: entry.place for entry in settings.feature if entry.scope == "static"}
    if settings.origin not in ("first", "zero"):
        places[START] = settings.origin
    if settings.length not in (GRID, LAST):
        places[END] = settings.length
    return places


def _needed(settings: TableSettings, stacked: Sequence[Opened]) -> list[str]:
    wanted = {settings.stay, settings.time, settings.variable, settings.value, settings.unit_column}
    wanted |= {entry.place for entry in settings.feature} | {entry.unit_column for entry in settings.feature}
    wanted |= {*_places(settings).values(), *(join.to or join.on for join in settings.joins)}
    columns = dict.fromkeys(column for opened in stacked for column in opened.table.columns)
    return [column for column in columns if column in wanted]


def _missing_columns(
    stacked: Sequence[Opened], files: Mapping[str, Opened], settings: TableSettings
) -> tuple[list[str], dict[str, str]]:
    """What is missing, and where each feature of a whole stay stands."""
    found: list[str] = []
    every = list(dict.fromkeys(column for opened in stacked for column in opened.table.columns))

    def require(name: str | None, opened: Opened, columns: Sequence[str]) -> None:
        if name is not None and name not in columns:
            found.append(f"{opened.name} has no column {name!r}; {nearest(name, columns)}")

    each = [settings.stay, settings.time]
    if settings.layout == "long":
        each += [name for name in (settings.variable, settings.value, settings.unit_column) if name is not None]
    for opened in stacked:
        for name in dict.fromkeys(each):
            require(name, opened, opened.table.columns)
    if settings.layout == "wide":
        temporal = [entry for entry in settings.feature if entry.scope == "temporal"]
        for place in dict.fromkeys([*(e.place for e in temporal), *(e.unit_column for e in temporal)]):
            require(place, stacked[0], every)
    before = [every]
    for join in settings.joins:
        file = files[join.file]
        require(join.on or settings.stay, file, file.table.columns)
        to = join.to or join.on
        if to is not None and to != settings.stay and not any(to in columns for columns in before):
            known = list(dict.fromkeys(column for columns in before for column in columns))
            found.append(f"no table before {join.file} has the column {to!r}; {nearest(to, known)}")
        before.append(file.table.columns)
    whole = {}
    stated = {entry.name: entry.file for entry in settings.feature}
    for name, column in _places(settings).items():
        having = [join.file for join in settings.joins if column in files[join.file].table.columns]
        having = [join.file for join in settings.joins if join.file in having and join.on != column] or having[:1]
        if (file_name := stated.get(name)) is not None:
            having = [file_name]
            if file_name not in files:
                found.append(f"feature {name!r}: file is {file_name!r}, which neither static nor join lists")
            else:
                require(column, files[file_name], files[file_name].table.columns)
        if len(having) > 1:
            found.append(f"column {column!r} of {_called(name)} stands in {listed(having)}; say file = the one to read")
        if having:
            whole[name] = having[0]
        elif column in every or settings.layout == "wide" or name in (START, END):
            whole[name] = MAIN
            require(column, stacked[0], every)
        else:
            whole[name] = VARIABLE
    return found, whole


def _called(name: str) -> str:
    return {START: "the start of a stay", END: "the end of a stay"}.get(name, f"feature {name!r}")


def _stacked(tables: Sequence[Opened], columns: Sequence[str]) -> Opened:
    """The rows of all tables, with null where one does not have a column."""
    first = tables[0]
    if len(tables) == 1:
        return Opened(first.name, first.table.select(columns), first.durations & set(columns))
    selected = []
    durations = frozenset(c for c in columns if any(c in opened.durations for opened in tables))
    for opened in tables:
        if mixed := [c for c in durations if c in opened.table.columns and c not in opened.durations]:
            raise Problems(opened.name, [f"column {listed(mixed)} is a duration in other tables and not in this one"])
    kinds = {c: [t.table[c].type() for t in tables if c in t.table.columns] for c in columns}
    for opened in tables:
        values = {}
        for column in columns:
            kind = _common(kinds[column])
            there = column in opened.table.columns
            values[column] = opened.table[column].cast(kind) if there else ibis.null(kind)
        selected.append(opened.table.select(**values))
    return Opened(first.name, ibis.union(*selected), durations)


def _common(kinds: Sequence[Any]) -> Any:
    """One type for the values of several tables; texts where they have nothing in common."""
    if all(kind == kinds[0] for kind in kinds):
        return kinds[0]
    if all(kind.is_integer() for kind in kinds):
        return "int64"
    if all(kind.is_numeric() for kind in kinds):
        return "float64"
    if all(kind.is_timestamp() or kind.is_date() for kind in kinds):
        return "timestamp"
    return "string"


def _joined(
    engine: Files, file: Opened, join: Join, homes: Mapping[str, Home], settings: TableSettings, number: int
) -> Home:
    """A file whose rows say whose they are, by the stay itself or by way of what an earlier table says of it."""
    on = join.on or settings.stay
    to = join.to or join.on or settings.stay
    if to == settings.stay:
        stay = identity(file.table[on], settings, f"{file.name}: {on}")
        return Home(file, stay)
    home = next(home for home in reversed(list(homes.values())) if to in home.opened.table.columns)
    others = home.opened.table.select(**{OUR_STAY: home.stay.value, "timediff_key": _key(home, to, settings)})
    others = others.filter(others[OUR_STAY].notnull(), others["timediff_key"].notnull()).distinct()
    rows = file.table.mutate(timediff_key=present(file.table[on], settings).cast("string"))
    joined = engine.keep(rows.inner_join(others, "timediff_key"), f"timediff_joined_{number}")
    if not joined.count().to_pyarrow().as_py():
        what = f"no value of {on!r} is a {to!r} of {home.opened.name}"
        raise Problems(file.name, [f"{what}; check on and to of the join"])
    stay = joined[OUR_STAY]
    return Home(Opened(file.name, joined, file.durations), Reading(f"column {on!r}", stay, stay, stay.isnull(), ""))


def _key(home: Home, column: str, settings: TableSettings) -> Any:
    return present(home.opened.table[column], settings).cast("string")


def nearest(name: str, known: Sequence[str]) -> str:
    """What may have been meant; of many columns the first few, and how many more there are."""
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    if len(known) <= SHOWN:
        return f"its columns are {listed(known, most=SHOWN)}"
    return f"it has {len(known):,} columns: {listed(known, most=SHOWN)}"
