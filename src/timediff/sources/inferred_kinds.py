"""What each column holds: its kind, classes and their spellings, unit and resolution."""

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from timediff.data.schema import RESERVED, Kind
from timediff.errors import TimeDiffError
from timediff.sources.column_names import is_identifier, with_unit
from timediff.sources.column_profiles import (
    FEW_TEXTS,
    FREE_TEXT,
    LARGEST_CODE,
    MOST_CLASSES,
    MOST_CODES,
    Profile,
    numbers,
    resolution,
    same_meaning,
    texts,
)
from timediff.sources.table_settings import TableFeature, TableSettings
from timediff.sources.units import named


@dataclass(frozen=True, eq=False)  # what Ibis compares is an expression
class Column:
    """A column of a table, or the values of one variable of a long one."""

    place: str
    scope: str
    table: Any
    raw: Any
    profile: Profile
    unit: str | None = None
    unit_column: str | None = None


def named_feature(place: str) -> tuple[str, str | None]:
    """A feature's name, and its column where that is called something else."""
    name, _ = with_unit(place)
    name = f"{name}_value" if name in RESERVED else name
    return name, None if name == place else place


class Kinds:
    """Features of columns; `value` is the column of values of a long table, and `notes` grow."""

    def __init__(self, form: TableSettings, value: str | None, notes: list[str]) -> None:
        self.form, self.value, self.notes = form, value, notes

    def feature(self, column: Column, label: Column | None) -> TableFeature | None:
        known, is_label = column.profile, column is label
        name, place = named_feature(column.place)
        role = "label" if is_label else None
        scope = cast(Any, column.scope)
        if not is_label and is_identifier(column.place) and known.kind in ("number", "text"):
            return self._left_out(column, "it seems to identify something")
        if known.kind == "boolean":
            return TableFeature(name, place, "binary", scope, role)
        if known.kind == "text" or (is_label and known.kind != "number"):
            return self._classes(column, name, place, role)
        if known.kind == "duration" and not is_label:
            return TableFeature(name, place, "continuous", scope, unit="h")
        if known.kind != "number":
            what = {"moment": "it holds dates or times", "empty": "it has no value"}[known.kind]
            return self._left_out(column, what)
        return self._numeric(column, name, place, role)

    def _numeric(self, column: Column, name: str, place: str | None, role: str | None) -> TableFeature:
        scope, known = cast(Any, column.scope), column.profile
        if strange := known.present - known.numbers:
            self.notes.append(
                f"column {column.place!r}: {strange:,} of {known.present:,} values are no numbers; list them in "
                'missing, or set unparsed = "missing"'
            )
        unit, rows, raw = self._unit(column)
        values = numbers(rows, raw, self.form)
        whole = bool((values == np.round(values)).all())
        codes = tuple(int(value) for value in values) if whole and len(values) <= MOST_CLASSES else ()
        if role == "label" and len(codes) < 2:
            raise TimeDiffError(f"the label {column.place!r} has {len(values):,} different numbers; expected classes.")
        few = len(codes) == 2 or (column.scope == "static" and 2 < len(codes) <= MOST_CODES)
        few = few and min(codes) >= 0 and max(codes) <= LARGEST_CODE
        if (few or role == "label") and unit is None:
            kind: Kind = "binary" if len(codes) == 2 else "categorical"
            if kind == "categorical" and role is None:
                self.notes.append(f"column {column.place!r} has {len(codes)} whole numbers, taken for classes")
            return TableFeature(name, place, kind, scope, role, classes=() if codes == (0, 1) else codes)
        if len(values) == 1:
            self.notes.append(f"column {column.place!r} has one value alone; fit needs --allow-constant for it")
        return TableFeature(
            name, place, "continuous", scope, unit=unit, resolution=resolution(values),
            unit_column=column.unit_column if self.value is None else None,
        )  # fmt: skip

    def _unit(self, column: Column) -> tuple[str | None, Any, Any]:
        """The unit of most values, and the rows that have it."""
        unit = with_unit(column.place)[1]
        if column.unit_column is None:
            return unit, column.table, column.raw
        text = column.table[column.unit_column].cast("string").strip()
        counts = texts(column.table, column.table[column.unit_column], self.form)
        if not counts:
            return unit, column.table, column.raw
        by_name: dict[str, int] = {}
        for spelling, count in counts.items():
            by_name[named(spelling)] = by_name.get(named(spelling), 0) + count
        unit = max(by_name, key=lambda one: by_name[one])
        if len(by_name) > 1:
            self.notes.append(f"{column.place!r} has {len(by_name)} units; all are brought to {unit}, which most have")
        rows = column.table.filter(text.isin([spelling for spelling in counts if named(spelling) == unit]))
        return unit, rows, rows[self.value if self.value is not None else column.place]

    def _classes(self, column: Column, name: str, place: str | None, role: str | None) -> TableFeature | None:
        many = column.profile.distinct
        if many > MOST_CLASSES or (many > FEW_TEXTS and many > FREE_TEXT * column.profile.present):
            if role == "label":
                raise TimeDiffError(f"the label {column.place!r} has {many:,} different texts; expected classes.")
            return self._left_out(column, f"it has {many:,} different texts")
        classes, spellings = same_meaning(texts(column.table, column.raw, self.form))
        if len(classes) < 2:
            if role == "label":
                raise TimeDiffError(f"the label {column.place!r} has one class alone; expected at least two.")
            return self._left_out(column, "it has one text alone")
        if spellings:
            self.notes.append(f"column {column.place!r}: several spellings are taken for one class; see spellings")
        kind: Kind = "binary" if len(classes) == 2 else "categorical"
        kept = () if classes == (0, 1) else classes
        return TableFeature(
            name, place, kind, cast(Any, column.scope), role, classes=kept, spellings=spellings or None
        )  # fmt: skip

    def _left_out(self, column: Column, why: str) -> TableFeature | None:
        self.notes.append(f"column {column.place!r} is left out: {why}")
        return None
