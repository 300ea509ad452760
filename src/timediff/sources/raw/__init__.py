"""Simulated clinical databases: tables in the published layout, and the cohort that is in them."""

from collections.abc import Callable
from pathlib import Path

from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.runtime.files import new_folder
from timediff.runtime.progress import Progress, silent
from timediff.runtime.seeding import require_seed
from timediff.runtime.sizes import require_memory
from timediff.sources.raw import eicu, mimic3, mimic4

BYTES_A_STAY = 8 * 7 * 25  # in memory, at the least: seven vital signs of the shortest stays
DATABASES: dict[str, Callable[[Path, int, int, Progress], Cohort]] = {
    "mimic3": mimic3.write,
    "mimic4": mimic4.write,
    "eicu": eicu.write,
}


def write_raw(database: str, path: Path, stays: int, *, seed: int = 0, progress: Progress = silent) -> None:
    """Writes `path/raw`, the tables of a simulated database, and `path/cohort`, the `stays` stays that are in them."""
    if database not in DATABASES:
        raise TimeDiffError(f"{database!r} is no database that can be simulated; choose one of {', '.join(DATABASES)}.")
    if stays < 1:
        raise TimeDiffError(f"{stays} stays: expected at least 1.")
    require_seed(seed)
    require_memory(stays * BYTES_A_STAY, f"{stays:,} stays in the tables of {database}")
    with new_folder(path) as folder:
        (folder / "raw").mkdir()
        DATABASES[database](folder / "raw", stays, seed, progress).write(folder / "cohort")
