"""Tables on the command line: settings inferred, losses said, shorter stays counted."""

import json
from pathlib import Path

import pytest

from helpers.command_line import SMALL, Run
from timediff.data.cohort import Cohort, read_cohort
from timediff.sources.losses import AFTER_GRID

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


def test_the_command_writes_nothing_until_the_loss_is_accepted(run: Run, tmp_path: Path) -> None:
    seconds = "".join(f"1,{3600 * hour},{60 + hour}\n" for hour in range(3))
    (tmp_path / "t.csv").write_text(f"id,t,hr\n{seconds}")
    (tmp_path / "t.toml").write_text(CONFIG)
    command = ["extract", "table", tmp_path / "t.csv", tmp_path / "out", "--config", tmp_path / "t.toml"]
    code, _, err = run(*command)
    assert code == 2
    assert "66.7% of 3 measurements would be lost: 2 after the last step (hr 2)" in err
    assert not (tmp_path / "out").exists()
    code, out, _ = run(*command, "--accept-loss")
    assert code == 0
    assert "2 measurements of 3 (66.7%) after the last step (hr 2)" in out
    written = json.loads((tmp_path / "out" / "extraction.json").read_text())["measurements"]
    assert written["found"] == 3
    assert written["lost"] == {AFTER_GRID: 2}
    assert written["features"] == {"hr": {"found": 3, "lost": {AFTER_GRID: 2}}}
    assert "2 of 3 measurements after the last step" in run("describe", tmp_path / "out")[1]
    assert run(*command[:3], tmp_path / "right", *command[4:], "--set", "time_unit=s")[0] == 0


def test_fifty_columns_need_no_fifty_blocks(run: Run, tmp_path: Path) -> None:
    labs = [f"lab_{i}" for i in range(48)]
    rows = [
        ",".join([str(stay), str(hour), *(str(stay + i + hour) for i in range(48))])
        for stay in (1, 2)
        for hour in (0, 1)
    ]
    (tmp_path / "t.csv").write_text("\n".join([",".join(["stay_id", "hour", *labs]), *rows]))
    (tmp_path / "outcomes.csv").write_text("RecordID,survival,death\n1,9,no\n2,2,Yes\n")
    label = f"{tmp_path / 'outcomes.csv'}:death"
    code, out, err = run("infer", tmp_path / "t.csv", "--label", label, "--out", tmp_path / "schema.toml")
    assert (code, err) == (0, "")
    assert "lab_47" in out
    assert "survival" not in out  # what else the outcomes' file has is no feature
    assert "Yes" not in out
    assert run("infer", tmp_path / "t.csv", "--out", tmp_path / "schema.toml")[0] == 2
    found = run("extract", "table", tmp_path / "t.csv", tmp_path / "out", "--config", tmp_path / "schema.toml")
    assert found[0] == 0, found
    cohort = read_cohort(tmp_path / "out")
    assert len(cohort.schema.temporal) == 48
    assert cohort.label.tolist() == [0, 1]


def test_without_a_file_to_write_the_settings_alone_are_printed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("stay_id,t,hr\n1,0,60\n1,1,61\n")
    code, out, err = run("infer", tmp_path / "t.csv")
    assert (code, err) == (0, "")
    assert run("infer", tmp_path / "t.csv", "--out", tmp_path / "t.toml")[0] == 0
    assert out == (tmp_path / "t.toml").read_text()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.csv"], "nowhere.csv is not a file"),
        (["t.csv", "--label", "zzz"], "the label 'zzz' is no column of a table"),
        (["t.csv", "--label", "hr"], "the label 'hr' changes within a stay"),
        (["t.csv", "--stay", "zzz"], "there is no column 'zzz'"),
        (["t.csv", "t.csv"], "t.csv is given twice"),
        (["t.csv", "--time-unit", "parsec"], "time_unit"),
        (["t.csv", "--step", "parsec"], "step is 'parsec'"),
        (["empty.csv"], "no line with the columns' names"),
    ],
)
def test_what_cannot_be_inferred_is_a_sentence(
    arguments: list[str], sentence: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text("stay_id,t,hr\n1,0,60\n1,1,61\n")
    Path("empty.csv").write_text("")
    code, _, err = run("infer", *arguments)
    assert code == 2
    assert sentence in err
    assert "Traceback" not in err


def test_a_fit_says_how_many_stays_a_horizon_drops(run: Run, icu: Cohort, tmp_path: Path) -> None:
    from dataclasses import replace

    import numpy as np

    length = np.where(np.arange(len(icu)) < 30, 5, 12)
    series = {name: np.where(np.arange(12) < length[:, None], values, np.nan) for name, values in icu.series.items()}
    replace(icu, series=series, length=length).write(tmp_path / "icu")
    code, out, _ = run("fit", tmp_path / "icu", tmp_path / "run", *SMALL, "--horizon", 6, "--dry-run")
    assert code == 0
    assert "--horizon 6 drops 30 of 200 stays, which are shorter" in out
    assert "drops" not in run("fit", tmp_path / "icu", tmp_path / "run", *SMALL, "--horizon", 5, "--dry-run")[1]
    err = run("fit", tmp_path / "icu", tmp_path / "run", *SMALL)[2]
    assert "with --horizon 5 none of 200, with --horizon 12 all but 170" in err
