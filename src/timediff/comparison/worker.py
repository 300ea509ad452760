"""A process that carries out trainings, one after the other, so that one that dies takes no other with it.

It is started anew, and not forked, since neither PyTorch's threads nor a GPU survive a fork. What it is sent comes from
the process that started it, and from nowhere else.
"""

import os
import sys
import threading
import time
import traceback
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from timediff.comparison.rows import sentence
from timediff.comparison.training import TrainingTask, carry_out
from timediff.errors import Stopped
from timediff.runtime.cuda_graphs import free_memory
from timediff.runtime.progress import Progress

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
    """A training is over; `details` are for the eyes of who may see the cohort."""

    failure: str = ""
    details: str = ""
    stopped: bool = False


def main() -> None:
    """Takes the training cohort, then tasks, from the pipe whose number is the last argument."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    connection = Connection(int(sys.argv[-1]))
    train = connection.recv()
    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        except Exception as error:  # such as a module that cannot be imported here
            connection.send(Ended(sentence(error), traceback.format_exc()))
            continue
        connection.send(attempt(task, train, connection))


def attempt(task: TrainingTask, train: Any, connection: "Connection[Any, Any]") -> Ended:
    ended = Ended()
    try:
        carry_out(task, train, lambda what: _Told(connection, what), lambda line: connection.send(Said(line)))
    except Stopped:
        return Ended(stopped=True)
    except BrokenPipeError:
        raise
    except Exception as error:  # whatever a generator of another package does
        ended = Ended(sentence(error), traceback.format_exc())
    if ended.failure:  # outside of the handler, which keeps what was half computed alive
        free_memory()
    return ended


class _Told(Progress):
    """Progress that travels to the other process, now and then."""

    def __init__(self, connection: "Connection[Any, Any]", what: str) -> None:
        self.connection, self.what, self.last = connection, what, 0.0

    def __call__(self, done: int, total: int, **values: float) -> None:
        now = time.monotonic()
        if now - self.last >= SHOWN_EVERY or done >= total or values:
            self.last = now
            self.connection.send(Seen(self.what, done, total, values))


def _end_with_parent() -> None:
    """The parent holds the other end of the standard input, so that it ends with the parent, however that ends."""
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
