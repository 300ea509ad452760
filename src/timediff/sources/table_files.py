"""Files of tables: which file a table is in, and what its columns are called."""

import csv
import io
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from timediff.errors import Problems, listed
from timediff.sources.gzip_files import Damaged, damage, is_gzip, unpacked

SUFFIXES = (".parquet", ".csv", ".csv.gz")  # in this order, where a table is there in several
LONGEST_HEADER = 2**20  # bytes


def find(folder: Path, table: str) -> Path:
    """The file of a table, in the folder or one below it, in upper or lower case."""
    by_name = {path.name.lower(): path for path in reversed(tables_in(folder))}
    for suffix in SUFFIXES:
        if path := by_name.get(f"{table}{suffix}".lower()):
            return path
    raise Problems(
        str(folder), [f"there is no {table}.csv, {table}.csv.gz or {table}.parquet in {folder} or its folders"]
    )


def tables_in(folder: Path) -> list[Path]:
    """The files of tables in a folder and one below it."""
    paths = sorted([*folder.iterdir(), *folder.glob("*/*")])
    return [path for path in paths if path.name.lower().endswith(SUFFIXES) and path.is_file()]


def is_parquet(path: Path) -> bool:
    return path.name.lower().endswith(".parquet")


def parquet_schema(path: Path) -> pa.Schema:
    try:
        return pq.read_schema(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Problems(path.name, [f"{path.name} is not a readable Parquet file; copy or make it again"]) from error


def header_of(path: Path, separator: str = ",", encoding: str = "utf-8") -> list[str]:
    """The column names of a file, as they are written."""
    if is_parquet(path):
        return list(parquet_schema(path).names)
    try:
        start = _start(path)
        known = "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding
        text = io.StringIO(start.decode(known, errors="replace"), newline="")
        names = [name.strip() for name in next(csv.reader(text, delimiter=separator), [])]
    except Damaged as error:
        raise Problems(path.name, [damage(path, error)]) from error
    except (OSError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else "its first line is no list of names"
        raise Problems(path.name, [f"{path.name} cannot be read ({reason})"]) from error
    if len(start) >= LONGEST_HEADER and b"\n" not in start and b"\r" not in start:
        raise Problems(path.name, [f"the first line has more than {LONGEST_HEADER:,} bytes; expected names of columns"])
    if bad := [number for number, name in enumerate(names, 1) if "\0" in name or "\ufffd" in name]:
        where = listed(bad)
        what = f"the name of column {where} is not a text in {encoding.upper()}; rename it in the first line"
        raise Problems(path.name, [f"{what}, or set encoding to what the file is in, such as latin-1 or utf-16"])
    return names


def repeated(names: Sequence[str]) -> list[str]:
    """Names that several columns have, whatever their case."""
    counts = Counter(name.lower() for name in names)
    return sorted(name for name, count in counts.items() if count > 1)


def _start(path: Path) -> bytes:
    """The first bytes of a file, unpacked."""
    if is_gzip(path):
        start = b""
        for piece in unpacked(path):
            start += piece
            if b"\n" in start or len(start) >= LONGEST_HEADER:
                break
        return start[:LONGEST_HEADER]
    with path.open("rb") as file:
        return file.read(LONGEST_HEADER)
