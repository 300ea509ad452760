"""One Parquet table, written a part at a time."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa

from timediff.data.cohort import Cohort
from timediff.data.parquet import parquet_writer
from timediff.data.parts import Parts
from timediff.data.provenance import with_provenance
from timediff.runtime.progress import Progress


def write_parts(parts: Parts, path: Path, table_of: Callable[[Cohort], pa.Table], progress: Progress) -> None:
    """Writes the tables of all parts into one file, which says where a synthetic cohort is from."""
    done, writer = 0, None
    with ExitStack() as files:
        for part in parts:
            table = table_of(part)
            if writer is None:
                writer = files.enter_context(parquet_writer(path, with_provenance(table.schema, parts.provenance)))
            writer.write_table(table)
            done += len(part)
            progress(done, len(parts))
