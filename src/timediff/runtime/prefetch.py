"""Work ahead: the next item is computed while the last is in use."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items; each is computed in another thread while the one before it is in use."""
    with ThreadPoolExecutor(1) as worker:
        coming = worker.submit(_one, items)
        while got := coming.result():
            coming = worker.submit(_one, items)
            yield from got


def _one(items: Iterator[T]) -> list[T]:
    """The next item, or none."""
    for item in items:
        return [item]
    return []
