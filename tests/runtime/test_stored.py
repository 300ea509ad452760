"""A dataclass from JSON has the types of its fields, or a sentence says which one has not."""

from dataclasses import asdict, dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timediff.errors import TimeDiffError
from timediff.runtime.parsing import Unreadable
from timediff.runtime.stored import restored


@dataclass(frozen=True)
class Inner:
    name: str

    def __post_init__(self) -> None:
        if self.name == "no":
            raise ValueError("no is no name")


@dataclass(frozen=True)
class Outer:
    count: int
    rate: float | None
    shown: bool
    lists: list[list[float | None]]
    inner: list[Inner] = field(default_factory=list)
    by_name: dict[str, float] = field(default_factory=dict)
    anything: Any = None


GOOD = Outer(3, 0.5, True, [[1.0, None]], [Inner("a")], {"x": 1.0}, {"y": [1]})
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3)
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
)


def test_what_was_written_comes_back() -> None:
    assert restored(Outer, asdict(GOOD), "here") == GOOD
    assert restored(Outer, {"count": 1, "rate": 2, "shown": False, "lists": []}, "here") == Outer(1, 2.0, False, [])


@given(st.sampled_from(list(asdict(GOOD))), trees)
def test_any_value_in_any_field_is_of_its_type_or_a_sentence(name: str, tree: Any) -> None:
    said = "here"
    try:
        again = restored(Outer, asdict(GOOD) | {name: tree}, "here")
        assert restored(Outer, asdict(again), "here") == again
    except TimeDiffError as error:
        said = str(error)
    assert said.startswith("here")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"count": True}, "count is not a whole number"),
        ({"count": 1.0}, "count is not a whole number"),
        ({"rate": "1"}, "rate is not a number or null"),
        ({"shown": 1}, "shown is not true or false"),
        ({"lists": [[1], 2]}, r"lists\[1\] is not a list"),
        ({"lists": [[1, "x"]]}, r"lists\[0\]\[1\] is not a number or null"),
        ({"inner": [{"nam": "a"}]}, r"inner\[0\] is not .*'nam' is none of Inner's fields"),
        ({"inner": [{}]}, r"inner\[0\] .* it lacks 'name'"),
        ({"inner": [{"name": "no"}]}, "no is no name"),
        ({"by_name": {"x": []}}, r"by_name\.x is not a number"),
    ],
)
def test_a_sentence_says_where(change: dict[str, Any], said: str) -> None:
    with pytest.raises(Unreadable, match=said):
        restored(Outer, asdict(GOOD) | change, "here")
