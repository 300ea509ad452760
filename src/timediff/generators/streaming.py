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

from timediff.data.cohort import CHUNK, Cohort, table_writer
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.runtime import devices
from timediff.runtime.files import explained, new_folder, refuse_existing, write_atomically
from timediff.runtime.progress import Progress, Say, silent, unheard
from timediff.runtime.randomness import BLOCK


def sample_to(
    generator: Generator, path: str | Path, n: int, *, seed: int = 0, length: int | None = None, resume: bool = False,
    progress: Progress = silent, say: Say = unheard, **options: Any,
) -> None:  # fmt: skip
    """Writes the cohort folder `path` of n synthetic stays; parts wait in a hidden folder until all are there.

    Of many processes each draws its own blocks, and the first joins them all.
    """
    path = Path(path)
    if n < 1:
        raise TimeDiffError(f"{n} stays to sample; expected at least 1.")
    parts = path.parent / f".{path.name}.parts"
    request = {"n": n, "seed": seed, "length": length, "weights": generator.identity, **options}
    if devices.processes() > 1:
        request["processes"] = devices.processes()
    generator.stream(n, seed=seed, length=length, **options)  # a mistaken option is named before anything is written
    first = devices.rank() == 0
    with explained(path, kept="The stays sampled so far are kept, and --resume goes on from there"):
        if first:
            refuse_existing(path)
            _begin(parts, json.dumps(request, sort_keys=True), resume, path)
        devices.wait_for_all()
        start, end = stays_of_process(n, devices.rank(), devices.processes())
        done = _done(parts, start, end)
        for cohort in (
            generator.stream(end, seed=seed, skip=done, length=length, progress=progress, say=say, **options)
            if done < end
            else ()
        ):
            _write_part(parts, cohort)
        devices.wait_for_all()
        if not first:
            return
        steps = length or generator.schema.steps
        with new_folder(path) as folder, table_writer(folder, replace(generator.schema, steps=steps)) as append:
            for series, static in _joined(parts):
                append(series, static)
    shutil.rmtree(parts)


def stays_of_process(n: int, rank: int, processes: int) -> tuple[int, int]:
    """The first stay that a process samples, and the one after its last: whole blocks, as evenly as they go."""
    blocks = -(-n // BLOCK)
    start, end = (BLOCK * (blocks * i // processes) for i in (rank, rank + 1))
    return min(start, n), min(end, n)


def _begin(parts: Path, request: str, resume: bool, path: Path) -> None:
    """Notes what is asked for, or makes sure that what is there was asked for."""
    noted = parts / "request.json"
    if not noted.exists():  # nothing was begun, or it ended before the first part
        parts.mkdir(parents=True, exist_ok=True)
        write_atomically(noted, request)
        return
    if not resume:
        raise TimeDiffError(
            f"sampling {path} was stopped before it was done: add --resume to go on, or remove {parts} to start again."
        )
    if noted.read_text() != request:
        raise TimeDiffError(
            f"{parts} belongs to another sampling (number of stays, seed, run, settings or number of processes "
            "differ): repeat the first command with --resume, or remove that folder to start again."
        )


def _done(parts: Path, start: int, end: int) -> int:
    """The first stay from `start` on that an earlier try has not left whole."""
    done = start
    while done < end and (stays := _stays_in(parts, done)):
        done += stays
    for file in parts.glob("*-*.parquet"):  # what lies beyond the first gap or damage is made again
        if done <= int(file.stem.rpartition("-")[2]) < end:
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
