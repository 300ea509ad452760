"""Stocks and Energy: windows of one long series, cut as TimeGAN (Yoon et al. 2019) cuts them.

TimeGAN reverses the rows and takes the windows that start at 0 … N − length − 1, one fewer than there are; so do we.
"""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from numpy.lib.stride_tricks import sliding_window_view

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import MOST_STEPS, Feature, Schema, Split
from timediff.errors import Problems, TimeDiffError
from timediff.runtime.progress import Progress, silent
from timediff.sources.base import Source, bundled, local
from timediff.sources.driver_messages import arrow_reason
from timediff.sources.extraction import Extraction, File, fingerprint
from timediff.sources.gzip_files import is_gzip, read_gzip
from timediff.sources.setting_checks import CheckedSettings, beyond, schema_problems

START = "start"
MOST_BYTES = 2**30  # of the table, unpacked


@dataclass(frozen=True)
class WindowSettings(CheckedSettings):
    file: str  # its name, where SOURCE is a folder
    step: str  # between rows, such as "1d"
    window: int  # rows of a window
    leave_out: tuple[str, ...] = ()  # columns
    test: float = 0.2

    def problems(self) -> list[str]:
        found = beyond({"window": self.window}, 1, MOST_STEPS)
        if not self.file or Path(self.file).name != self.file:
            found.append(f"file is {self.file[:40]!r}; expected the name of a file")
        one = (Feature("series", "continuous"),)
        return found or schema_problems(lambda: Schema(one, self.window, self.step, Split(self.test)))


class Windows(Source[WindowSettings]):
    settings = WindowSettings

    def extract(self, source: str, settings: WindowSettings, progress: Progress = silent) -> Extraction:
        path = find(local(source), settings.file)
        content = path.read_bytes()
        series = _series(path, content, settings)
        rows = len(next(iter(series.values())))
        windows = rows - settings.window
        if windows < 1:
            raise TimeDiffError(
                f"{path} has {rows} rows; expected more than {settings.window}, the length of a window."
            )
        features = tuple(Feature(name, "continuous") for name in series)
        order = Feature(START, "continuous", "static", role="order", resolution=1)
        cohort = Cohort(
            Schema((*features, order), settings.window, settings.step, Split(settings.test, by="blocks")),
            np.arange(windows),
            {name: sliding_window_view(values[::-1], settings.window)[:windows] for name, values in series.items()},
            {START: np.arange(windows, dtype=np.float64)},
        )
        facts = {"engine": f"Arrow {pa.__version__}", "source_sha256": fingerprint([File(path.name, content)])}
        return Extraction(cohort, windows, {}, facts)


class Stocks(Windows):
    defaults = bundled("stocks")
    published = ""  # as they are


class Energy(Windows):
    defaults = bundled("energy")
    published = ""


def find(path: Path, name: str) -> Path:
    """SOURCE itself, or the file of that name in it."""
    if path.is_file():
        return path
    for candidate in (path / name, path / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise TimeDiffError(f"{path} is not {name} or {name}.gz, nor a folder that holds one of them.")


def _series(path: Path, content: bytes, settings: WindowSettings) -> dict[str, Floats]:
    """The columns that are kept, in the file's order."""
    text = read_gzip(path, MOST_BYTES) if is_gzip(path) else content
    header = text.partition(b"\n")[0].decode(errors="replace").strip().lstrip("\ufeff")
    names = [name.strip().strip('"') for name in header.split(",")]
    if unknown := [name for name in settings.leave_out if name not in names]:
        raise Problems(str(path), [f"there is no column {name!r} to leave out" for name in unknown])
    kept = [name for name in names if name not in settings.leave_out]
    if not kept:
        raise Problems(str(path), ["every column is left out; keep at least one"])
    if repeated := sorted({name for name in kept if kept.count(name) > 1}):
        raise Problems(str(path), [f"the column {name!r} is there twice" for name in repeated])
    try:
        table = csv.read_csv(
            io.BytesIO(text),
            read_options=csv.ReadOptions(column_names=names, skip_rows=1),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(kept, pa.float64()), include_columns=kept),
        )
    except pa.ArrowException as error:
        why = arrow_reason(error, names)
        raise TimeDiffError(f"{path}: a column holds more than numbers ({why}); name it in leave_out.") from error
    return {name: _numbers(table[name]) for name in kept}


def _numbers(column: pa.ChunkedArray) -> Array:
    return np.asarray(column.to_numpy(), dtype=np.float64)
