"""Workers: several tasks at once, each in a process of its own.

A task is a value with a name; what is done with it, and what all tasks share, each worker is sent once.
"""

import io
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from signal import Signals
from typing import IO, Any, Protocol, TypeVar

from timediff.errors import Stopped
from timediff.runtime import devices
from timediff.runtime.progress import Progress, Say, Watch
from timediff.runtime.signals import stop_on_signals
from timediff.runtime.worker import Ended, Said, Seen, attempt

# The worker finds the same modules as this process; its own folder is none of the places to look in (-P).
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from timediff.runtime.worker import main; main()"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
ASKED_EVERY = 0.2  # seconds after which a wish to stop is heard
SLOWEST_END = 60.0  # seconds that a process which says nothing any more may take to end
PATIENCE = 60.0  # seconds in which a worker may save what it has
LAST_WORDS = 4000  # bytes of what a process printed before it died


class WorkerTask(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=WorkerTask)
S = TypeVar("S")
Work = Callable[[T, S, Watch, Say], None]  # does a task, by what all tasks share; another process finds it by its name
OnEnd = Callable[[T, Ended], None]
MayBegin = Callable[[int], bool]  # whether a further task may be begun now, beside so many; asked whenever one could be


def always(busy: int) -> bool:
    return True


class Worker:
    """A process, and the task that it has."""

    def __init__(self, work: Work[Any, Any], shared: object, threads: int) -> None:
        ours, theirs = Pipe()
        self.connection: Connection[Any, Any] = ours
        self.first: tuple[Work[Any, Any], object] | None = (work, shared)  # not sent yet
        self.task: Any = None
        self.begun = 0.0
        self.dead = False
        self.bars: dict[str, Progress] = {}
        self.output: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-c", START, json.dumps(sys.path), str(theirs.fileno())],
            stdin=subprocess.PIPE, stdout=self.output, stderr=self.output, pass_fds=[theirs.fileno()],
            env=os.environ | dict.fromkeys(THREADS, str(threads)),
            start_new_session=True,  # Ctrl-C comes to us, who pass it on
        )  # fmt: skip
        theirs.close()

    def begin(self, task: WorkerTask) -> None:
        if self.first:  # not before, since it waits until the process listens: others start meanwhile
            self._send(self.first)
            self.first = None
        self.task, self.bars, self.begun = task, {}, time.monotonic()
        self._send(task)

    def _send(self, what: object) -> None:
        with suppress(BrokenPipeError, ConnectionResetError):  # it is dead, which is heard when it is listened to
            self.connection.send(what)

    def hear(self, watch: Watch, say: Say) -> Ended | None:
        """What it has to say; the end of its task, when it is there."""
        try:
            message = self.connection.recv()
        except (EOFError, ConnectionResetError, pickle.UnpicklingError):
            return self._death()
        if isinstance(message, Seen):
            bar = self.bars.get(message.what) or self.bars.setdefault(message.what, watch(message.what))
            bar(message.done, message.total, **message.values)
        elif isinstance(message, Said) and self.task:
            say(f"{self.task.name}: {message.line}")
        return message if isinstance(message, Ended) else None

    def _death(self) -> Ended:
        self.dead = True
        code: int | None
        try:
            code = self.process.wait(SLOWEST_END)
        except subprocess.TimeoutExpired:  # it has closed the pipe and lives on
            self.process.kill()
            self.process.wait()
            code = None
        self.output.seek(max(0, self.output.seek(0, os.SEEK_END) - LAST_WORDS))
        words = self.output.read().decode("utf-8", "replace")
        if code is None:
            return self._ended("its process said nothing any more and did not end, so it was stopped.", words)
        if code < 0:
            name = Signals(-code).name if -code in set(Signals) else "unknown"
            memory = ", as a system does where memory is short" if name == "SIGKILL" else ""
            return self._ended(f"its process was ended by signal {-code} ({name}){memory}.", words)
        return self._ended(f"its process ended with exit code {code}.", words)

    def _ended(self, failure: str, words: str) -> Ended:
        return Ended(failure, words, seconds=time.monotonic() - self.begun)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()
        self.output.close()
        if self.process.stdin:
            self.process.stdin.close()


def carry_out_all(
    work: Work[T, S], tasks: Sequence[T], shared: S, jobs: int, watch: Watch, say: Say, on_end: OnEnd[T],
    may_begin: MayBegin = always,
) -> None:  # fmt: skip
    """The tasks in their order, so many at once; each that ends is told. What may not be begun any more is left.

    A wish to stop is met when all have saved what they have.
    """
    if not tasks:
        return
    at_once = min(jobs, len(tasks))
    threads = _threads(at_once)
    waiting, busy, idle = deque(tasks), list[Worker](), list[Worker]()
    with stop_on_signals() as stop:
        try:
            while len(idle) < at_once:
                idle.append(Worker(work, shared, threads))
            while waiting or busy:
                while waiting and len(busy) < at_once and not stop.requested and may_begin(len(busy)):
                    busy.append(idle.pop() if idle else Worker(work, shared, threads))
                    busy[-1].begin(waiting.popleft())
                if not busy and not stop.requested:
                    return
                ready = wait([one.connection for one in busy], ASKED_EVERY)
                for worker in [one for one in busy if one.connection in ready]:
                    ended, task = worker.hear(watch, say), worker.task
                    if ended is None or task is None:
                        continue
                    busy.remove(worker)
                    if ended.stopped or worker.dead:
                        worker.close()
                    else:
                        idle.append(worker)
                    if ended.stopped and not stop.requested:
                        ended = Ended("its process was asked to end, by a signal that was not ours.")
                    if not ended.stopped:
                        on_end(task, ended)
                if stop.requested:
                    _stop(busy)
                    raise Stopped("stopped")
        finally:
            for worker in [*busy, *idle]:
                worker.close()


def carry_out_here(
    work: Work[T, S], tasks: Sequence[T], shared: S, watch: Watch, say: Say, on_end: OnEnd[T],
    may_begin: MayBegin = always,
) -> None:  # fmt: skip
    """The same in this process, one task after the other: what dies takes all with it."""
    for task in tasks:
        if not may_begin(0):
            return
        on_end(task, attempt(work, task, shared, watch, say))


def can_be_sent(task: WorkerTask) -> bool:
    """Whether another process finds all classes of the task: not those of a notebook or of a script that is run."""
    try:
        found = _Modules(pickle.dumps(task))
    except Exception:  # such as a class within a function
        return False
    found_elsewhere = (name in sys.stdlib_module_names or PathFinder.find_spec(name) for name in found.names)
    return "__main__" not in found.names and all(found_elsewhere)


class _Modules(pickle.Unpickler):
    """The modules, without what is inside of them, that content names."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content))
        self.names: set[str] = set()
        self.load()

    def find_class(self, module: str, name: str) -> Any:
        self.names.add(module.partition(".")[0])
        return super().find_class(module, name)


def _stop(workers: Sequence[Worker]) -> None:
    """Asks all to save and end. They are listened to meanwhile: none may wait for someone to hear it."""
    for worker in workers:
        worker.process.terminate()
    until, open_ones = time.monotonic() + PATIENCE, list(workers)
    while open_ones and time.monotonic() < until:
        for connection in wait([one.connection for one in open_ones], ASKED_EVERY):
            worker = next(one for one in open_ones if one.connection is connection)
            try:
                over = isinstance(worker.connection.recv(), Ended)
            except (EOFError, ConnectionResetError, pickle.UnpicklingError):
                over = True
            if over:
                open_ones.remove(worker)


def _threads(jobs: int) -> int:
    """The machine's cores, shared by the jobs; no more than OMP_NUM_THREADS, where that is set."""
    cores = devices.cores()
    given = os.environ.get("OMP_NUM_THREADS", "")
    most = int(given) if given.isdecimal() and int(given) else cores
    return max(1, min(cores // jobs, most))
