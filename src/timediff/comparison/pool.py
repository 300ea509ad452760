"""Workers: several trainings at once, each in a process of its own."""

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
from typing import IO, Any

from timediff.comparison.training import TrainingTask
from timediff.comparison.worker import Ended, Said, Seen
from timediff.data.cohort import Cohort
from timediff.errors import Stopped
from timediff.runtime.progress import Progress, Say, Watch
from timediff.training.signals import stop_on_signals

# The worker finds the same modules as this process; its own folder is none of the places to look in (-P).
START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from timediff.comparison.worker import main; main()"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
ASKED_EVERY = 0.2  # seconds after which a wish to stop is heard
SLOWEST_END = 5.0  # seconds that a process which says nothing any more may take to end
PATIENCE = 60.0  # seconds in which a worker may save what it has
LAST_WORDS = 4000  # bytes of what a process printed before it died

OnEnd = Callable[[TrainingTask, Ended], None]


class Worker:
    """A process, and the task that it has."""

    def __init__(self, train: Cohort, threads: int) -> None:
        ours, theirs = Pipe()
        self.connection: Connection[Any, Any] = ours
        self.task: TrainingTask | None = None
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
        self._send(train)

    def begin(self, task: TrainingTask) -> None:
        self.task, self.bars = task, {}
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
        try:
            code = self.process.wait(SLOWEST_END)
        except subprocess.TimeoutExpired:  # it has closed the pipe and lives on
            self.process.kill()
            code = self.process.wait()
        self.output.seek(max(0, self.output.seek(0, os.SEEK_END) - LAST_WORDS))
        words = self.output.read().decode("utf-8", "replace")
        if code < 0:
            name = Signals(-code).name if -code in set(Signals) else "unknown"
            memory = ", as a system does where memory is short" if name == "SIGKILL" else ""
            return Ended(f"its process was ended by signal {-code} ({name}){memory}.", words)
        return Ended(f"its process ended with exit code {code}.", words)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.connection.close()
        self.output.close()
        if self.process.stdin:
            self.process.stdin.close()


def carry_out_all(
    tasks: Sequence[TrainingTask], train: Cohort, jobs: int, watch: Watch, say: Say, on_end: OnEnd
) -> None:
    """All tasks, so many at once; each that ends is told. A wish to stop is met when all have saved what they have."""
    if not tasks:
        return
    waiting, busy, idle = deque(tasks), list[Worker](), list[Worker]()
    threads = _threads(min(jobs, len(tasks)))
    with stop_on_signals() as stop:
        try:
            while waiting or busy:
                while waiting and len(busy) < jobs and not stop.requested:
                    busy.append(idle.pop() if idle else Worker(train, threads))
                    busy[-1].begin(waiting.popleft())
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


def can_be_sent(task: TrainingTask) -> bool:
    """Whether another process finds the generator: not that of a notebook or of a script that is run."""
    try:
        content = pickle.dumps(task)
    except Exception:  # such as a class within a function
        return False
    modules = {kind.__module__.partition(".")[0] for kind in (task.row.kind, type(task.row.settings))}
    return b"__main__" not in content and all(PathFinder.find_spec(module) is not None for module in modules)


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
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    given = os.environ.get("OMP_NUM_THREADS", "")
    most = int(given) if given.isdecimal() and int(given) else cores
    return max(1, min(cores // jobs, most))
