"""Parquet, wide: one table with a row a stay and step, its static values repeated at every step."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from timediff.data.cohort import Cohort
from timediff.data.parts import Parts
from timediff.exports.base import Export, write_schema
from timediff.exports.parquet import write_parts
from timediff.runtime.progress import Progress


class WideParquet(Export):
    def write(self, parts: Parts, out: Path, progress: Progress) -> None:
        write_schema(parts, out)
        write_parts(parts, out / "cohort.parquet", wide, progress)


def wide(cohort: Cohort) -> pa.Table:
    """stay_id, step, temporal features, then static ones, and length where stays have different ones."""
    series, static = cohort.tables()
    stay = pa.array(np.repeat(np.arange(len(cohort)), cohort.lengths))
    for name in static.column_names[1:]:
        series = series.append_column(name, static[name].combine_chunks().take(stay))
    return series
