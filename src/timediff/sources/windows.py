"""Stocks and Energy: windows of one long series, cut as TimeGAN (Yoon et al. 2019) cuts them.

TimeGAN reverses the rows and takes the windows that start at 0 … N − length − 1, one fewer than there are; so do we.
"""

import gzip
import io
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
from numpy.lib.stride_tricks import sliding_window_view

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema, Split
from timediff.errors import Problems, TimeDiffError
from timediff.runtime.progress import Progress, silent
from timediff.sources.base import Source, bundled
from timediff.sources.extraction import Extraction, File, fingerprint

START = "start"


@dataclass(frozen=True)
class WindowSettings:
    file: str  # its name, where SOURCE is a folder
    step: str  # between rows, such as "1d"
    window: int  # rows of a window
    leave_out: tuple[str, ...] = ()  # columns
    test: float = 0.2


class Windows(Source[WindowSettings]):
    settings = WindowSettings

    def extract(self, source: str, settings: WindowSettings, progress: Progress = silent) -> Extraction:
        path = find(Path(source), settings.file)
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
            Schema((*features, order), settings.window, settings.step, Split(settings.test)),
            np.arange(windows),
            {name: sliding_window_view(values[::-1], settings.window)[:windows] for name, values in series.items()},
            {START: np.arange(windows, dtype=np.float64)},
        )
        facts = {"engine": f"Arrow {pa.__version__}", "source_sha256": fingerprint([File(path.name, content)])}
        return Extraction(cohort, windows, {}, facts)


class Stocks(Windows):
    defaults = bundled("stocks")


class Energy(Windows):
    defaults = bundled("energy")


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
    try:
        text = gzip.decompress(content) if path.suffix == ".gz" else content
    except (OSError, EOFError, zlib.error) as error:
        raise TimeDiffError(f"{path} is not a whole .gz file ({error}); copy it again.") from error
    header = text.partition(b"\n")[0].decode(errors="replace").strip().lstrip("\ufeff")
    names = [name.strip().strip('"') for name in header.split(",")]
    if unknown := [name for name in settings.leave_out if name not in names]:
        raise Problems(str(path), [f"there is no column {name!r} to leave out" for name in unknown])
    kept = [name for name in names if name not in settings.leave_out]
    if repeated := sorted({name for name in kept if kept.count(name) > 1}):
        raise Problems(str(path), [f"the column {name!r} is there twice" for name in repeated])
    try:
        table = csv.read_csv(
            io.BytesIO(text),
            read_options=csv.ReadOptions(column_names=names, skip_rows=1),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(kept, pa.float64()), include_columns=kept),
        )
    except pa.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise TimeDiffError(f"{path}: a column holds more than numbers ({reason}); name it in leave_out.") from error
    return {name: _numbers(table[name]) for name in kept}


def _numbers(column: pa.ChunkedArray) -> Array:
    return np.asarray(column.to_numpy(), dtype=np.float64)
