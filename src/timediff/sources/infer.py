"""`timediff infer`: from tables as they come to settings that a person looks over and edits.

What is inferred: how files are written, which column is what, kinds, classes and their spellings, units where they are
given, the resolution from the lattice of the values, the grid. Bounds stay open: no value of a patient becomes one.
"""

import codecs
import os
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args

from timediff.data.frames import is_frame, to_arrow
from timediff.data.schema import Schema
from timediff.errors import TimeDiffError
from timediff.runtime.progress import Progress, silent
from timediff.settings import toml
from timediff.sources.engines import connect_files
from timediff.sources.gzip_files import is_gzip, unpacked
from timediff.sources.inferred_features import Guesses
from timediff.sources.table_files import header_of
from timediff.sources.table_inputs import EXCEL, PIECE, Given, in_order, open_table, separator_of, table_file
from timediff.sources.table_settings import TableFeature, TableSettings, TimeUnit

TIME_UNITS, DATE_ORDERS = get_args(TimeUnit), ("ymd", "dmy", "mdy")
SEPARATORS = ",;\t|"
HEADER = """# Inferred by timediff infer. Look it over, edit it, then: timediff extract table SOURCE OUT --config FILE
# Bounds and limits are open: add bounds, above, at_least, below or at_most where values beyond are impossible.
# `timediff extract table --print-config` explains the settings.
"""


@dataclass(frozen=True)
class Inferred:
    """Settings of a table, and what a person should look at."""

    settings: TableSettings
    notes: tuple[str, ...]
    given: Mapping[str, Given]

    @property
    def schema(self) -> Schema:
        return self.settings.schema

    def to_toml(self) -> str:
        notes = "".join(f"# - {note}\n" for note in self.notes)
        return f"{HEADER}{notes}\n{toml.dumps(compact(self.settings))}"

    def rows(self) -> list[tuple[str, str, str, str, str]]:
        """A line a feature: name, where it stands, what it is, unit and resolution, classes."""
        rows = []
        for entry in self.settings.feature:
            what = f"{entry.feature.kind}, {entry.role or entry.scope}"
            lattice = "" if entry.resolution is None else f"in steps of {entry.resolution:g}"
            classes = f"{len(entry.classes)} classes" if entry.classes else ""
            rows.append((entry.name, entry.place, what, f"{entry.unit or ''} {lattice}".strip(), classes))
        return rows

    def __str__(self) -> str:
        s = self.settings
        rows = [("feature", "column", "what it is", "unit, resolution", "classes"), *self.rows()]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        lines = [
            f"{s.layout} table: stay {s.stay!r}, time {s.time!r} ({s.time_unit}); {s.steps:,} steps of {s.step} from "
            f"{s.origin}; length: {s.length}",
            *("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows),
            *(f"note: {note}" for note in self.notes),
        ]
        return "\n".join(lines)

    __repr__ = __str__


def infer(
    *tables: Any,
    static: Any = (),
    label: str | None = None,
    stay: str | None = None,
    time: str | None = None,
    patient: str | None = None,
    variable: str | None = None,
    value: str | None = None,
    step: str | None = None,
    steps: int | None = None,
    time_unit: str | None = None,
    date_order: str | None = None,
    progress: Progress = silent,
) -> Inferred:
    """Settings for `timediff extract table`, from files or data frames; what is given is not guessed.

    `static` is a table with a row a stay or a patient, or several; `label` a column, or FILE:COLUMN.
    """
    chosen = {
        "stay": stay, "time": time, "patient": patient, "variable": variable, "value": value, "step": step,
        "steps": steps, "time_unit": time_unit, "date_order": date_order,
    }  # fmt: skip
    for name, choice, choices in (("time_unit", time_unit, TIME_UNITS), ("date_order", date_order, DATE_ORDERS)):
        if choice is not None and choice not in choices:
            raise TimeDiffError(f"{name} is {choice[:40]!r}; expected one of {', '.join(choices)}.")
    if not tables:
        raise TimeDiffError("infer needs at least one table, a file or a data frame.")
    beside = [static] if isinstance(static, str | Path) or is_frame(static) else list(static)
    given, series, joined, label_file, label = _given(tables, beside, label)
    form = _form([one for one in given.values() if isinstance(one, Path)])
    first = given[""]
    where = first.parent if isinstance(first, Path) else Path()
    with connect_files(where, in_order(given), progress) as engine:
        opened = {}
        for i, (name, one) in enumerate(given.items()):
            table = open_table(engine, one, name or "the table", f"table_{i}", form)
            kept = engine.keep(table.table, f"timediff_table_{i}")
            opened[name] = replace(table, table=kept)
            progress(i + 1, 2 * len(given))
        guesses = Guesses(opened, series, joined, label_file, label, form, chosen)
        settings, notes = guesses.settings()
        progress(1, 1)
    return Inferred(settings, tuple(notes), given)


def _given(
    tables: Sequence[Any], beside: Sequence[Any], label: str | None
) -> tuple[dict[str, Given], list[str], list[str], str | None, str | None]:
    """Tables by the names that settings have for them; which have series, which one row a stay; the label's table."""
    first = tables[0]
    folder = Path(first).parent if isinstance(first, str | Path) else None
    given: dict[str, Given] = {"": _table(first)}

    def add(table: Any, name: str) -> str:
        if isinstance(table, str | Path):
            name = os.path.relpath(table, folder) if folder is not None else str(table)
        if name in given or (isinstance(table, str | Path) and given[""] == Path(table)):
            raise TimeDiffError(f"{name} is given twice.")
        given[name] = _table(table)
        return name

    series = [add(table, f"series {i}") for i, table in enumerate(tables[1:], 2)]
    joined = [add(table, "static" if i == 1 else f"static {i}") for i, table in enumerate(beside, 1)]
    if label is None or ":" not in label:
        return given, series, joined, None, label
    file, _, column = label.rpartition(":")
    known = os.path.relpath(file, folder) if folder is not None else file
    if known in joined:
        return given, series, joined, None, column
    return given, series, joined, add(file, known), column


def _table(table: Any) -> Given:
    return table_file(Path(table)) if isinstance(table, str | Path) else to_arrow(table)


def _form(paths: Sequence[Path]) -> TableSettings:
    """How text files are written: encoding and separator, which all of them have in common."""
    plain = TableSettings("wide", "stay", "time", "1h", 1, (TableFeature("value"),))
    texts = [path for path in paths if not path.name.lower().endswith((".parquet", *EXCEL))]
    encodings = {path.name: _encoding(path) for path in texts}
    if len(set(encodings.values()) - {"ascii"}) > 1:
        said = ", ".join(f"{name} in {encoding}" for name, encoding in encodings.items())
        raise TimeDiffError(f"the files are written in different encodings ({said}); bring them to one.")
    encoding = next((one for one in encodings.values() if one != "ascii"), "utf-8")
    separators = {path.name: _separator(path, encoding, plain) for path in texts}
    if len(set(separators.values())) > 1:
        said = ", ".join(f"{name} by {separator!r}" for name, separator in separators.items())
        raise TimeDiffError(f"the files' columns are separated differently ({said}); bring them to one.")
    separator = next(iter(separators.values()), None)
    usual = not texts or all(separator == separator_of(path, plain) for path in texts)
    return replace(plain, encoding=encoding, separator=None if usual else separator)


def _encoding(path: Path) -> str:
    start = b""
    decoder = codecs.getincrementaldecoder("utf-8")()
    plain = True
    with path.open("rb") as file:
        for piece in unpacked(path) if is_gzip(path) else iter(lambda: file.read(PIECE), b""):
            start = start or piece[:4]
            if start[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
                return "utf-16"
            try:
                decoder.decode(piece)
            except UnicodeDecodeError:
                return "cp1252"  # Latin-1 with what Windows puts where Latin-1 has nothing
            plain = plain and piece.isascii()
    return "ascii" if plain else "utf-8"


def _separator(path: Path, encoding: str, plain: TableSettings) -> str:
    """That which the first line has most of."""
    usual = separator_of(path, plain)
    counts = {one: len(header_of(path, one, encoding)) for one in SEPARATORS}
    return usual if counts[usual] == max(counts.values()) else max(counts, key=lambda one: counts[one])


def compact(settings: Any) -> dict[str, Any]:
    """A dataclass of settings without what is as usual."""
    found = {}
    for f in fields(settings):
        value = getattr(settings, f.name)
        if f.default is MISSING or value != f.default:
            found[f.name.rstrip("_")] = _plain(value)
    return found


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return compact(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def read_settings(path: str | Path) -> TableSettings:
    """What `timediff infer` wrote, however it was edited."""
    from timediff.sources.table import TableSource

    return TableSource().resolve(path)
