"""Folders and files that are either there and whole, or not there."""

import errno
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from timediff.errors import TimeDiffError

REASONS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your disk quota is used up",
    errno.EROFS: "the disk is read-only",
    errno.EACCES: "you may not write there",
    errno.EPERM: "you may not write there",
    errno.ENOTDIR: "part of the path is a file, not a folder",
}


def refuse_existing(path: Path) -> None:
    if path.exists() or path.is_symlink():
        raise TimeDiffError(f"{path} exists already, and nothing is overwritten: choose another name or remove it.")


def require_new(*outputs: Path) -> None:
    """Whether outputs can be written, asked before any work: new, and apart from each other."""
    for path in outputs:
        refuse_existing(path)
        above = _nearest_folder(path)
        if not above.is_dir():
            raise _unwritable(path, REASONS[errno.ENOTDIR])
        if not os.access(above, os.W_OK | os.X_OK):
            raise _unwritable(path, REASONS[errno.EACCES])
        for other in outputs:
            if other is not path and path.resolve().is_relative_to(other.resolve()):
                raise TimeDiffError(f"{path} is inside {other} or the same folder: give them names side by side.")


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yields a hidden folder that becomes `path` when the block ends well, and vanishes when it does not.

    Of two processes that write one path the later is refused; what a killed one has left is removed.
    """
    refuse_existing(path)
    place = path.resolve()  # out/../out is out, and no folder of that name is made on the way
    partial = _partial(place)
    with explained(path):
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(place, path)
        shutil.rmtree(partial, ignore_errors=True)  # of a killed process that had the same number
        try:
            with locked(partial, path):
                yield partial
                refuse_existing(path)
                _rename_new(partial, place, path)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yields a hidden file that becomes `path` when the block ends well, and vanishes when it does not."""
    refuse_existing(path)
    place = path.resolve()
    partial = _partial(place)
    with explained(path):
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(place, path)
        try:
            yield partial
            refuse_existing(path)
            partial.replace(place)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise


def write_atomically(path: Path, content: bytes | str) -> None:
    """Writes beside `path`, forces it to disk and renames: a reader sees the old file or the new one."""
    place = path.parent.resolve() / path.name
    partial = _partial(place)
    with explained(path):
        _remove_abandoned(place, path)
        try:
            write_through(partial, content)
            partial.replace(place)
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
def locked(folder: Path, path: Path) -> Iterator[None]:
    """Keeps other processes from working in `folder`, for `path`; the lock ends with its process, however it ends."""
    folder.mkdir(parents=True, exist_ok=True)
    with _held(folder, path):
        yield


@contextmanager
def _held(folder: Path, path: Path) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY)
    try:
        if not _lock(handle):
            raise TimeDiffError(f"another process is writing {path} now: wait for it, or choose another name.")
        yield
    finally:
        os.close(handle)


@contextmanager
def explained(path: Path, kept: str = "Nothing half-written was kept") -> Iterator[None]:
    """Turns what the disk says no to into a sentence about `path`."""
    try:
        yield
    except OSError as error:
        if error.errno not in REASONS:
            raise
        raise _unwritable(path, REASONS[error.errno], kept) from error


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unwritable(path: Path, reason: str, kept: str = "Nothing was written") -> TimeDiffError:
    return TimeDiffError(
        f"{path} could not be written: {reason}. {kept}; free some room or choose another place, "
        "and run the command again."
    )


def _nearest_folder(path: Path) -> Path:
    """What there is already of the way to `path`."""
    return next(above for above in path.resolve().parents if above.exists())


def _rename_new(partial: Path, place: Path, path: Path) -> None:
    try:
        partial.replace(place)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise TimeDiffError(
            f"{path} was written by another process meanwhile, and is kept as it is: choose another name."
        ) from error


def _partial(path: Path) -> Path:
    return path.parent / f".{path.name}.partial-{os.getpid()}"


def _remove_abandoned(place: Path, path: Path) -> None:
    """Removes what processes that are gone have left; the folder of one at work is a reason not to begin."""
    pattern = re.compile(re.escape(f".{place.name}.partial-") + r"(\d{1,18})")
    for entry in list(os.scandir(place.parent)):
        found = pattern.fullmatch(entry.name)
        if not found or int(found[1]) == os.getpid():
            continue
        with suppress(FileNotFoundError):
            if not entry.is_dir(follow_symlinks=False):
                if not _is_alive(int(found[1])):
                    Path(entry.path).unlink()
                continue
            with _held(Path(entry.path), path):
                if not _is_alive(int(found[1])):  # one that has only just begun has no lock yet
                    shutil.rmtree(entry.path, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _lock(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: then only the renaming decides
        return True
    return True
