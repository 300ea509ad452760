"""How long work tells of itself: what is done, and what there is to do. Who sees it is decided in watching.py."""

from collections.abc import Callable
from typing import Protocol

Say = Callable[[str], None]


class Progress(Protocol):
    def __call__(self, done: int, total: int, **values: float) -> None: ...


Watch = Callable[[str], Progress]  # of what is done beside other work: its progress, by its name


def unheard(line: str) -> None:
    """Nobody is listening."""


def silent(done: int, total: int, **values: float) -> None:
    """Nobody is watching."""


def unwatched(what: str) -> Progress:
    """Nobody is watching any of it."""
    return silent


def part(progress: Progress, number: int, of: int) -> Progress:
    """The progress of one of several equal parts of a task."""

    def inner(done: int, total: int, **values: float) -> None:
        progress(number * total + done, of * total)

    return inner
