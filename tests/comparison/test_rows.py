"""Rows: what the options mean, and where a row lies."""

from pathlib import Path

import pytest

import timediff as td
from timediff.comparison.rows import Row, parsed_rows, rows_of
from timediff.errors import TimeDiffError
from timediff.generators.registry import GENERATORS


def made(*generators: str, presets: tuple[str, ...] = (), configs: tuple[str, ...] = (), changes: tuple[str, ...] = ()):
    return {row.name: row for row in parsed_rows(generators, presets, configs, changes)}


def test_a_generator_has_its_own_preset_and_a_preset_its_own_generator() -> None:
    rows = made("timediff", "mine=timegan", presets=("paper", "theirs=rcgan"))
    assert {name: row.kind.name for name, row in rows.items()} == {
        "timediff": "timediff", "mine": "timegan", "paper": "timediff", "theirs": "rcgan",
    }  # fmt: skip
    assert rows["timediff"].settings == td.resolve("fast")
    assert rows["paper"].settings == td.resolve("paper")
    assert rows["mine"].settings == td.resolve("timegan")


def test_a_preset_with_the_name_of_a_row_is_that_row_s() -> None:
    rows = made("a=timediff", "rcgan", presets=("a=paper", "rcgan"))
    assert rows["a"].settings == td.resolve("paper")
    assert list(rows) == ["a", "rcgan"]
    with pytest.raises(TimeDiffError, match="has a preset already"):
        made("a=timediff", presets=("a=paper", "a=fast"))


def test_settings_are_of_one_row_or_of_all(tmp_path: Path) -> None:
    file = tmp_path / "more.toml"
    file.write_text("[training]\nsteps = 7\n")
    rows = made("rcgan", "timegan", configs=(str(file),), changes=("training.batch=8", "timegan:training.steps=9"))
    assert [(row.settings.training.steps, row.settings.training.batch) for row in rows.values()] == [(7, 8), (9, 8)]
    rows = made("rcgan", "timegan", configs=(f"timegan={file}",))
    assert rows["timegan"].settings.training.steps == 7
    assert rows["rcgan"].settings == td.resolve("rcgan")


def test_in_python_names_and_unfitted_generators_are_rows() -> None:
    small = GENERATORS("rcgan")(assignments={"training.steps": 7})
    rows = rows_of({"a": small, "b": "paper", "c": "timegan"})
    assert [(row.kind.name, row.settings.training.steps) for row in rows[:2]] == [("rcgan", 7), ("timediff", 700_000)]
    assert [row.name for row in rows_of(["fast", "rcgan"])] == ["fast", "rcgan"]
    for wrong, words in (
        (["rcgan", "rcgan"], "given twice"),
        ("rcgan", "a list of names"),
        ({"a": 5}, "expected the name"),
    ):
        with pytest.raises(TimeDiffError, match=words):
            rows_of(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["..", ".", "A", "a b", "中", "a/b", "-", "x" * 100, "Ä" * 100, "con.txt"])
def test_no_name_leads_out_of_its_folder_or_to_another_s(name: str) -> None:
    folder = Row(name, GENERATORS("rcgan"), td.resolve("rcgan")).folder
    assert Path(folder).name == folder
    assert folder[0].isalnum()
    assert folder.isascii()
    assert folder == folder.lower()
    assert len(folder) < 100
    assert folder != Row(name.swapcase() + "a", GENERATORS("rcgan"), td.resolve("rcgan")).folder
