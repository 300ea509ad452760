"""Arrow tables ⇄ the arrays of a cohort. Reading finds everything that is wrong before it gives up."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from timediff.data.arrays import Array, Floats
from timediff.data.schema import Feature, Schema
from timediff.errors import Problems, listed
from timediff.runtime.cell_values import cells
from timediff.runtime.sizes import require_memory

LONGEST_TYPE = 60  # characters


class Arrays:
    """One cohort as arrays: series (N, L) and static (N,) by feature name; NaN = missing; classes by their index."""

    def __init__(self, schema: Schema, series: pa.Table, static: pa.Table | None, where: str) -> None:
        self.problems: list[str] = []
        if static is None and schema.static:
            raise Problems(where, ["static.parquet is missing, but the schema has static features"])
        self._check_columns("series.parquet", series, ["stay_id", "step"], schema.temporal)
        if static is not None:
            self._check_columns("static.parquet", static, ["stay_id"], schema.static, optional=("length",))
        if self.problems:
            raise Problems(where, self.problems)
        if static is None:
            static = pa.table({"stay_id": pc.unique(_plain(series["stay_id"]))})

        stays, length = static.num_rows, schema.steps
        if stays == 0:
            raise Problems(where, ["the cohort is empty: static.parquet lists no stay"])
        require_memory(8 * stays * length * len(schema.temporal), f"{where}: {stays:,} stays of {length:,} steps")
        self.stay_id = self._stay_ids(static["stay_id"])
        self.static = {f.name: self._column(f, static[f.name], "static.parquet") for f in schema.static}
        self.length = self._lengths(static, stays, length)
        position = self._positions(series, static["stay_id"], length)
        self.series = {}
        for feature in schema.temporal:
            grid = np.full(stays * length, np.nan)
            values = self._column(feature, series[feature.name], "series.parquet")
            if position is not None:
                grid[position] = values
            self.series[feature.name] = grid.reshape(stays, length)
        if self.problems:
            raise Problems(where, self.problems)

    def _check_columns(
        self, file: str, table: pa.Table, keys: list[str], features: tuple[Feature, ...], optional: tuple[str, ...] = ()
    ) -> None:
        wanted, found = [*keys, *(feature.name for feature in features)], table.column_names
        known, counts = {*wanted, *optional}, Counter(found)
        if absent := [name for name in wanted if name not in counts]:
            self.problems.append(f"{file} has no column {listed(absent)}, which the schema lists")
        if extra := [name for name in counts if name not in known]:
            self.problems.append(f"{file} has a column {listed(extra)} that the schema does not list")
        if twice := [name for name, count in counts.items() if count > 1]:
            self.problems.append(f"{file} has the column {listed(twice)} more than once")
        if counts["stay_id"] == 1 and _family(table["stay_id"].type) not in ("text", "number"):
            self.problems.append(f"{file}: stay_id must be text or whole numbers, not {_type(table['stay_id'])}")

    def _stay_ids(self, column: pa.ChunkedArray) -> Array:
        if column.null_count:
            self.problems.append(f"static.parquet: {column.null_count} rows have no stay_id")
        if repeated := len(column) - len(pc.unique(column)):
            self.problems.append(f"static.parquet: {repeated} rows repeat a stay_id; each stay has one row")
        return _numpy(_plain(column))

    def _lengths(self, static: pa.Table, stays: int, longest: int) -> Array:
        if "length" not in static.column_names:
            return np.full(stays, longest)
        column = static["length"]
        if not pa.types.is_integer(column.type) or column.null_count:
            self.problems.append(
                f"static.parquet: length must be a whole number for every stay, not {_type(column)} with "
                f"{column.null_count:,} nulls"
            )
            return np.full(stays, longest)
        length = _numpy(column).astype(np.int64)
        if outside := int(((length < 1) | (length > longest)).sum()):
            self.problems.append(f"static.parquet: {outside} stays have a length outside 1 to {longest} (grid.steps)")
        return length

    def _positions(self, series: pa.Table, stays: pa.ChunkedArray, length: int) -> Array | None:
        """Where each row of the series belongs in the flat (N · L) grid; None when rows cannot be placed."""
        before = len(self.problems)
        ids, step = series["stay_id"], series["step"]
        if ids.null_count or step.null_count:
            self.problems.append(f"series.parquet: {ids.null_count + step.null_count} nulls in stay_id or step")
        if not pa.types.is_integer(step.type):
            self.problems.append(f"series.parquet: step must be a whole number counted from 0, not {_type(step)}")
        if _family(ids.type) != _family(stays.type):
            self.problems.append(f"stay_id is {_type(ids)} in series.parquet but {_type(stays)} in static.parquet")
        if len(self.problems) > before:
            return None
        try:
            row = row_of_stay(ids, stays)
        except pa.ArrowException:
            self.problems.append(f"stay_id must be text or whole numbers below 2⁶³, not {_type(ids)} with other values")
            return None
        if row.null_count:
            self.problems.append(
                f"series.parquet: {row.null_count} rows belong to a stay that static.parquet does not list"
            )
        steps = _numpy(step).astype(np.int64)
        if outside := int(((steps < 0) | (steps >= length)).sum()):
            self.problems.append(f"series.parquet: {outside} rows have a step outside 0 to {length - 1} (grid.steps)")
        if len(self.problems) > before:
            return None
        stay = _numpy(row).astype(np.int64)
        position = stay * length + steps
        seen = np.zeros(len(stays) * length, dtype=bool)
        seen[position] = True
        if repeated := len(position) - int(seen.sum()):
            self.problems.append(
                f"series.parquet: {repeated} rows repeat the same stay_id and step; each step has one row"
            )
        if late := int((steps >= self.length[stay]).sum()):
            self.problems.append(f"series.parquet: {late} rows lie beyond their stay's length")
        return position

    def _column(self, feature: Feature, column: pa.ChunkedArray, file: str) -> Array:
        where = f"{file}, {feature.name!r}"
        if feature.role == "patient":
            if _family(column.type) not in ("text", "number"):
                self.problems.append(f"{where}: a patient is a text or a number, not {_type(column)}")
                return np.zeros(len(column))
            patients = _numpy(_plain(column))
            absent = column.null_count or int((patients != patients).sum())  # NaN, as pandas keeps a missing number
            if absent:
                self.problems.append(f"{where}: {absent} stays have no patient")
            return patients
        values = self._classes(feature, column, where) if feature.discrete else self._numbers(feature, column, where)
        if feature.role in ("label", "order") and (absent := int(np.isnan(values).sum())):
            self.problems.append(f"{where}: the {feature.role} is missing for {absent} of {len(values)} stays")
        return values

    def _numbers(self, feature: Feature, column: pa.ChunkedArray, where: str) -> Floats:
        kind = column.type
        if pa.types.is_null(kind):
            return np.full(len(column), np.nan)
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            self.problems.append(f"{where}: expected numbers, found {_type(column)}")
            return np.full(len(column), np.nan)
        values: Floats = column.cast(pa.float64(), safe=False).to_numpy()
        if infinite := int(np.isinf(values).sum()):
            self.problems.append(f"{where}: {infinite} infinite values; a missing measurement is a null")
        if feature.bounds:
            low, high = feature.bounds
            if outside := int((np.isfinite(values) & ((values < low) | (values > high))).sum()):
                self.problems.append(f"{where}: {outside} values outside its bounds {low:g} to {high:g}")
        return values

    def _classes(self, feature: Feature, column: pa.ChunkedArray, where: str) -> Floats:
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        textual = isinstance(feature.classes[0], str)
        if _family(column.type) != ("text" if textual else "number"):
            self.problems.append(
                f"{where}: expected {'text' if textual else 'whole numbers'} from its classes "
                f"({listed(feature.classes)}), found {_type(column)}"
            )
            return np.full(len(column), np.nan)
        column = _plain(column)
        if pa.types.is_floating(column.type):  # whole numbers with nulls, as pandas keeps them
            column = pa.chunked_array([pa.array(column.to_numpy(), from_pandas=True)])
        wanted = pa.string() if textual else pa.float64() if pa.types.is_floating(column.type) else pa.int64()
        try:
            column = column.cast(wanted)
        except pa.ArrowException:
            self.problems.append(f"{where}: {_type(column)} with values that are none of its classes")
            return np.full(len(column), np.nan)
        index = pc.index_in(column, value_set=pa.array(feature.classes).cast(wanted))
        strange = pc.unique(column.filter(pc.and_(pc.is_null(index), pc.is_valid(column)))).to_pylist()
        if strange:
            self.problems.append(
                f"{where}: values that are none of its classes ({listed(feature.classes)}): {cells(strange)}"
            )
        return np.asarray(index.cast(pa.float64()).to_numpy())


def row_of_stay(ids: pa.ChunkedArray, stays: pa.ChunkedArray) -> pa.ChunkedArray:
    """Where each id stands among those of the stays; null where it does not."""
    common = pa.string() if _family(ids.type) == "text" else pa.int64()
    return pc.index_in(_plain(ids).cast(common), value_set=_plain(stays).cast(common).combine_chunks())


def series_table(schema: Schema, stay_id: Array, series: Mapping[str, Floats], length: Array | None) -> pa.Table:
    stays, steps = len(stay_id), schema.steps
    length = np.full(stays, steps) if length is None else length
    inside = np.arange(steps) < length[:, None]  # (N, L)
    columns = {
        "stay_id": pa.array(np.repeat(stay_id, length)),
        "step": pa.array(np.broadcast_to(np.arange(steps, dtype=np.int32), (stays, steps))[inside]),
    }
    columns |= {f.name: _arrow(f, series[f.name][inside]) for f in schema.temporal}
    return pa.table(columns)


def static_table(schema: Schema, stay_id: Array, static: Mapping[str, Array], length: Array | None) -> pa.Table:
    columns = {"stay_id": pa.array(stay_id)} | {f.name: _arrow(f, static[f.name]) for f in schema.static}
    if length is not None:
        columns["length"] = pa.array(length)
    return pa.table(columns)


def _arrow(feature: Feature, values: Array) -> pa.Array:
    if feature.role == "patient":
        return pa.array(values)
    if not feature.discrete:
        return pa.array(values, from_pandas=True)
    absent = np.isnan(values)
    known = absent | np.isin(values, np.arange(len(feature.classes)))
    if not known.all():
        raise Problems("cohort", [f"{feature.name!r}: {(~known).sum():,} values are none of its classes"])
    index = pa.array(np.where(absent, 0, values).astype(np.int32), mask=absent)
    return pa.array(feature.classes).take(index)


def _numpy(column: pa.ChunkedArray) -> Array:
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Without the dictionary that pandas' categories and R's factors have."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _family(kind: pa.DataType) -> str:
    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        return "number"
    return str(kind)


def _type(column: pa.ChunkedArray) -> str:
    """A column's type, as short as a sentence wants it."""
    text = str(column.type)
    return text if len(text) <= LONGEST_TYPE else f"{text[:LONGEST_TYPE]}…"
