"""Sizes that cannot be, refused before work starts: memory and disk that it would take, against what there is."""

import os
import shutil
from pathlib import Path

from timediff.errors import TimeDiffError

VALUES_IN_A_BYTE = 4  # of a compressed cohort, at the most: where nearly all of them are missing or alike
UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB", "EB")


def require_memory(needed: int, what: str) -> None:
    """`needed` is what `what` takes at the least."""
    there = physical_memory()
    if needed > there:
        raise TimeDiffError(
            f"{what} would take at least {in_words(needed)} of memory, and this machine has {in_words(there)}: "
            "ask for fewer or shorter stays."
        )


def require_disk(needed: int, path: Path, what: str) -> None:
    """`needed` is what `what`, written to `path`, takes at the least."""
    there = shutil.disk_usage(next(above for above in path.resolve().parents if above.is_dir())).free
    if needed > there:
        raise TimeDiffError(
            f"{what} would take at least {in_words(needed)}, and the disk of {path} has {in_words(there)} left: "
            "ask for fewer or shorter stays, or choose another place."
        )


def physical_memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def in_words(size: int) -> str:
    """Such as 3.2 GB."""
    amount, unit = float(size), UNITS[0]
    for larger in UNITS[1:]:
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{amount:,.3g} {unit}" if amount < 1000 else f"{amount:,.0f} {unit}"
