"""Arrow tables → gzipped CSV files, byte for byte the same every time."""

import gzip
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from timediff.data.arrays import Array

LEVEL = 3  # nearly as small as 6, in half the time
OPTIONS = csv.WriteOptions(include_header=False, quoting_style="needed", batch_size=65_536)


@contextmanager
def csv_gz(path: Path) -> Iterator[Callable[[pa.Table], None]]:
    """Yields `append(table)`, which streams tables with the same columns into one file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # No name and no time in the gzip header: they would make equal tables unequal files.
    with path.open("wb") as raw, gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as file:
        begun = False

        def append(table: pa.Table) -> None:
            nonlocal begun
            if not begun:  # the published headers are not quoted, as Arrow's would be
                file.write((",".join(table.column_names) + "\n").encode())
                begun = True
            csv.write_csv(table, file, OPTIONS)

        yield append


def write_csv_gz(path: Path, columns: Mapping[str, Any]) -> None:
    with csv_gz(path) as append:
        append(pa.table({name: column(values) for name, values in columns.items()}))


def column(values: Any) -> Any:
    """Arrow's array; NaN and NaT are empty fields."""
    return pa.array(values, from_pandas=True) if isinstance(values, np.ndarray) else values


def time(seconds: Array, absent: Array | None = None) -> Array:
    """Seconds since 1970 as a time, empty where `absent`."""
    times = seconds.astype("datetime64[s]")
    return times if absent is None else np.where(absent, np.datetime64("NaT", "s"), times)


def choice(rng: np.random.Generator, words: Sequence[str | None], size: int) -> Any:
    """A column of `words` chosen at random; None is an empty field."""
    return words_at(words, rng.integers(len(words), size=size))


def words_at(words: Sequence[str | None], index: Array) -> Any:
    return pa.array(words, pa.string()).take(pa.array(index))


def empty(size: int) -> Any:
    return pa.nulls(size, pa.string())
