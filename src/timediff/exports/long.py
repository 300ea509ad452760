"""Parquet, long: one table with a row an observed value, its number in `value` or its text in `text`."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.data.parts import Parts
from timediff.data.schema import Feature
from timediff.exports.base import Export, write_schema
from timediff.exports.parquet import write_parts
from timediff.runtime.progress import Progress

LENGTH = "length"  # no feature can have this name


class LongParquet(Export):
    def write(self, parts: Parts, out: Path, progress: Progress) -> None:
        write_schema(parts, out)
        write_parts(parts, out / "cohort.parquet", long, progress)


def long(cohort: Cohort) -> pa.Table:
    """stay_id, step (null of a static value), feature, value, text; each stay begins with its length."""
    found = list(_observed(cohort))
    stay, step, number = (np.concatenate([one[i] for one in found]) for i in range(3))
    rows = pa.concat_tables([one[3] for one in found])
    order = pa.array(np.lexsort((number, step, stay)))
    columns = {
        "stay_id": pa.array(cohort.stay_id).take(pa.array(stay)),
        "step": pa.array(step.astype(np.int32), mask=step < 0),
        **dict(zip(rows.column_names, rows.columns, strict=True)),
    }
    return pa.table(columns).take(order)


def _observed(cohort: Cohort) -> Iterator[tuple[Array, Array, Array, pa.Table]]:
    """Of each feature: stay, step (−1 of a static one), the feature's number, and its rows."""
    stays = np.arange(len(cohort))
    nowhere = np.full(len(cohort), -1)
    yield stays, nowhere, nowhere, _rows(LENGTH, pa.array(cohort.lengths.astype(np.float64)))
    for number, feature in enumerate(cohort.schema.features):
        values = cohort.values(feature.name)
        if feature.role == "patient":
            stay, step = stays, nowhere
            texts = pa.array(values).cast(pa.string())
            yield stay, step, np.full(len(stay), number), _rows(feature.name, texts)
            continue
        if feature.scope == "temporal":
            stay, step = np.nonzero(cohort.step_mask & ~np.isnan(values))
            values = values[stay, step]
        else:
            stay = np.flatnonzero(~np.isnan(values))
            step, values = np.full(len(stay), -1), values[stay]
        yield stay, step, np.full(len(stay), number), _rows(feature.name, named(feature, values))


def named(feature: Feature, values: Array) -> pa.Array:
    """Observed values: numbers, or the classes that they are."""
    if not feature.discrete:
        return pa.array(values)
    return pa.array(feature.classes).take(pa.array(values.astype(np.int64)))


def _rows(name: str, values: pa.Array) -> pa.Table:
    textual = pa.types.is_string(values.type)
    return pa.table(
        {
            "feature": pa.array([name]).take(pa.array(np.zeros(len(values), dtype=np.int64))),
            "value": pa.nulls(len(values), pa.float64()) if textual else values.cast(pa.float64(), safe=False),
            "text": values if textual else pa.nulls(len(values), pa.string()),
        }
    )
