"""What a person sees while waiting: a bar with a remaining time, or a line now and then where there is no terminal."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from timediff.runtime import devices
from timediff.runtime.progress import Progress, Watch

if TYPE_CHECKING:
    from timediff.data.cohort import Cohort

console = Console(highlight=False, quiet=devices.rank() > 0)  # of many processes only the first speaks
errors = Console(stderr=True, highlight=False)
QUIET_SECONDS = 10  # between two lines of a log


def say(line: str) -> None:
    console.print(line, markup=False, soft_wrap=True)


def shortened(cohort: "Cohort", horizon: int | None, path: Path) -> "Cohort":
    """The first steps of the stays that have so many, and how many stays do not."""
    if horizon is None:
        return cohort
    kept = cohort.horizon(horizon)
    if dropped := len(cohort) - len(kept):
        say(f"{path}: --horizon {horizon} drops {dropped:,} of {len(cohort):,} stays, which are shorter")
    return kept


@contextmanager
def bar(what: str) -> Iterator[Progress]:
    """Yields a function that shows how far `what` is."""
    if not console.is_terminal:
        yield _Lines(what)
        return
    with _columns() as shown:
        task = shown.add_task(what, total=None, note="")

        def show(done: int, total: int, **values: float) -> None:
            if values:
                shown.update(task, note=_noted(values))
            shown.update(task, completed=done, total=total)

        yield show


@contextmanager
def bars() -> Iterator[Watch]:
    """Yields a function that gives a name a bar of its own; a bar that is full is taken away."""
    if not console.is_terminal:
        yield lambda what: _Lines(what, ends=False)
        return
    with _columns() as shown:

        def watch(what: str) -> Progress:
            task = shown.add_task(escape(what), total=None, note="")

            def show(done: int, total: int, **values: float) -> None:
                noted = {"note": _noted(values)} if values else {}
                shown.update(task, completed=done, total=total, visible=done < total, **noted)  # type: ignore[arg-type]

            return show

        yield watch


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """For what cannot say how far it is, such as the first import of PyTorch."""
    with console.status(escape(what)):
        yield


def _columns() -> Bars:
    return Bars(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=console,
    )  # fmt: skip


class _Lines:
    def __init__(self, what: str, *, ends: bool = True) -> None:
        self.what, self.start, self.ends = what, time.monotonic(), ends
        self.last = self.start

    def __call__(self, done: int, total: int, **values: float) -> None:
        now = time.monotonic()
        if done == 0 or (done >= total and not self.ends) or (now - self.last < QUIET_SECONDS and done < total):
            return
        self.last = now
        left = (now - self.start) / done * (total - done)
        times = f"{now - self.start:.0f} s gone, {left:.0f} s left"
        say(f"{self.what}: {done / total:4.0%}, {times} {_noted(values)}".rstrip())


def _noted(values: dict[str, float]) -> str:
    names = {"loss": "loss {:.3f}", "rate": "{:,.0f} stays/s", "models": "{:g} done"}
    return "  ".join(names.get(name, name + " {:g}").format(value) for name, value in values.items())
