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

PREFIX = "timediff-"
LOCK = "lock"  # held by the process that uses the folder: the system lets go of it when the process ends


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder in the temporary folder; what killed processes have left there is removed first."""
    remove_abandoned()
    with _ended_by_signals():
        folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        handle = -1
        try:
            handle = os.open(folder / f"new-{LOCK}", os.O_CREAT | os.O_RDWR, 0o600)
            _lock(handle)
            (folder / f"new-{LOCK}").rename(folder / LOCK)  # so nobody sees a lock that is not held yet
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
            if handle >= 0:
                os.close(handle)


def remove_abandoned() -> None:
    """Removes our folders whose process is gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.is_symlink() or folder.stat().st_uid != os.getuid():
                continue
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                _lock(handle)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(handle)


def _lock(handle: int) -> None:
    """Raises OSError where another process has it."""
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


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
