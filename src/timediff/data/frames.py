"""A cohort as the tables that people compute with: Arrow, pandas or Polars; classes by name."""

import difflib
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
