"""Parquet files that carry a hash of themselves: a changed byte is noticed, whichever it is.

The hash lies between the last page and the footer, where every reader of Parquet passes over it. A file that another
tool has written again has none and is read as it is, but for the checksums of its pages where it has those.
"""

import hashlib
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from timediff.errors import Problems

MARK = b"TimeDiff SHA-256"
SEAL = len(MARK) + 32
TAIL = 8  # the footer's size, and PAR1
AT_ONCE = 2**20


@contextmanager
def parquet_writer(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """Yields a writer of tables; what it has written gets its hash when the block ends well."""
    with (
        path.open("wb") as file,  # by Python, for names that Arrow cannot read
        pq.ParquetWriter(file, schema, compression="zstd", write_page_checksum=True) as writer,
    ):
        yield writer
    _seal(path)


def write_parquet(path: Path, table: pa.Table) -> None:
    with parquet_writer(path, table.schema) as writer:
        writer.write_table(table)


def read_parquet(path: Path) -> pa.Table:
    """The table of a file that is as it was written, as far as that can be known."""
    with parquet_file(path) as file:
        return file.read()


@contextmanager
def parquet_file(path: Path) -> Iterator[pq.ParquetFile]:
    """Yields the same file, to be read a part at a time."""
    try:
        with path.open("rb") as file:
            if not _is_sound(file):
                raise Problems(str(path), ["damaged: its bytes are not those that were written; write it again"])
            yield pq.ParquetFile(file, page_checksum_verification=True)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise Problems(str(path), [f"not a readable Parquet file ({reason[:200]})"]) from error


def _seal(path: Path) -> None:
    with path.open("r+b") as file:
        footer = _footer_start(file)
        if footer is None:
            raise OSError(f"{path} was not written whole")
        file.seek(footer)
        rest = file.read()
        hashed = _hashed(file, footer, rest)
        file.seek(footer)
        file.write(MARK + hashed + rest)


def _is_sound(file: BinaryIO) -> bool:
    """Whether a file is what its hash says; one without a hash may be."""
    footer = _footer_start(file)
    if footer is None or footer < SEAL:
        return True
    file.seek(footer - SEAL)
    mark, hashed = file.read(len(MARK)), file.read(32)
    return mark != MARK or hashed == _hashed(file, footer - SEAL, file.read())


def _hashed(file: BinaryIO, end: int, rest: bytes) -> bytes:
    """Of the bytes before the hash, and of those after it."""
    state = hashlib.sha256()
    file.seek(0)
    while end > 0 and (part := file.read(min(AT_ONCE, end))):
        state.update(part)
        end -= len(part)
    state.update(rest)
    return state.digest()


def _footer_start(file: BinaryIO) -> int | None:
    size = file.seek(0, os.SEEK_END)
    if size < TAIL:
        return None
    file.seek(size - TAIL)
    start = size - TAIL - int(struct.unpack("<I4x", file.read(TAIL))[0])
    return start if start >= 0 else None
