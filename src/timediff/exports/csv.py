"""CSV: series.csv and static.csv; null is an empty field, an empty text is "".

A spreadsheet takes a text that begins with = + - or @ for a formula. Such a text gets an apostrophe in front, and so
does one that begins with an apostrophe: whoever takes one apostrophe away again has what was there.
"""

import gzip
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, ClassVar, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from timediff.data.parts import Parts
from timediff.exports.base import Export, write_schema
from timediff.runtime.progress import Progress

FORMULA = r"^[=+\-@\t\r\n']"  # what a text begins with that is not to be taken for one


class CSV(Export):
    ending: ClassVar[str] = ".csv"

    def write(self, parts: Parts, out: Path, progress: Progress) -> None:
        write_schema(parts, out)
        done, writers = 0, dict[str, pacsv.CSVWriter]()
        with ExitStack() as files:
            for part in parts:
                for name, table in zip(("series", "static"), map(guarded, part.tables()), strict=True):
                    if name not in writers:
                        file = files.enter_context(self.open(out / f"{name}{self.ending}"))
                        writers[name] = files.enter_context(pacsv.CSVWriter(file, table.schema))
                    writers[name].write_table(table)
                done += len(part)
                progress(done, len(parts))

    def open(self, path: Path) -> BinaryIO:
        return path.open("wb")


class GzippedCSV(CSV):
    ending = ".csv.gz"

    def open(self, path: Path) -> BinaryIO:
        # Without the time of day: the same cohort, the same bytes.
        return cast(BinaryIO, gzip.GzipFile(path, "wb", compresslevel=6, mtime=0))


def guarded(table: pa.Table) -> pa.Table:
    """The table with texts, and names of columns, that no spreadsheet takes for a formula."""
    columns = [_guarded(column) if pa.types.is_string(column.type) else column for column in table.columns]
    names = _guarded(pa.chunked_array([table.column_names], pa.string())).to_pylist()
    return pa.Table.from_arrays(columns, names=names)


def _guarded(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    marked = pc.binary_join_element_wise("'", texts, "")
    return pc.if_else(pc.match_substring_regex(texts, FORMULA), marked, texts)
