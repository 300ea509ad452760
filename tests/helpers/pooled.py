"""Tasks that take no time. Another process finds them here."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from timediff.errors import TimeDiffError
from timediff.runtime.progress import Say, Watch


@dataclass(frozen=True)
class Small:
    name: str
    ends: str = "well"


def work(task: Small, folder: Path, watch: Watch, say: Say) -> None:
    """Writes which process it was in."""
    watch(task.name)(1, 2)
    if task.ends == "failing":
        raise TimeDiffError("it is not to its taste.")
    if task.ends == "raising":
        raise ValueError("a cell holds 7")
    if task.ends == "leaving":
        sys.exit(3)
    if task.ends == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if task.ends == "asked":
        os.kill(os.getpid(), signal.SIGTERM)
    if task.ends == "silent":
        os.closerange(3, 256)  # what it speaks through is among these
        time.sleep(60)
    (folder / task.name).write_text(str(os.getpid()))
    say("written")
