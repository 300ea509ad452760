"""No measurement is lost unsaid: each is counted under the reason that took it, and many ask for a word."""

from pathlib import Path
from typing import Any

import pytest

import timediff as td
from timediff.errors import TimeDiffError
from timediff.sources.losses import AFTER_GRID, REASONS, LossCounts, require_kept
from timediff.sources.table import TableSource
from timediff.sources.table_settings import TableFeature, TableSettings

ROWS = """id,t,hr,vent,out
1,-1,60,1,2
1,0,60,1,2
1,0,62,1,2
1,0.5,400,,2
1,1,text,0,2
1,1.5,61,,2
1,,63,0,2
1,2,64,,2
1,3,65,,2
1,9,66,1,2
2,0,70,,
2,0,70,,
"""
HR, VENT = TableFeature("hr", below=300), TableFeature("vent", kind="binary")


def extract(folder: Path, rows: str = ROWS, **changes: Any) -> Any:
    (folder / "t.csv").write_text(rows)
    given: dict[str, Any] = {"layout": "wide", "stay": "id", "time": "t", "step": "1h", "steps": 3, "time_unit": "h"}
    given |= {"origin": "zero", "feature": (HR, VENT), "unparsed": "missing", "length": "out", **changes}
    return TableSource().extract(str(folder / "t.csv"), TableSettings(**given))


def test_every_measurement_is_kept_or_counted_under_one_reason(tmp_path: Path) -> None:
    losses = extract(tmp_path).losses
    assert losses.found == {"hr": 12, "vent": 6}
    assert losses.lost["hr"] == {
        "unparsed": 1,
        "outside the limits": 1,
        "without a time": 1,
        "of a stay without a start or an end": 2,
        "before the start": 1,
        AFTER_GRID: 2,
        "after the end of the stay": 1,
        "duplicates": 1,
    }
    assert losses.lost["vent"] == {"without a time": 1, "before the start": 1, AFTER_GRID: 1, "duplicates": 1}
    kept = 12 - sum(losses.lost["hr"].values())
    assert kept == 2  # 60 and 62 at 0 h, of which one is a duplicate, and 61 at 1.5 h
    assert losses.fraction("hr") == 10 / 12
    assert sum(losses.by_reason().values()) == losses.fraction() * losses.total


def test_what_is_lost_already_is_no_duplicate_too(tmp_path: Path) -> None:
    rows = "id,t,hr,vent,out\n1,0,60,,2\n1,9,61,,2\n1,9,62,,2\n1,-1,63,,2\n1,-1,64,,2\n1,2.5,65,,2\n1,2.5,66,,2\n"
    assert extract(tmp_path, rows).losses.by_reason() == {
        "before the start": 2,
        AFTER_GRID: 2,
        "after the end of the stay": 2,
    }


def test_only_what_is_exactly_on_the_grid_counts_where_that_is_the_rule(tmp_path: Path) -> None:
    losses = extract(tmp_path, rule="at", length="grid").losses
    assert losses.lost["hr"]["off the grid"] == 1
    assert losses.lost["hr"]["duplicates"] == 2
    assert "off the grid" not in losses.lost["vent"]  # classes are the last ones, whatever the rule
    assert "duplicates" not in extract(tmp_path, rule="sum", length="grid").losses.lost["hr"]  # each is counted


def test_what_cannot_be_read_is_refused_unless_it_may_be_missing(tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match=r'1 value, such as a text; .* unparsed = "missing"'):
        extract(tmp_path, unparsed="refuse")
    with pytest.raises(TimeDiffError, match="'id': 2 values, such as a text; expected a whole number"):
        extract(tmp_path, ROWS.replace("2,0,70", "x,0,70"))


def losses(*lost: int, found: int = 1000, purpose: tuple[str, ...] = ()) -> LossCounts:
    return LossCounts({"hr": found}, {"hr": dict(zip(REASONS, lost, strict=False))}, purpose)


@pytest.mark.parametrize(
    ("lost", "refused"),
    [
        (losses(50), False),
        (losses(51), True),
        (losses(25, 26), True),
        (losses(0, 0, 0, 0, 0, 900), True),
        (losses(0, 0, 0, 0, 0, 900, purpose=(AFTER_GRID,)), False),
        (losses(51, 0, 0, 0, 0, 900, purpose=(AFTER_GRID,)), True),
        (LossCounts({"hr": 10_000, "urine": 9}, {"urine": {"unparsed": 5}}), True),
        (LossCounts({"hr": 10_000, "urine": 9}, {"urine": {"unparsed": 4}}), False),
        (LossCounts({"hr": 0}, {}), False),
        (None, False),
    ],
)
def test_more_than_a_twentieth_or_most_of_one_feature_asks_for_a_word(lost: LossCounts | None, refused: bool) -> None:
    if not refused:
        require_kept(lost, "t.csv")
        return
    with pytest.raises(TimeDiffError) as caught:
        require_kept(lost, "t.csv")
    assert "--accept-loss" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_sentence_says_the_reason_that_took_most_and_what_to_do() -> None:
    with pytest.raises(TimeDiffError) as caught:
        require_kept(losses(0, 10, 0, 0, 0, 900), "t.csv")
    assert str(caught.value) == (
        "t.csv: 91.0% of 1,000 measurements would be lost: 10 outside the limits (hr 10); 900 after the last step "
        "(hr 900); set more steps or another time_unit, or cut = true if they are left out on purpose, or accept it "
        "with --accept-loss (in Python accept_loss=True)."
    )


CONFIG = """layout = "wide"
stay = "id"
time = "t"
time_unit = "h"
origin = "zero"
step = "1h"
steps = 3
[[feature]]
name = "hr"
"""


def test_from_python_it_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,t,hr\n1,0,60\n1,5,61\n")
    (tmp_path / "t.toml").write_text(CONFIG)
    source, config, out = tmp_path / "t.csv", tmp_path / "t.toml", tmp_path / "out"
    with pytest.raises(TimeDiffError, match=r"50\.0% of 2 measurements"):
        td.extract("table", source, out, config=config)
    assert not out.exists()
    assert td.extract("table", source, out, config=config, changes={"cut": True}).cohort["hr"][0, 0] == 60
    summary = td.describe(out)
    assert "1 of 2 measurements after the last step" in str(summary)
    assert [record.feature.name for record in summary.features] == ["hr"]
