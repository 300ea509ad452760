"""How a column of any table is read: what it means, and which values it cannot mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ibis

from timediff.errors import listed
from timediff.runtime.cell_values import cell
from timediff.sources.extraction import many
from timediff.sources.table_settings import UNITS, TableFeature, TableSettings


@dataclass(frozen=True)
class Reading:
    """A column read as what the settings say it is, and which of its rows are something else."""

    label: str
    raw: Any
    value: Any
    wrong: Any
    expected: str
    identity: bool = False  # names somebody, so is no quantity


def identity(raw: Any, settings: TableSettings, label: str) -> Reading:
    raw = present(raw, settings)
    if settings.ids == "text":
        return Reading(f"column {label!r}", raw, raw.cast("string"), raw.isnull() & raw.notnull(), "text", True)
    number, exact = as_number(raw), as_number(raw).try_cast("int64")
    if raw.type().is_string() or raw.type().is_integer():  # by way of a double it would be exact only to 2⁵³
        exact = raw.try_cast("int64")
    wrong = raw.notnull() & (number.isnull() | exact.isnull() | (number != number.round()))
    return Reading(f"column {label!r}", raw, exact, wrong, 'a whole number (or set ids = "text")', True)


def time_of(table: Any, column: str, settings: TableSettings) -> Reading:
    """Microseconds since 1970, or since the start of the stay."""
    raw = present(table[column], settings)
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
    number = as_number(raw)
    scale = settings.width if settings.time_unit == "step" else UNITS[settings.time_unit]
    wrong = raw.notnull() & (number.isnull() | number.isinf() | (number.abs() > 1e9))
    return Reading(
        f"column {column!r}", raw, (number * scale).round().try_cast("int64"), wrong, "a number (or set time_unit)"
    )


def value_of(raw: Any, entry: TableFeature, settings: TableSettings, home: str) -> Reading:
    """A feature as numbers: those within its limits, the index of its class, or a patient's id."""
    if entry.role == "patient":
        return identity(raw, settings, entry.place)
    label = f"{'variable' if home == 'variable' else 'column'} {entry.place!r}"
    raw, feature = present(raw, settings), entry.feature
    number = as_number(raw)
    if feature.discrete:
        textual = isinstance(feature.classes[0], str)
        given = raw.cast("string") if textual else number
        index = ibis.cases(*((given == c, ibis.literal(float(i))) for i, c in enumerate(feature.classes)))
        absent = ibis.literal(False) if textual else number.isnan().fill_null(False)
        expected = f"one of its classes ({listed(feature.classes, most=8)})"
        return Reading(label, raw, index, raw.notnull() & index.isnull() & ~absent, expected)
    wrong = raw.notnull() & (number.isnull() | number.isinf())
    value = ibis.ifelse(number.isnan(), ibis.null(), number)
    return Reading(label, raw, entry.within(value), wrong, 'a number (what means "no value" is listed in missing)')


def present(raw: Any, settings: TableSettings) -> Any:
    if not raw.type().is_string():
        return raw
    raw = raw.strip()
    return ibis.ifelse(raw.isin(["", *settings.missing]), ibis.null(), raw)


def as_number(raw: Any) -> Any:
    kind = raw.type()
    if kind.is_string():
        return raw.try_cast("float64")
    if kind.is_float32():  # 36.7 is meant, not 36.70000076
        return raw.cast("string").cast("float64")
    if kind.is_boolean():
        return raw.cast("int64").cast("float64")
    return raw.cast("float64") if kind.is_numeric() else ibis.null("float64")


def wrong(table: Any, readings: Sequence[Reading], stay: Reading) -> list[str]:
    """What is not what the settings say it is, each column with how often and one example."""
    counts: dict[str, Any] = {"nobody": stay.raw.isnull().sum()}
    for i, reading in enumerate(readings):
        text = reading.raw.cast("string")
        counts |= {f"count_{i}": reading.wrong.sum(), f"example_{i}": text.min(where=reading.wrong)}
    row = table.agg(**counts).to_pyarrow().to_pylist()[0]
    found = [
        f"{reading.label}: {many(row[f'count_{i}'], 'value')}, such as {cell(row[f'example_{i}'])}; "
        f"expected {reading.expected}"
        for i, reading in enumerate(readings)
        if row[f"count_{i}"]
    ]
    if row["nobody"]:
        found.append(f"{stay.label}: {many(row['nobody'], 'row')} without a stay; every row belongs to one")
    return found
