"""Sampling straight to disk: bounded memory, and a stop at any moment loses one part at most."""

import json
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from timediff.data.cohort import CHUNK, Cohort, table_writer
from timediff.data.parquet import read_parquet, write_parquet
from timediff.data.schema import MOST_STEPS
from timediff.errors import Problems, TimeDiffError
from timediff.generators.base import Generator
from timediff.runtime import devices
from timediff.runtime.files import explained, locked, new_folder, refuse_existing, write_atomically
from timediff.runtime.parsing import read_text
from timediff.runtime.progress import Say, unheard
from timediff.runtime.randomness import BLOCK
from timediff.runtime.seeding import require_seed
from timediff.runtime.sizes import VALUES_IN_A_BYTE, require_disk, require_memory
from timediff.runtime.watching import Watching, watched


def sample_to(
    generator: Generator, path: str | Path, n: int, *, seed: int = 0, length: int | None = None, resume: bool = False,
    progress: Watching = None, say: Say = unheard, **options: Any,
) -> None:  # fmt: skip
    """Writes the cohort folder `path` of n synthetic stays; parts wait in a hidden folder until all are there.

    Of many processes each draws its own blocks, and the first joins them all.
    """
    path = Path(path)
    if n < 1:
        raise TimeDiffError(f"{n} stays to sample; expected at least 1.")
    require_seed(seed)
    steps = length or generator.schema.steps
    if steps >= 1:
        _require_room(generator, path, n, steps)
    if not 1 <= steps <= MOST_STEPS:
        raise TimeDiffError(f"length is {length}; expected a whole number from 1 to {MOST_STEPS:,}.")
    place = path.resolve()
    parts = place.parent / f".{place.name}.parts"
    request = {"n": n, "seed": seed, "length": length, "weights": generator.identity, **options}
    if devices.processes() > 1:
        request["processes"] = devices.processes()
    generator.stream(n, seed=seed, length=length, **options)  # a mistaken option is named before anything is written
    first = devices.rank() == 0
    kept = "The stays sampled so far are kept, and --resume goes on from there"
    if first:
        refuse_existing(path)
    with explained(path, kept=kept), locked(parts, path) if first else nullcontext():
        if first:
            refuse_existing(path)  # another process may have written it meanwhile
            _begin(parts, json.dumps(request, sort_keys=True), resume, path)
        devices.wait_for_all()
        start, end = stays_of_process(n, devices.rank(), devices.processes())
        done = _done(parts, start, end)
        if done < end:
            with watched(progress, "sampling") as shown:
                rest = generator.stream(end, seed=seed, skip=done, length=length, progress=shown, say=say, **options)
                for cohort in rest:
                    _write_part(parts, cohort)
        devices.wait_for_all()
        if not first:
            return
        schema, provenance = replace(generator.schema, steps=steps), generator.provenance_of(n, seed)
        with new_folder(path) as folder, table_writer(folder, schema, provenance) as append:
            for series, static in _joined(parts):
                append(series, static)
        shutil.rmtree(parts)


def _require_room(generator: Generator, path: Path, n: int, steps: int) -> None:
    """A block of stays in memory, and all of them on the disk, twice while parts are joined."""
    features, what = len(generator.schema.temporal), f"{n:,} stays of {steps:,} steps"
    require_memory(8 * min(n, BLOCK) * steps * features, what)
    require_disk(2 * n * steps * features // VALUES_IN_A_BYTE, path, what)


def stays_of_process(n: int, rank: int, processes: int) -> tuple[int, int]:
    """The first stay that a process samples, and the one after its last: whole blocks, as evenly as they go."""
    blocks = -(-n // BLOCK)
    start, end = (BLOCK * (blocks * i // processes) for i in (rank, rank + 1))
    return min(start, n), min(end, n)


def _begin(parts: Path, request: str, resume: bool, path: Path) -> None:
    """Notes what is asked for, or makes sure that what is there was asked for."""
    noted = parts / "request.json"
    if not noted.exists() or not any(parts.glob("static-*.parquet")):  # nothing was begun, or no part was finished
        parts.mkdir(parents=True, exist_ok=True)
        write_atomically(noted, request)
        return
    if not resume:
        raise TimeDiffError(
            f"sampling {path} was stopped before it was done: add --resume to go on, or remove {parts} to start again."
        )
    if read_text(noted) != request:
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
        first = file.stem.rpartition("-")[2]
        if first.isdecimal() and done <= int(first) < end:
            file.unlink()
    return done


def _stays_in(parts: Path, first: int) -> int:
    """The number of stays in the part that begins with stay `first`; 0 where it is not there or damaged."""
    try:
        stays = {name: read_parquet(_part(parts, name, first)) for name in ("series", "static")}
    except Problems:
        return 0
    if any("stay_id" not in table.column_names for table in stays.values()):
        return 0
    whole = pc.count_distinct(stays["series"]["stay_id"]).as_py() == stays["static"].num_rows
    return stays["static"].num_rows if whole else 0


def whole_parts(parts: Path) -> tuple[int, list[str]]:
    """Stays in whole parts, and the names of the parts that are damaged."""
    firsts = {file.stem.rpartition("-")[2]: file.name for file in sorted(parts.glob("static-*.parquet"))}
    stays = {name: _stays_in(parts, int(first)) if first.isdecimal() else 0 for first, name in firsts.items()}
    return sum(stays.values()), [name for name, count in stays.items() if not count]


def _part(parts: Path, name: str, first: int) -> Path:
    return parts / f"{name}-{first:012d}.parquet"


def _write_part(parts: Path, cohort: Cohort) -> None:
    for name, table in zip(("series", "static"), cohort.tables(), strict=True):
        target = _part(parts, name, int(cohort.stay_id[0]))
        partial = target.with_suffix(".partial")
        write_parquet(partial, table)
        partial.replace(target)


def _joined(parts: Path) -> Iterator[tuple[pa.Table, pa.Table]]:
    """The parts in order, gathered into row groups of a useful size."""
    waiting: list[tuple[pa.Table, pa.Table]] = []
    files = sorted(parts.glob("static-*.parquet"))
    for number, file in enumerate(files, start=1):
        series = file.with_name(file.name.replace("static", "series", 1))
        waiting.append((read_parquet(series), read_parquet(file)))
        if number == len(files) or sum(static.num_rows for _, static in waiting) >= CHUNK:
            yield pa.concat_tables([s for s, _ in waiting]), pa.concat_tables([s for _, s in waiting])
            waiting = []
