"""What a person sees while waiting: a bar with a remaining time, or a line now and then where there is no terminal."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from timediff.runtime import devices
from timediff.runtime.progress import Progress

console = Console(highlight=False, quiet=devices.rank() > 0)  # of many processes only the first speaks
errors = Console(stderr=True, highlight=False)
QUIET_SECONDS = 10  # between two lines of a log


def say(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


@contextmanager
def bar(what: str) -> Iterator[Progress]:
    """Yields a function that shows how far `what` is."""
    if not console.is_terminal:
        yield _Lines(what)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
    )
    with Bars(*columns, TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=console) as bars:
        task = bars.add_task(what, total=None, note="")

        def show(done: int, total: int, **values: float) -> None:
            if values:
                bars.update(task, note=_noted(values))
            bars.update(task, completed=done, total=total)

        yield show


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """For what cannot say how far it is, such as the first import of PyTorch."""
    with console.status(escape(what)):
        yield


class _Lines:
    def __init__(self, what: str) -> None:
        self.what, self.start = what, time.monotonic()
        self.last = self.start

    def __call__(self, done: int, total: int, **values: float) -> None:
        now = time.monotonic()
        if now - self.last < QUIET_SECONDS and done < total:
            return
        self.last = now
        left = (now - self.start) / done * (total - done)
        times = f"{now - self.start:.0f} s gone, {left:.0f} s left"
        say(f"{self.what}: {done / total:4.0%}, {times} {_noted(values)}".rstrip())


def _noted(values: dict[str, float]) -> str:
    names = {"loss": "loss {:.3f}", "rate": "{:,.0f} stays/s"}
    return "  ".join(names.get(name, name + " {:g}").format(value) for name, value in values.items())
