"""Folders for what an extraction needs only while it runs: gone when it ends, however it ends."""

import fcntl
import os
import shutil
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "timediff-scratch-"


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in the temporary folder; what killed processes have left there is removed first."""
    remove_abandoned()
    with _ended_by_signals():
        folder, handle = _locked_folder()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            os.close(handle)


def _locked_folder() -> tuple[Path, int]:
    """A new folder that this process holds a lock on; the system lets go of it when the process ends."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        handle = -1
        try:
            handle = _locked(folder)
            if folder.exists():  # until it was locked, another process could take it for abandoned
                return folder, handle
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if handle >= 0:
            os.close(handle)


def remove_abandoned() -> None:
    """Removes our folders whose process is gone: those that nobody holds a lock on."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            handle = _locked(folder)
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _locked(folder: Path) -> int:
    """The folder itself, open and locked; OSError where another process has it."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(handle)
        raise
    return handle


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM as Ctrl-C, so that folders are removed on the way out."""
    usual = threading.current_thread() is threading.main_thread() and (
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    )
    if usual:
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        if usual:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
