"""A cohort a part at a time: memory for some of its stays, however many there are."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from timediff.data.arrays import Array
from timediff.data.cohort import CHUNK, Cohort, read_cohort, schema_in
from timediff.data.parquet import parquet_file, read_parquet
from timediff.data.provenance import CohortProvenance, read_provenance
from timediff.data.schema import Schema
from timediff.data.tables import row_of_stay

CELLS = 2_000_000  # of a part: 16 MB as doubles


@dataclass(frozen=True)
class Parts:
    """What is known of all stays at once, and, when it is iterated over, cohorts of consecutive stays."""

    schema: Schema
    stay_id: Array  # (N,)
    lengths: Array  # (N,)
    patient: Array | None  # (N,)
    provenance: CohortProvenance | None
    size: int  # stays of each part but the last
    read: Callable[[], Iterator[Cohort]]

    def __len__(self) -> int:
        return len(self.stay_id)

    @property
    def ragged(self) -> bool:
        return bool((self.lengths != self.schema.steps).any())

    def __iter__(self) -> Iterator[Cohort]:
        """All parts of a ragged cohort carry their lengths, so that they have the same columns."""
        ragged = self.ragged
        for part in self.read():
            yield replace(part, length=part.lengths if ragged else None, provenance=self.provenance)


def parts_of(cohort: Cohort | str | Path, size: int | None = None) -> Parts:
    """The parts of a cohort, or of a cohort folder, of which only a part is read at a time.

    A folder whose rows are not in the order of its stays is read as a whole.
    """
    if isinstance(cohort, Cohort):
        return _of_cohort(cohort, size)
    folder = Path(cohort)
    return _of_folder(folder, size) or _of_cohort(read_cohort(folder), size)


def _of_cohort(cohort: Cohort, size: int | None) -> Parts:
    size = size or stays_in_part(cohort.schema)
    patient = cohort.schema.patient

    def read() -> Iterator[Cohort]:
        for start in range(0, len(cohort), size):
            yield cohort.take(np.arange(start, min(start + size, len(cohort))))

    known = None if patient is None else cohort.static[patient.name]
    return Parts(cohort.schema, cohort.stay_id, cohort.lengths, known, cohort.provenance, size, read)


def _of_folder(folder: Path, size: int | None) -> Parts | None:
    """None where the series cannot be read in the order of the stays."""
    schema = schema_in(folder)
    size = size or stays_in_part(schema)
    path, beside = folder / "series.parquet", folder / "static.parquet"
    if not beside.is_file():
        return None
    static = read_parquet(beside)
    if "stay_id" not in static.column_names or not _is_ordered(path, static["stay_id"]):
        return None
    with parquet_file(path) as file:
        columns = file.schema_arrow

    def part(rows: list[pa.Table], start: int) -> Cohort:
        series = pa.concat_tables([columns.empty_table(), *rows])
        return Cohort.from_tables(schema, series, static[start : start + size], str(folder))

    def read() -> Iterator[Cohort]:
        start, rows = 0, list[pa.Table]()
        with parquet_file(path) as file:
            for batch in file.iter_batches():
                table = pa.Table.from_batches([batch], columns)
                stay = np.asarray(row_of_stay(table["stay_id"], static["stay_id"]).to_numpy())
                while len(stay) and stay[-1] >= start + size:  # the part is complete
                    cut = int(np.searchsorted(stay, start + size))
                    yield part([*rows, table[:cut]], start)
                    start, rows, table, stay = start + size, [], table[cut:], stay[cut:]
                rows.append(table)
        for first in range(start, static.num_rows, size):  # the last ones may have no row at all
            yield part(rows if first == start else [], first)

    # What is wrong with a static value is said before anything is written.
    known = [part([], start) for start in range(0, static.num_rows, size)]
    if not known:
        return None
    role = schema.patient
    patient = None if role is None else np.concatenate([one.static[role.name] for one in known])
    stay_id, lengths = (np.concatenate([getattr(one, name) for one in known]) for name in ("stay_id", "lengths"))
    return Parts(schema, stay_id, lengths, patient, read_provenance(folder, columns), size, read)


def _is_ordered(path: Path, stays: pa.ChunkedArray) -> bool:
    """Whether the rows of a series lie in the order of the stays, each of which is there once."""
    if len(pc.unique(stays)) < len(stays):
        return False
    last = 0
    with parquet_file(path) as file:
        if file.schema_arrow.names.count("stay_id") != 1:
            return False
        for batch in file.iter_batches(columns=["stay_id"]):
            try:
                row = row_of_stay(pa.chunked_array([batch.column(0)]), stays)
            except pa.ArrowException:
                return False
            if row.null_count:
                return False
            places = np.asarray(row.to_numpy())
            if len(places) and (places[0] < last or (np.diff(places) < 0).any()):
                return False
            last = int(places[-1]) if len(places) else last
    return True


def stays_in_part(schema: Schema) -> int:
    return max(1, min(CHUNK, CELLS // (schema.steps * len(schema.temporal))))
