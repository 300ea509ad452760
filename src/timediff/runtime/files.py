"""Folders and files that are either there and whole, or not there."""

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from timediff.errors import TimeDiffError


def refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise TimeDiffError(f"{path} exists already, and nothing is overwritten: choose another name or remove it.")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yields a hidden folder that becomes `path` when the block ends well, and vanishes when it does not."""
    refuse_existing(path)
    partial = path.parent / f".{path.name}.partial-{os.getpid()}"
    with explained(path):
        shutil.rmtree(partial, ignore_errors=True)  # of a killed process that had the same number
        partial.mkdir(parents=True)
        try:
            yield partial
            partial.replace(path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


def write_atomically(path: Path, content: bytes | str) -> None:
    """Writes beside `path`, forces it to disk and renames: a reader sees the old file or the new one."""
    partial = path.parent / f".{path.name}.partial-{os.getpid()}"
    with explained(path):
        try:
            write_through(partial, content)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def write_through(path: Path, content: bytes | str) -> None:
    """Writes and forces it to disk."""
    with path.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def explained(path: Path, kept: str = "Nothing half-written was kept") -> Iterator[None]:
    """Turns what the disk says no to into a sentence about `path`."""
    try:
        yield
    except OSError as error:
        reasons = {
            errno.ENOSPC: "the disk is full",
            errno.EDQUOT: "your disk quota is used up",
            errno.EROFS: "the disk is read-only",
            errno.EACCES: "you may not write there",
            errno.EPERM: "you may not write there",
            errno.ENOTDIR: "part of the path is a file, not a folder",
        }
        if error.errno not in reasons:
            raise
        raise TimeDiffError(
            f"{path} could not be written: {reasons[error.errno]}. {kept}; free some room or choose another place, "
            "and run the command again."
        ) from error


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
