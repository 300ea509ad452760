"""Bars: in a terminal by Rich, in a notebook as HTML, and a line now and then where there is neither."""

import html
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from timediff.runtime.progress import Progress

QUIET_SECONDS = 10  # between two lines of a log
DRAWN_EVERY = 0.2  # seconds, in a notebook


@contextmanager
def bar(what: str, console: Console) -> Iterator[Progress]:
    """Yields a function that shows how far `what` is."""
    if in_notebook():
        yield NotebookBar(what)
    elif not console.is_terminal:
        yield Lines(what, console)
    else:
        with columns(console) as shown:
            task = shown.add_task(what, total=None, note="")

            def show(done: int, total: int, **values: float) -> None:
                if values:
                    shown.update(task, note=noted(values))
                shown.update(task, completed=done, total=total)

            yield show


def columns(console: Console) -> Bars:
    return Bars(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(), TextColumn("left"),
        TimeRemainingColumn(), TextColumn("{task.fields[note]}"), console=console,
    )  # fmt: skip


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell" or type(shell).__module__.startswith("google.colab")


class Lines:
    """A line every ten seconds, and one at the end."""

    def __init__(self, what: str, console: Console, *, ends: bool = True) -> None:
        self.what, self.console, self.start, self.ends = what, console, time.monotonic(), ends
        self.last = self.start

    def __call__(self, done: int, total: int, **values: float) -> None:
        now = time.monotonic()
        if done == 0 or (done >= total and not self.ends) or (now - self.last < QUIET_SECONDS and done < total):
            return
        self.last = now
        told = f"{self.what}: {done / total:4.0%}, {_times(now - self.start, done, total)} {noted(values)}"
        self.console.print(told.rstrip(), markup=False, soft_wrap=True)


class NotebookBar:
    """HTML that is drawn again in its place: no widgets need be installed."""

    def __init__(self, what: str) -> None:
        display: Any = import_module("IPython.display").display  # there, where a kernel is
        self.what, self.start, self.note = what, time.monotonic(), ""
        self.last = self.start
        self.place: Any = display(self._drawn(0, 0), raw=True, display_id=True)

    def __call__(self, done: int, total: int, **values: float) -> None:
        self.note = noted(values) or self.note
        now = time.monotonic()
        if now - self.last >= DRAWN_EVERY or done >= total:
            self.last = now
            self.place.update(self._drawn(done, total), raw=True)

    def _drawn(self, done: int, total: int) -> dict[str, str]:
        share = f"{done / total:.0%}, {_times(time.monotonic() - self.start, done, total)}" if done and total else ""
        text = f"{self.what} {share} {self.note}".rstrip()
        drawn = f'<progress value="{done}" max="{max(total, 1)}"></progress> {html.escape(text)}'
        return {"text/html": drawn, "text/plain": text}


def _times(gone: float, done: int, total: int) -> str:
    return f"{gone:.0f} s gone, {gone / done * (total - done):.0f} s left"


def noted(values: dict[str, float]) -> str:
    names = {"loss": "loss {:.3f}", "rate": "{:,.0f} stays/s", "models": "{:g} done"}
    return "  ".join(names.get(name, name + " {:g}").format(value) for name, value in values.items())
