"""A cohort as the tables that people compute with, and from them: Arrow, pandas, Polars, DuckDB; classes by name."""

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from timediff.data.arrays import Array
from timediff.data.provenance import with_provenance
from timediff.data.schema import Feature, Schema
from timediff.errors import Problems, TimeDiffError, listed

if TYPE_CHECKING:
    from timediff.data.cohort import Cohort

MOST_NAMES = 12  # of features that a line shows


class Frames(NamedTuple):
    """Two tables of one kind."""

    series: Any  # a row a stay and step: stay_id, step, temporal features
    static: Any  # a row a stay: stay_id, static features, length where stays have different ones


def is_frame(given: object) -> bool:
    """Whether something is a table in memory: it speaks Arrow, or the interchange protocol of data frames."""
    return isinstance(given, pa.Table | pa.RecordBatch) or any(
        hasattr(given, way) for way in ("__arrow_c_stream__", "__dataframe__", "to_pyarrow")
    )


def to_arrow(frame: Any) -> pa.Table:
    """Any data frame as an Arrow table; an index that has a name is a column of it."""
    try:
        if isinstance(frame, pa.Table):
            return frame
        if isinstance(frame, pa.RecordBatch):
            return pa.Table.from_batches([frame])
        if hasattr(frame, "__arrow_c_stream__"):
            return pa.table(frame)
        if hasattr(frame, "to_pyarrow"):
            return frame.to_pyarrow()
        if hasattr(frame, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            return from_dataframe(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        column = getattr(error, "args", ("",))[-1]
        named = column if isinstance(column, str) and column.startswith("Conversion failed for column") else ""
        where = named.partition(" with type")[0].removeprefix("Conversion failed for column ")
        raise TimeDiffError(
            f"the data frame has {f'a column {where!r}' if where else 'a column'} that Arrow cannot hold, such as one "
            "of texts and numbers together: bring each column to one type."
        ) from error
    raise TimeDiffError(
        f"given {type(frame).__name__}; expected a data frame of pandas, Polars, PyArrow or DuckDB, or anything else "
        "that has __arrow_c_stream__ or __dataframe__."
    )


def from_frames(series: Any, static: Any, schema: Any, options: Any) -> "Cohort":
    """A cohort from data frames. Those that have its layout and a schema are read as they are; others are extracted."""
    from timediff.data.cohort import Cohort

    if isinstance(schema, Schema) and not isinstance(static, list | tuple):
        tables = to_arrow(series), None if static is None else to_arrow(static)
        if {"stay_id", "step"} <= set(tables[0].column_names):
            return Cohort.from_tables(schema, _without_index(tables[0]), _without_index(tables[1]), "frames")
    # By its place, as registries do: data/ knows no sources.
    cohort: Cohort = import_module("timediff.sources.frames").extracted(series, static, schema, **options)
    return cohort


def _without_index(table: Any) -> Any:
    """Without the nameless index that pandas keeps."""
    if table is None:
        return None
    return table.select([name for name in table.column_names if not name.startswith("__index_level_")])


def to_frames(cohort: "Cohort") -> Frames:
    """Arrow tables, which say where a synthetic cohort is from."""
    series, static = (
        table.replace_schema_metadata(with_provenance(table.schema, cohort.provenance).metadata)
        for table in cohort.tables()
    )
    return Frames(series, static)


def to_pandas(cohort: "Cohort") -> Frames:
    """Data frames; whole numbers of classes stay whole beside missing ones (Int64)."""
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise _absent("pandas", error) from error

    def frame(table: pa.Table) -> Any:
        found = table.to_pandas()
        for feature in cohort.schema.features:
            if feature.name in found.columns and feature.discrete and pa.types.is_integer(table[feature.name].type):
                found[feature.name] = pd.array(table[feature.name].to_pylist(), dtype="Int64")
        return found

    return Frames(*map(frame, cohort.tables()))


def to_polars(cohort: "Cohort") -> Frames:
    """Polars data frames."""
    try:
        import polars as pl
    except ModuleNotFoundError as error:
        raise _absent("polars", error) from error
    return Frames(*map(pl.from_arrow, cohort.tables()))


def named_values(feature: Feature, values: Array) -> Array:
    """The names of classes, None where missing; numbers, and patients, as they are."""
    if not feature.discrete or feature.role == "patient":
        return values
    absent = np.isnan(values)
    known = absent | np.isin(values, np.arange(len(feature.classes)))
    if not known.all():
        raise Problems("cohort", [f"{feature.name!r}: {(~known).sum():,} values are none of its classes"])
    names = np.empty(len(feature.classes) + 1, dtype=object)
    names[:-1] = feature.classes
    return np.asarray(names[np.where(absent, -1, values).astype(np.int64)])


def require_feature(schema: Schema, name: object) -> Feature:
    if isinstance(name, str) and name in schema:
        return schema[name]
    names = [feature.name for feature in schema.features]
    if not isinstance(name, str):
        raise TimeDiffError(f"given a value of type {type(name).__name__}; expected the name of a feature.")
    near = difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean {near[0]!r}? The" if near else "the"
    raise TimeDiffError(f"there is no feature {listed([name])}; {hint} features are {listed(names, MOST_NAMES)}.")


def described(cohort: "Cohort") -> str:
    """Shape, features and where it is from, and no value of any stay."""
    schema = cohort.schema
    lines = [
        f"Cohort: {len(cohort):,} stays of {'up to ' if cohort.length is not None else ''}{schema.steps:,} steps of "
        f"{schema.step}"
    ]
    for scope, features in (("temporal", schema.temporal), ("static", schema.static)):
        names = [f"{f.name} ({f.role})" if f.role else f.name for f in features[:MOST_NAMES]]
        more = f" and {len(features) - MOST_NAMES:,} more" if len(features) > MOST_NAMES else ""
        lines.append(f"  {len(features):,} {scope}: {', '.join(names) or 'none'}{more}")
    return "\n".join([*lines, *([f"  {cohort.provenance}"] if cohort.provenance else [])])


def _absent(package: str, error: ModuleNotFoundError) -> TimeDiffError:
    if error.name != package:
        raise error
    return TimeDiffError(
        f"to_{package} needs {package}: pip install {package}. to_frames gives Arrow tables without it."
    )
