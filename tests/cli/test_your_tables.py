"""docs/your-tables.md: its files, commands and Python do what the page says."""

import re
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import Run
from timediff.data.cohort import read_cohort

PAGE = Path(__file__).parents[2] / "docs" / "your-tables.md"
BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_page_can_be_followed(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    said = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    shown = ""
    for kind, name, block in BLOCK.findall(text):
        if kind == "csv":
            Path(name).write_text(block)
        elif kind == "bash":
            for line in block.splitlines():
                code, out, err = run(*line.split()[1:])
                assert code == 0, err
                shown += out
        else:
            exec(block, {})
    assert said
    assert [line for line in said if line not in shown] == []
    cohort = read_cohort("cohort")
    np.testing.assert_array_equal(cohort.series["temperature"][0], [37.0, np.nan, np.nan])
    np.testing.assert_array_equal(cohort.series["temperature"][1], [36.9, 37.1, np.nan])
    assert cohort.lengths.tolist() == [3, 2, 3]
    assert cohort["sex"].tolist() == ["F", "F", "M"]
    assert cohort.label.tolist() == [0, 0, 1]
    assert cohort.static["patient_id"].tolist() == [7, 7, 8]
    assert "survival_days" not in cohort.static
