"""The tables that settings name, wherever they are: text files, Parquet, Excel, or tables in memory.

All columns of text files and of Excel are text, until a number is wanted. Durations count microseconds.
"""

import codecs
import datetime as dt
import hashlib
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from timediff.errors import Problems, TimeDiffError, listed
from timediff.sources import sql
from timediff.sources.engines import Files
from timediff.sources.gzip_files import Damaged, damage, is_gzip, unpacked
from timediff.sources.table_files import header_of, is_parquet, parquet_schema, repeated
from timediff.sources.table_settings import TableSettings

TEXTS = (".csv", ".tsv", ".tab", ".txt", ".psv")
EXCEL = (".xlsx", ".xlsm")
KNOWN = (*TEXTS, *(f"{suffix}.gz" for suffix in TEXTS), ".parquet", *EXCEL)
MICROSECONDS = {"s": 1e6, "ms": 1e3, "us": 1.0, "ns": 1e-3}  # of what a duration counts
PIECE = 2**20  # bytes of a file brought to UTF-8 at a time
MOST_BYTES = 2**31  # of an Excel file, unpacked
UTF8 = ("utf-8", "utf8")

Given: TypeAlias = Path | Any  # a file, or an Arrow table


@dataclass(frozen=True)
class Opened:
    """A table as Ibis sees it."""

    name: str
    table: Any
    durations: frozenset[str] = frozenset()  # columns that are durations, in microseconds


def named_files(path: Path, settings: TableSettings) -> dict[str, Path]:
    """SOURCE and the files that settings name beside it."""
    found = {"": table_file(path)}
    return found | {name: table_file(path.parent / name) for name in settings.files}


def table_file(path: Path) -> Path:
    if not path.is_file():
        raise TimeDiffError(f"{path} is not a file; expected a table as .csv, .tsv, .txt (.gz), .parquet or .xlsx.")
    if not path.name.lower().endswith(KNOWN):
        if path.suffix.lower() == ".xls":
            raise TimeDiffError(f"{path} is an old Excel file; save it as .xlsx or .csv.")
        raise TimeDiffError(f"{path} is neither .csv, .tsv, .txt (.gz), .parquet nor .xlsx; convert it to one of them.")
    return path


def separator_of(path: Path, settings: TableSettings) -> str:
    if settings.separator is not None:
        return settings.separator
    name = path.name.lower().removesuffix(".gz")
    return "\t" if name.endswith((".tsv", ".tab")) else "|" if name.endswith(".psv") else ","


def open_table(engine: Files, given: Given, name: str, view: str, settings: TableSettings) -> Opened:
    """A table with unique names of columns; what is nameless gets a number."""
    if isinstance(given, pa.Table):
        return _in_memory(engine, given, name, view)
    if is_parquet(given):
        schema = parquet_schema(given)
        scales = {field.name: MICROSECONDS[field.type.unit] for field in schema if pa.types.is_duration(field.type)}
        _require_unique(given.name, schema.names)
        table = engine.open(given, lambda file: sql.select(sql.parquet_relation(file)), view)
        scaled = {c: (table[c].cast("float64") * scale).round().cast("int64") for c, scale in scales.items()}
        return Opened(given.name, table.mutate(**scaled) if scaled else table, frozenset(scales))
    if given.name.lower().endswith(EXCEL):
        engine.read.append(given)
        engine.backend.create_table(view, _sheet(given, settings.sheet), temp=True, overwrite=True)
        return Opened(given.name, engine.backend.table(view))
    return _text(engine, given, view, settings)


def _text(engine: Files, path: Path, view: str, settings: TableSettings) -> Opened:
    separator = separator_of(path, settings)
    names = header_of(path, separator, settings.encoding)
    if not any(names):
        raise Problems(path.name, ["there is no line with the columns' names; name each column once in the first line"])
    if len(names) == 1 and (other := next((s for s in ";\t|," if s in names[0] and s != separator), None)):
        what = f"the first line has one column between {separator!r}, and many between {other!r}"
        raise Problems(path.name, [f"{what}; set separator = {sql_free(other)}"])
    names = [name or f"column {i}" for i, name in enumerate(names, 1)]  # pandas and R leave the index nameless
    _require_unique(path.name, names)
    types = dict.fromkeys(names, "VARCHAR")
    if settings.encoding.lower().replace("_", "-") in UTF8:
        table = engine.open(path, lambda file: sql.select(sql.csv_relation(file, types, separator)), view)
        return Opened(path.name, table)
    engine.read.append(path)
    file = engine.duckdb.folder / f"utf8_{len(engine.read)}.csv"
    with file.open("wb") as written:
        for piece in _utf8(path, settings.encoding):
            written.write(piece)
    engine.duckdb.names[file.name] = path.name
    engine.duckdb.run(sql.view(view, sql.select(sql.csv_relation(file, types, separator))))
    return Opened(path.name, engine.backend.table(view))


def sql_free(separator: str) -> str:
    """A separator as TOML has it."""
    return '"\\t"' if separator == "\t" else f'"{separator}"'


def _utf8(path: Path, encoding: str) -> Iterator[bytes]:
    """The bytes of a text file in UTF-8."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for piece in unpacked(path) if is_gzip(path) else _pieces(path):
            yield decoder.decode(piece).encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except Damaged as error:
        raise Problems(path.name, [damage(path, error)]) from error
    except UnicodeError as error:
        raise Problems(path.name, [f"there are bytes that are no text in {encoding}; set another encoding"]) from error


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def _require_unique(name: str, columns: list[str]) -> None:
    if twice := repeated(columns):
        raise Problems(
            name, [f"two columns are called {listed(twice)}; name each column once{_first_line(name)}"]
        )  # fmt: skip


def _first_line(name: str) -> str:
    return "" if name.lower().endswith(".parquet") else " in the first line"


def _in_memory(engine: Files, table: pa.Table, name: str, view: str) -> Opened:
    _require_unique(name, table.column_names)
    columns, durations = {}, set()
    for column, values in zip(table.column_names, table.columns, strict=True):
        kind = values.type
        if pa.types.is_dictionary(kind):
            values = values.cast(kind.value_type)
        elif pa.types.is_duration(kind):
            values = values.cast(pa.duration("us"), safe=False).cast(pa.int64())
            durations.add(column)
        elif pa.types.is_interval(kind):
            values = pa.array([None if v is None else _microseconds(v) for v in values.to_pylist()], pa.int64())
            durations.add(column)
        elif pa.types.is_null(kind):
            values = values.cast(pa.string())
        elif pa.types.is_nested(kind) or pa.types.is_binary(kind):
            continue
        columns[column] = values
    plain = pa.table(columns)
    state = hashlib.sha256()
    for batch in plain.to_batches():
        for buffer in (buffer for values in batch.columns for buffer in values.buffers() if buffer is not None):
            state.update(buffer)
    engine.hashes.append(f"{name} {plain.num_rows} {plain.schema} {state.hexdigest()}")
    engine.backend.create_table(view, plain, temp=True, overwrite=True)
    return Opened(name, engine.backend.table(view), frozenset(durations))


def _microseconds(interval: Any) -> int:
    """Of DuckDB's intervals; a month is thirty days."""
    return int((interval.months * 30 + interval.days) * 86_400_000_000 + interval.nanoseconds // 1000)


def _sheet(path: Path, sheet: str | None) -> pa.Table:
    """A sheet's cells as texts."""
    try:
        import openpyxl
    except ModuleNotFoundError as error:
        how = "pip install 'timediff-icu[excel]', or save it as .csv"
        raise TimeDiffError(f"{path.name} needs openpyxl: {how}.") from error
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(entry.file_size for entry in packed.infolist())
        if size > MOST_BYTES:
            raise TimeDiffError(f"{path.name} unpacks to more than {MOST_BYTES:,} bytes; save it as .csv.")
        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    except TimeDiffError:
        raise
    except Exception as error:  # openpyxl has no error of its own for a damaged file
        raise Problems(path.name, [f"{path.name} is not a readable Excel file; save it again as .xlsx"]) from error
    try:
        if sheet is not None and sheet not in book.sheetnames:
            raise Problems(path.name, [f"there is no sheet {sheet[:60]!r}; the sheets are {listed(book.sheetnames)}"])
        rows = (book[sheet] if sheet is not None else book.worksheets[0]).iter_rows(values_only=True)
        header = [_cell(value) for value in next(rows, ())]
        while header and header[-1] is None:
            header.pop()
        if not any(header):
            raise Problems(path.name, ["the sheet's first row is empty; name each column once in it"])
        names = [name.strip() if name else f"column {i}" for i, name in enumerate(header, 1)]
        _require_unique(path.name, names)
        columns: list[list[str | None]] = [[] for _ in names]
        for row in rows:
            if any(value is not None for value in row):
                for i, values in enumerate(columns):
                    values.append(_cell(row[i]) if i < len(row) else None)
    except TimeDiffError:
        raise
    except Exception as error:
        raise Problems(path.name, [f"{path.name} is not a readable Excel file; save it again as .xlsx"]) from error
    finally:
        book.close()
    return pa.table({name: pa.array(values, pa.string()) for name, values in zip(names, columns, strict=True)})


def _cell(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, dt.datetime | dt.date | dt.time):
        return value.isoformat(sep=" ") if isinstance(value, dt.datetime) else value.isoformat()
    if isinstance(value, dt.timedelta):
        seconds = value / dt.timedelta(seconds=1)
        sign, seconds = "-" if seconds < 0 else "", abs(round(seconds))
        return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return str(value)


def in_order(given: Mapping[str, Given]) -> list[Path]:
    """The files among what was given."""
    return [one for one in given.values() if isinstance(one, Path)]
