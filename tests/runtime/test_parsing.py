"""Whatever a text holds, it becomes a small tree of plain values, or a sentence."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from timediff.errors import TimeDiffError
from timediff.runtime.parsing import MAX_DEPTH, Unreadable, parse_json, parse_toml, read_json, read_text
from timediff.settings.toml import dumps

leaves = st.none() | st.booleans() | st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False) | st.text()
trees = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3))


@given(trees.filter(lambda tree: "Infinity" not in json.dumps(tree)))
def test_json_comes_back_as_it_was_written(tree: Any) -> None:
    assert parse_json(json.dumps(tree), "here") == tree


@given(st.text())
def test_any_text_is_a_tree_or_a_sentence(text: str) -> None:
    said = []
    for parse in (parse_json, parse_toml):
        try:
            parse(text, "here")
        except TimeDiffError as error:
            said.append(str(error))
    assert all(sentence.startswith("here ") and len(sentence) < 200 for sentence in said)


@pytest.mark.parametrize("parse", [parse_json, parse_toml], ids=["json", "toml"])
@pytest.mark.parametrize("depth", [MAX_DEPTH + 2, 5_000, 100_000])
def test_nesting_has_a_limit(parse: Any, depth: int) -> None:
    text = "[" * depth + "]" * depth
    with pytest.raises(Unreadable, match="nested more than 32 deep"):
        parse(text if parse is parse_json else f"a = {text}", "here")


def test_nesting_within_the_limit_is_read() -> None:
    depth = MAX_DEPTH - 1
    tree: Any = parse_toml(f"a = {'[' * depth}{']' * depth}", "here")["a"]
    while tree:
        tree, depth = tree[0], depth - 1
    assert depth == 1


@pytest.mark.parametrize("number", ["9" * 20, "-" + "9" * 300, "1" + "0" * 5000, "1e999", "1." + "0" * 5000])
def test_a_number_that_no_machine_holds_is_refused(number: str) -> None:
    with pytest.raises(Unreadable, match=r"64 bits|double precision|digits"):
        parse_json(number, "here")
    with pytest.raises(Unreadable, match=r"64 bits|double precision|digits"):
        parse_toml(f"a = {number}", "here")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_json_numbers_are_finite_unless_others_are_allowed(constant: str) -> None:
    with pytest.raises(Unreadable, match="not valid JSON: it holds"):
        parse_json(f'{{"a": {constant}}}', "here")
    assert not math.isfinite(parse_json(constant, "here", finite=False))


def test_half_a_character_is_refused() -> None:
    for text in ('{"a": "\\ud800"}', '{"\\ud800": 1}'):
        with pytest.raises(Unreadable, match="not valid Unicode"):
            parse_json(text, "here")


@given(st.dictionaries(st.text(min_size=1), leaves.filter(lambda leaf: leaf is not None), max_size=4))
def test_toml_comes_back_as_it_was_written(table: dict[str, Any]) -> None:
    assert parse_toml(dumps(table), "here") == table


def test_files_have_a_size_an_encoding_and_a_place(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    with pytest.raises(Unreadable, match=r"a\.json could not be read: No such file"):
        read_json(file)
    with pytest.raises(Unreadable, match="could not be read"):
        read_json(tmp_path)
    file.write_bytes(b"[1, \xff]")
    with pytest.raises(Unreadable, match=r"a\.json is not a text in UTF-8 \(byte 4\)"):
        read_json(file)
    file.write_text("[1, 2]")
    assert read_json(file) == [1, 2]
    with pytest.raises(Unreadable, match="has 6 bytes; expected at most 5"):
        read_text(file, max_bytes=5)
