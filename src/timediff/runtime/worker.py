"""A process that carries out tasks, one after the other, so that one that dies takes no other with it.

It is started anew, and not forked, since neither PyTorch's threads nor a GPU survive a fork. What it is sent comes from
the process that started it, and from nowhere else.
"""

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from timediff.errors import Stopped, TimeDiffError
from timediff.runtime.cuda_graphs import free_memory, is_out_of_memory
from timediff.runtime.progress import Progress, Say, Watch

SHOWN_EVERY = 0.1  # seconds


class Seen(NamedTuple):
    """How far something is."""

    what: str
    done: int
    total: int
    values: dict[str, float]


class Said(NamedTuple):
    line: str


class Ended(NamedTuple):
    """A task is over; `details` are for the eyes of who may see the cohort."""

    failure: str = ""
    details: str = ""
    stopped: bool = False
    seconds: float = 0.0


def main() -> None:
    """Takes a function and what all tasks share, then tasks, from the pipe whose number is the last argument."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection = Connection(int(sys.argv[-1]))
    work, shared = connection.recv()

    def watch(what: str) -> Progress:
        return _Told(connection, what)

    def say(line: str) -> None:
        connection.send(Said(line))

    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        except Exception as error:  # such as a module that cannot be imported here
            connection.send(Ended(sentence(error), traceback.format_exc()))
            continue
        try:
            connection.send(attempt(work, task, shared, watch, say))
        except Stopped:
            connection.send(Ended(stopped=True))


def attempt(work: Callable[..., None], task: Any, shared: Any, watch: Watch, say: Say) -> Ended:
    """A failure is an answer; a stop is not."""
    begun, ended = time.monotonic(), Ended()
    try:
        work(task, shared, watch, say)
    except (Stopped, BrokenPipeError):  # nobody hears a worker any more whose pipe is broken
        raise
    except Exception as error:  # whatever a generator of another package does
        ended = Ended(sentence(error), traceback.format_exc())
    if ended.failure:  # outside of the handler, which keeps what was half computed alive
        free_memory()
    return ended._replace(seconds=time.monotonic() - begun)


def sentence(error: BaseException) -> str:
    """Why a task failed, in one sentence without any value of a cell: another's exception may hold one."""
    if isinstance(error, TimeDiffError):
        return " ".join(str(error).split())
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and is_out_of_memory(error)):
        return "there was not enough memory: lower training.batch or model.hidden, or run fewer jobs at once."
    return f"it raised {type(error).__name__}."


class _Told(Progress):
    """Progress that travels to the other process, now and then."""

    def __init__(self, connection: "Connection[Any, Any]", what: str) -> None:
        self.connection, self.what, self.last = connection, what, 0.0

    def __call__(self, done: int, total: int, **values: float) -> None:
        now = time.monotonic()
        if now - self.last >= SHOWN_EVERY or done >= total or values:
            self.last = now
            try:
                self.connection.send(Seen(self.what, done, total, values))
            except BrokenPipeError as error:  # else a callback's error, with which a fit goes on
                raise Stopped("nobody hears this worker any more") from error


def _end_with_parent() -> None:
    """The parent holds the other end of the standard input, so that it ends with the parent, however that ends."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
