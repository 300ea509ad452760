"""Small text files and Parquet files as Arrow tables: what both PhysioNet challenges need."""

import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv

from timediff.errors import Problems, TimeDiffError, listed
from timediff.sources import sql
from timediff.sources.driver_messages import arrow_reason
from timediff.sources.engines import Files
from timediff.sources.extraction import File
from timediff.sources.table_files import parquet_schema

MOST_DIGITS = 18  # of a stay's number, which is 64 bits wide


def read(path: Path) -> File:
    return File(path.name, path.read_bytes())


def read_parquet(engine: Files, path: Path, view: str) -> Any:
    return engine.open(path, lambda file: sql.select(sql.parquet_relation(file)), view)


def exact(column: Any) -> Any:
    """A column as doubles, NaN as null; the single-precision 92.33 becomes 92.33, as in the text it was made from."""
    double = column.cast("string").cast("float64") if column.type().is_float32() else column.cast("float64")
    return double.nullif(float("nan"))


def require_numbers(path: Path, wanted: Mapping[str, bool]) -> None:
    """Checks a Parquet file's columns; those with True hold numbers."""
    schema = parquet_schema(path)
    counts = Counter(schema.names)
    found = [f"there is no column {name}" for name in wanted if not counts[name]]
    found += [f"the column {name} is there twice" for name in wanted if counts[name] > 1]
    for name, numeric in wanted.items():
        if numeric and counts[name] == 1:
            kind = schema.field(name).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                found.append(f"the column {name} is {kind}; expected numbers")
    if found:
        raise Problems(str(path), found)


def read_texts(files: Sequence[File], kinds: Mapping[str, pa.DataType], delimiter: str) -> pa.Table:
    """Many small tables, one a stay, as one: the columns `kinds`, and stay_id, the number in the file's name."""
    header = _header(files[0], delimiter)
    bodies, counts = [], []
    for file in files:
        if file.content and _header(file, delimiter) != header:
            raise Problems(file.name, [f"its header is not that of {files[0].name}; expected {listed(list(kinds))}"])
        lines = [line for line in file.content.splitlines()[1:] if line.strip()]
        bodies.append(b"\n".join([*lines, b""]))
        counts.append(len(lines))
    if missing := [name for name in kinds if name not in header]:
        raise Problems(files[0].name, [f"there is no column {name}" for name in missing])
    try:
        table = _parsed(b"".join(bodies), header, kinds, delimiter)
    except pa.ArrowException:
        _blame(files, bodies, header, kinds, delimiter)
        raise
    return table.append_column("stay_id", pa.array(np.repeat([number_in(file) for file in files], counts)))


def _header(file: File, delimiter: str) -> list[str]:
    first = file.content.partition(b"\n")[0].decode(errors="replace").strip().lstrip("\ufeff")
    return [name.strip() for name in first.split(delimiter)]


def _parsed(body: bytes, header: Sequence[str], kinds: Mapping[str, pa.DataType], delimiter: str) -> pa.Table:
    if not body:
        return pa.table({name: pa.array([], kind) for name, kind in kinds.items()})
    return csv.read_csv(
        io.BytesIO(body),
        read_options=csv.ReadOptions(column_names=header),
        parse_options=csv.ParseOptions(delimiter=delimiter, quote_char=False),
        convert_options=csv.ConvertOptions(
            column_types=kinds, include_columns=list(kinds), null_values=["", "NaN", "nan"], strings_can_be_null=True
        ),
    )


def _blame(files: Sequence[File], bodies: Sequence[bytes], *how: Any) -> None:
    """Says which file it was that could not be read."""
    for file, body in zip(files, bodies, strict=True):
        try:
            _parsed(body, *how)
        except pa.ArrowException as error:
            raise Problems(file.name, [f"a line cannot be read ({arrow_reason(error, how[0])})"]) from error


def number_in(file: File) -> int:
    digits = re.search(r"\d+", file.name)
    assert digits is not None  # only files that are named by a number are read
    if len(digits[0]) > MOST_DIGITS:
        raise TimeDiffError(
            f"{file.name[:40]}: the number of its stay has {len(digits[0])} digits; expected at most {MOST_DIGITS}."
        )
    return int(digits[0])
