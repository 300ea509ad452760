"""How long work tells of itself: what is done, and what there is to do. Showing it is the command line's job."""

from typing import Protocol


class Progress(Protocol):
    def __call__(self, done: int, total: int, **values: float) -> None: ...


def silent(done: int, total: int, **values: float) -> None:
    """Nobody is watching."""
