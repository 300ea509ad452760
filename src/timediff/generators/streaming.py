"""Sampling straight to disk: bounded memory, and a stop at any moment loses one part at most."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from timediff.cohort import CHUNK, Cohort, table_writer
from timediff.errors import TimeDiffError
from timediff.files import explained, new_folder, refuse_existing, write_atomically
from timediff.generators.base import Generator
from timediff.progress import Progress, silent


def sample_to(
    generator: Generator, path: str | Path, n: int, *, seed: int = 0, length: int | None = None, resume: bool = False,
    progress: Progress = silent, **options: Any,
) -> None:  # fmt: skip
    """Writes the cohort folder `path` of n synthetic stays; parts wait in a hidden folder until all are there."""
    path = Path(path)
    if n < 1:
        raise TimeDiffError(f"{n} stays to sample; expected at least 1.")
    refuse_existing(path)
    parts = path.parent / f".{path.name}.parts"
    request = json.dumps(
        {"n": n, "seed": seed, "length": length, "weights": generator.identity, **options}, sort_keys=True
    )
    done = _done(parts, request, resume, path)
    stream = generator.stream(n, seed=seed, skip=done, length=length, progress=progress, **options)
    with explained(path, kept="The stays sampled so far are kept, and --resume goes on from there"):
        parts.mkdir(parents=True, exist_ok=True)
        write_atomically(parts / "request.json", request)
        for cohort in stream:
            _write_part(parts, cohort)
        steps = length or generator.schema.steps
        with new_folder(path) as folder, table_writer(folder, replace(generator.schema, steps=steps)) as append:
            for series, static in _joined(parts):
                append(series, static)
    shutil.rmtree(parts)


def _done(parts: Path, request: str, resume: bool, path: Path) -> int:
    """How many stays an earlier try left whole."""
    previous = parts / "request.json"
    if not previous.exists():  # nothing was begun, or it ended before the first part
        return 0
    if not resume:
        raise TimeDiffError(
            f"sampling {path} was stopped before it was done: add --resume to go on, or remove {parts} to start again."
        )
    if previous.read_text() != request:
        raise TimeDiffError(
            f"{parts} belongs to another sampling (number of stays, seed, run or settings differ): "
            "repeat the first command with --resume, or remove that folder to start again."
        )
    done = 0
    while stays := _stays_in(parts, done):
        done += stays
    for file in parts.glob("*-*.parquet"):  # what lies beyond the first gap or damage is made again
        if int(file.stem.rpartition("-")[2]) >= done:
            file.unlink()
    return done


def _stays_in(parts: Path, first: int) -> int:
    """The number of stays in the part that begins with stay `first`; 0 where it is not there or damaged."""
    try:
        stays = {name: pq.read_table(_part(parts, name, first), columns=["stay_id"]) for name in ("series", "static")}
    except (OSError, pa.ArrowException):
        return 0
    whole = pc.count_distinct(stays["series"]["stay_id"]).as_py() == stays["static"].num_rows
    return stays["static"].num_rows if whole else 0


def _part(parts: Path, name: str, first: int) -> Path:
    return parts / f"{name}-{first:012d}.parquet"


def _write_part(parts: Path, cohort: Cohort) -> None:
    for name, table in zip(("series", "static"), cohort.tables(), strict=True):
        target = _part(parts, name, int(cohort.stay_id[0]))
        partial = target.with_suffix(".partial")
        pq.write_table(table, partial, compression="zstd")
        partial.replace(target)


def _joined(parts: Path) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The parts in order, gathered into row groups of a useful size."""
    waiting: list[tuple[pa.Table, pa.Table]] = []
    files = sorted(parts.glob("static-*.parquet"))
    for number, file in enumerate(files, start=1):
        series = file.with_name(file.name.replace("static", "series", 1))
        waiting.append((pq.ParquetFile(series).read(), pq.ParquetFile(file).read()))
        if number == len(files) or sum(static.num_rows for _, static in waiting) >= CHUNK:
            yield pa.concat_tables([s for s, _ in waiting]), pa.concat_tables([s for _, s in waiting])
            waiting = []
