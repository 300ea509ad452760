"""A workbook of two sheets, series and static. A text is a text, whatever it begins with, and never a formula."""

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa

from timediff.data.parts import Parts
from timediff.errors import TimeDiffError
from timediff.exports.base import Export
from timediff.runtime.progress import Progress

MOST_ROWS = 1_048_576  # of a sheet, with its header
MOST_COLUMNS = 16_384
LONGEST = 32_767  # characters of a cell
DIGITS = 10**15  # a sheet keeps fifteen digits of a number
UNWRITABLE = re.compile("[\x00-\x08\x0b-\x1f\ufffe\uffff]")  # what the XML of a sheet cannot hold
FORMULA = ("=", "+", "-", "@")


class XLSX(Export):
    suffix = ".xlsx"

    def check(self, parts: Parts) -> None:
        super().check(parts)
        _openpyxl()
        rows = int(parts.lengths.sum()) + 1
        columns = max(len(parts.schema.temporal), len(parts.schema.static)) + 3
        if rows > MOST_ROWS:
            raise TimeDiffError(
                f"the series have {rows:,} rows, and a sheet at most {MOST_ROWS:,}: export fewer stays, or to "
                "parquet-wide or csv."
            )
        if columns > MOST_COLUMNS:
            raise TimeDiffError(f"there are {columns:,} columns, and a sheet has at most {MOST_COLUMNS:,}.")

    def write(self, parts: Parts, out: Path, progress: Progress) -> None:
        book = _openpyxl().Workbook(write_only=True)
        try:
            _fill(book, parts, progress)
            with out.open("wb") as file:
                book.save(file)
        except BaseException:
            for sheet in book.worksheets:
                _discard(sheet)
            raise


def _fill(book: Any, parts: Parts, progress: Progress) -> None:
    sheets = {name: book.create_sheet(name) for name in ("series", "static")}
    done = 0
    for part in parts:
        for name, table in zip(sheets, part.tables(), strict=True):
            if not done:
                sheets[name].append(_cells(sheets[name], table.column_names))
            _append(sheets[name], table)
        done += len(part)
        progress(done, len(parts))
    if parts.provenance is not None:
        about = book.create_sheet("provenance")
        about.append(_cells(about, [str(parts.provenance)]))


def _discard(sheet: Any) -> None:
    """Removes the temporary file in which openpyxl keeps a sheet until it is saved."""
    with suppress(Exception):  # whatever state it is in
        sheet.close()
    with suppress(Exception):
        sheet._writer.cleanup()


def _append(sheet: Any, table: pa.Table) -> None:
    for batch in table.to_batches(max_chunksize=10_000):
        for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            sheet.append(_cells(sheet, row))


def _cells(sheet: Any, row: Iterable[object]) -> list[Any]:
    return [_text(sheet, value) if isinstance(value, str) else _number(sheet, value) for value in row]


def _number(sheet: Any, value: Any) -> Any:
    """A number, or nothing; a longer whole number is the id of something, so its digits are kept as a text."""
    return _text(sheet, str(value)) if isinstance(value, int) and abs(value) >= DIGITS else value


def _text(sheet: Any, text: str) -> Any:
    if len(text) > LONGEST or UNWRITABLE.search(text):
        raise TimeDiffError(
            f"a text has more than {LONGEST:,} characters, or a character that no sheet can hold: export to "
            "parquet-wide or csv."
        )
    from openpyxl.cell import WriteOnlyCell

    cell = WriteOnlyCell(sheet, value=text)
    cell.data_type = "s"  # "=1+1" and "#N/A" are texts, too
    if text.startswith(FORMULA):
        cell.quotePrefix = True  # so that it stays one when somebody edits the cell
    return cell


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ModuleNotFoundError as error:
        if error.name != "openpyxl":
            raise
        raise TimeDiffError("an export to xlsx needs openpyxl: pip install 'timediff-icu[excel]'.") from error
    return openpyxl
