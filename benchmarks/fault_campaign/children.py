"""Commands in children that are forked from a process in which everything is imported: a case takes milliseconds."""

import functools
import importlib
import io
import json
import os
import pkgutil
import resource
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fault_campaign.case import Case, Outcome, everything

ADDRESSES = 12 * 2**30  # bytes of address space, above which an allocation fails
SKIPPED = ("timediff.__main__", "timediff.kernels.lstm_inference", "timediff.kernels.lstm_training")


def warm() -> None:
    """Imports all that a command may import, with one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"
    import timediff

    for module in pkgutil.walk_packages(timediff.__path__, "timediff."):
        if module.name not in SKIPPED:
            importlib.import_module(module.name)
    for name in (
        "torch._dynamo",
        "torch.utils.tensorboard",
        "plotly.graph_objects",
        "plotly.io",
        "ibis.backends.duckdb",
    ):
        importlib.import_module(name)
    import pyarrow as pa
    import torch
    import typer.main

    typer.main.get_command = functools.cache(typer.main.get_command)  # built once, not for each command
    torch.set_num_threads(1)
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def call(argv: Sequence[str], printed: Path) -> Outcome:
    """Runs one command line in this process; what it prints goes into a file, as bytes."""
    from timediff import cli

    outcome = Outcome()
    before = (sys.argv, sys.stdout, sys.stderr, os.dup(1), os.dup(2))
    target = os.open(printed, os.O_CREAT | os.O_TRUNC | os.O_RDWR)
    os.dup2(target, 1)
    os.dup2(target, 2)
    sys.argv = ["timediff", *argv]
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), "utf-8", "strict", line_buffering=True)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True)
    try:
        cli.main()
        outcome.code = 0
    except SystemExit as end:
        outcome.code = end.code if isinstance(end.code, int) else 1 if end.code else 0
    except BaseException as error:
        outcome.place = place(error)
        sys.stderr.write(traceback.format_exc())
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        sys.argv, sys.stdout, sys.stderr = before[:3]
        os.dup2(before[3], 1)
        os.dup2(before[4], 2)
        for descriptor in (*before[3:], target):
            os.close(descriptor)
    outcome.printed = printed.read_bytes().decode(errors="replace")
    return outcome


def place(error: BaseException) -> str:
    """The last line of TimeDiff that an exception went through, and its type."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/timediff/" in frame.filename] or list(frames)
    where = ours[-1].filename.rpartition("/timediff/")[2]
    return f"{type(error).__name__} at {where}:{ours[-1].lineno} ({ours[-1].name})"


def perform(prepare: Callable[[Path], Case], folder: Path) -> tuple[Case, Outcome]:
    """Prepares a case in a folder of its own, runs it, and runs the corrected command after a refusal."""
    work, temporary = folder / "work", folder / "tmp"
    work.mkdir(parents=True)
    temporary.mkdir()
    os.chdir(work)
    os.environ["TMPDIR"] = str(temporary)
    tempfile.tempdir = None
    case = prepare(work)
    outcome = _run(case, case.argv, folder)
    if outcome.code == 2 and case.mend is not None and (outcome.appeared or case.repeated):
        case.mend()
        outcome.again = _run(case, case.again or case.argv, folder)
    return case, outcome


def _run(case: Case, argv: Sequence[str], folder: Path) -> Outcome:
    work, temporary = folder / "work", folder / "tmp"
    before, present, peak = everything(work), memory("VmRSS"), memory("VmHWM")
    outcome = call(argv, folder / "printed")
    os.chdir(work)
    outcome.memory = memory("VmHWM") - present if memory("VmHWM") > peak else 0
    outcome.appeared = sorted(everything(work) - before) + [f"tmp:{name}" for name in sorted(everything(temporary))]
    outside = sorted(p.name for p in folder.iterdir() if p.name not in ("work", "tmp", "printed"))
    outcome.appeared += [f"../{name}" for name in outside]
    if outcome.code == 0 and case.measure is not None:
        outcome.measured = case.measure(outcome.printed)
    return outcome


def memory(of: str) -> int:
    """MiB of this process: VmRSS now, or VmHWM at its peak."""
    return int(Path("/proc/self/status").read_text().partition(f"{of}:")[2].split()[0]) // 1024


def in_child(work: Callable[[Callable[[Any], None]], None], seconds: float = 0) -> Iterator[Any]:
    """Yields what `work` sends from a forked child; at last how the child ended: its wait status."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
            with os.fdopen(writer, "w") as pipe:

                def send(message: Any) -> None:
                    pipe.write(json.dumps(message) + "\n")
                    pipe.flush()

                work(send)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        for line in pipe:
            yield json.loads(line)
    yield {"ended": os.waitpid(child, 0)[1]}


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """The signal's default action ends the process, wherever it is."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


def outcome_of(function: Callable[[], None]) -> int:
    """Runs a function in a child; its wait status."""
    return int(list(in_child(lambda send: function()))[-1]["ended"])
