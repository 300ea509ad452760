"""How a column of any table is read: what it means, and which values it cannot mean."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ibis

from timediff.errors import listed
from timediff.runtime.cell_values import cell
from timediff.sources.extraction import many
from timediff.sources.table_settings import UNITS, TableFeature, TableSettings, TimeUnit
from timediff.sources.times import durations, expected_time, moments, scale_of
from timediff.sources.units import Conversion, conversion

MOST_TIME = 1e9  # of any unit


@dataclass(frozen=True)
class Reading:
    """A column read as what the settings say it is, and which of its rows are something else."""

    label: str
    raw: Any
    value: Any
    wrong: Any
    expected: str | Callable[[str], str]  # or what is expected, said of one wrong value
    identity: bool = False  # names somebody, so is no quantity
    parsed: Any = None  # a number in the feature's unit, whether or not it is within its limits
    there: Any = None  # whether there is anything at all


@dataclass(frozen=True)
class Units:
    """The column that says the unit of each value, and every unit that occurs in it."""

    column: str
    raw: Any
    known: tuple[str, ...]


def identity(raw: Any, settings: TableSettings, label: str) -> Reading:
    raw = present(raw, settings)
    if settings.ids == "text":
        return Reading(f"column {label!r}", raw, raw.cast("string"), raw.isnull() & raw.notnull(), "text", True)
    number, exact = as_number(raw), as_number(raw).try_cast("int64")
    if raw.type().is_string() or raw.type().is_integer():  # by way of a double it would be exact only to 2⁵³
        exact = raw.try_cast("int64")
    wrong = raw.notnull() & (number.isnull() | exact.isnull() | (number != number.round()))
    return Reading(f"column {label!r}", raw, exact, wrong, 'a whole number (or set ids = "text")', True)


def time_of(raw: Any, label: str, settings: TableSettings, is_duration: bool, unit: TimeUnit | None = None) -> Reading:
    """Microseconds since 1970, or since the start of the stay."""
    raw, unit = present(raw, settings), unit or settings.time_unit
    name, kind, nothing = f"column {label!r}", raw.type(), ibis.null("int64")
    if is_duration:  # says itself what it is
        refused = raw.notnull() if unit == "timestamp" else raw.notnull() & raw.isnull()
        said = 'a timestamp, and it is a duration: set time_unit = "duration"'
        return Reading(name, raw, ibis.ifelse(refused, nothing, raw), refused, said)
    if unit == "timestamp":
        value = moments(raw, settings.date_order)
        return Reading(name, raw, value, raw.notnull() & value.isnull(), expected_time(unit))
    if kind.is_timestamp() or kind.is_date():
        said = 'a number, and it is a timestamp: set time_unit = "timestamp"'
        return Reading(name, raw, ibis.ifelse(raw.notnull(), nothing, nothing), raw.notnull(), said)
    if unit == "duration":
        value = durations(raw)
        return Reading(name, raw, value, raw.notnull() & value.isnull(), expected_time(unit))
    number = as_number(raw, settings)
    wrong = raw.notnull() & (number.isnull() | number.isinf() | (number.abs() > MOST_TIME))
    value = (ibis.ifelse(wrong, ibis.null("float64"), number) * scale_of(unit, settings)).round().try_cast("int64")
    return Reading(name, raw, value, wrong, expected_time(unit))


def value_of(
    raw: Any,
    entry: TableFeature,
    settings: TableSettings,
    home: str,
    units: Units | None = None,
    is_duration: bool = False,
) -> Reading:
    """A feature as numbers: those within its limits, the index of its class, or a patient's id."""
    if entry.role == "patient":
        return identity(raw, settings, entry.place)
    label = f"{'variable' if home == 'variable' else 'column'} {entry.place!r}"
    raw, feature = present(raw, settings), entry.feature
    number = as_number(raw, settings)
    if is_duration:  # in the unit of the feature, if that is one of time
        number = number / UNITS.get(entry.unit or "", UNITS["h"])
    if feature.discrete:
        index = _class_index(raw, number, entry)
        textual = isinstance(feature.classes[0], str)
        absent = raw.isnull() & raw.notnull() if textual else number.isnan().fill_null(False)
        wrong = raw.notnull() & index.isnull() & ~absent
        said = f"one of its classes ({listed(feature.classes, most=8)}), or what spellings list for one"
        return Reading(label, raw, index, wrong, said, there=raw.notnull() & ~absent)
    wrong = raw.notnull() & (number.isnull() | number.isinf())
    value = ibis.ifelse(number.isnan() | wrong, ibis.null("float64"), number)
    expected: str | Callable[[str], str] = _expected_number(settings)
    if units is not None or entry.recorded is not None:
        known = _in_unit(value, entry, units)
        strange = value.notnull() & known.isnull()
        if units is not None and entry.unit is not None:
            expected = f"a number, in a unit of column {units.column!r} that can be brought to {entry.unit!r}"
        value, wrong = known, wrong | strange
    there = raw.notnull() & ~number.isnan().fill_null(False)
    return Reading(label, raw, entry.within(value), wrong, expected, parsed=value, there=there)


def _class_index(raw: Any, number: Any, entry: TableFeature) -> Any:
    """Of the class itself, or of one of its other spellings."""
    text, classes = raw.cast("string"), entry.feature.classes
    textual = isinstance(classes[0], str)
    branches = [((text if textual else number) == c, ibis.literal(float(i))) for i, c in enumerate(classes)]
    for i, c in enumerate(classes):
        if spelt := (entry.spellings or {}).get(str(c), ()):
            branches.append((text.isin(spelt), ibis.literal(float(i))))
    return ibis.cases(*branches)


def _in_unit(number: Any, entry: TableFeature, units: Units | None) -> Any:
    """Numbers brought from the units they were written in to the feature's."""

    def brought(found: Conversion | None) -> Any:
        return ibis.null("float64") if found is None else number * found.factor + found.offset

    if entry.unit is None:
        return number
    usual = brought(conversion(entry.recorded or entry.unit, entry.unit, entry.known_substance))
    if units is None:
        return usual
    text = units.raw.cast("string").strip()
    branches = [(text == unit, brought(conversion(unit, entry.unit, entry.known_substance))) for unit in units.known]
    return ibis.cases((text.isnull() | (text == ""), usual), *branches, else_=ibis.null("float64"))


def present(raw: Any, settings: TableSettings) -> Any:
    if not raw.type().is_string():
        return raw
    raw = raw.strip()
    return ibis.ifelse(raw.isin(["", *settings.missing]), ibis.null(), raw)


def as_number(raw: Any, settings: TableSettings | None = None) -> Any:
    kind = raw.type()
    if kind.is_string():
        return _from_text(raw, settings).try_cast("float64")
    if kind.is_float32():  # 36.7 is meant, not 36.70000076
        return raw.cast("string").cast("float64")
    if kind.is_boolean():
        return raw.cast("int64").cast("float64")
    return raw.cast("float64") if kind.is_numeric() else ibis.null("float64")


def _from_text(raw: Any, settings: TableSettings | None) -> Any:
    """A number's text with a decimal point and without groups of digits."""
    if settings is None or (settings.decimal == "." and not settings.thousands):
        return raw
    if mark := settings.thousands:  # only where it stands between groups of three: 1.5 is not fifteen
        grouped = rf"^\s*[-+]?\d{{1,3}}([{re.escape(mark)}]\d{{3}})+([{re.escape(settings.decimal)}]\d*)?\s*$"
        raw = ibis.ifelse(raw.re_search(grouped), raw.replace(mark, ""), raw)
    if settings.decimal == ",":
        raw = ibis.ifelse(raw.contains("."), ibis.null("string"), raw.replace(",", "."))
    return raw


def _expected_number(settings: TableSettings) -> Callable[[str], str]:
    otherwise = 'what means "no value" is listed in missing; unparsed = "missing" takes all of these for missing'

    def said(example: str) -> str:
        if settings.decimal == "." and re.fullmatch(r"[-+]?\d+(\.\d{3})*,\d+", example):
            return 'a number; if this is one, set decimal = ","'
        if settings.decimal == "," and re.fullmatch(r"[-+]?[\d.]+(,\d+)?", example):
            return 'a number with a decimal comma; set decimal = ".", or thousands = "." if the point groups digits'
        return f"a number ({otherwise})"

    return said


def wrong(table: Any, readings: Sequence[Reading], stay: Reading) -> list[str]:
    """What is not what the settings say it is, each column with how often and one example."""
    counts: dict[str, Any] = {"nobody": stay.raw.isnull().sum()}
    for i, reading in enumerate(readings):
        text = reading.raw.cast("string")
        counts |= {f"count_{i}": reading.wrong.sum(), f"example_{i}": text.min(where=reading.wrong)}
    row = table.agg(**counts).to_pyarrow().to_pylist()[0]
    found = []
    for i, reading in enumerate(readings):
        if row[f"count_{i}"]:
            example = row[f"example_{i}"]
            expected = reading.expected if isinstance(reading.expected, str) else reading.expected(str(example))
            count = many(row[f"count_{i}"], "value")
            found.append(f"{reading.label}: {count}, such as {cell(example)}; expected {expected}")
    if row["nobody"]:
        found.append(f"{stay.label}: {many(row['nobody'], 'row')} without a stay; every row belongs to one")
    return found
