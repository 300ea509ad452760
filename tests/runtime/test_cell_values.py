"""A message says what kind of value a cell has, and the value itself only on request."""

from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timediff.runtime.cell_values import cell, cells, show_values

SECRET = "Jane Doe, 1950-03-04"


@given(st.lists(st.integers(10**6, 10**9) | st.floats(1e6, 1e9) | st.datetimes(), min_size=1), st.integers(1, 5))
def test_nothing_of_a_value_is_in_a_message(values: list[object], most: int) -> None:
    said = cells(values, most) + cell(values[0])
    assert not any(str(value) in said for value in values)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (SECRET, "a text"), ("  ", "an empty text"), ("12.5", "a number"), (7, "a number"), (None, "nothing"),
        (True, "true or false"), (datetime(2020, 1, 1), "a time"), (b"x", "bytes"), ([1], "list"),
    ],
)  # fmt: skip
def test_the_kind_is_said(value: object, kind: str) -> None:
    assert cell(value) == kind


def test_values_are_shown_where_that_is_asked_for_and_not_after() -> None:
    with show_values():
        assert cell(SECRET) == repr(SECRET)
        assert cells(["a", "b", "c"], most=2) == "'a', 'b', … (3 in all)"
        assert len(cell("x" * 500)) < 50
    assert cell(SECRET) == "a text"
    assert cells(["a", 3]) == "2 different values (a text, a number; --show-values shows them)"
