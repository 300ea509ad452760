"""Items that are computed ahead."""

from collections.abc import Iterator

import pytest

from timediff.runtime.prefetch import ahead


def test_items_computed_ahead_are_the_same_and_errors_come_through() -> None:
    assert list(ahead(iter(range(5)))) == list(range(5))
    assert list(ahead(iter(()))) == []

    def broken() -> Iterator[int]:
        yield 1
        raise ValueError("no more")

    coming = ahead(broken())
    assert next(coming) == 1
    with pytest.raises(ValueError, match="no more"):
        next(coming)
