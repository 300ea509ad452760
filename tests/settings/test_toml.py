"""What is written as TOML reads back as it was."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from timediff.settings.toml import dumps

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
plain = st.one_of(texts, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False))
values = st.one_of(plain, st.lists(plain, max_size=4))
tables = st.dictionaries(texts, values, max_size=4)


@given(tables, st.dictionaries(texts, tables, max_size=3), st.lists(tables, min_size=1, max_size=3))
def test_tables_survive_a_round_trip(top: dict, nested: dict, many: list) -> None:
    table = {**top, "nested": nested, "many": many}
    assert tomllib.loads(dumps(table)) == table


def test_none_is_left_out() -> None:
    assert dumps({"a": None, "b": 1}) == "b = 1\n"
