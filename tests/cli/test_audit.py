"""`timediff audit`: from cohort folders to a page and an exit code."""

from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import SMALL, Run
from timediff.cli.check import check
from timediff.sources.simulated import simulate


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("audit")
    whole = simulate(400, steps=6, seed=8)
    for name, part in (("train", slice(0, 200)), ("held-out", slice(200, 400))):
        whole.take(np.arange(400)[part]).write(home / name)
    return home


def test_a_cohort_of_copies_ends_with_exit_code_3(folders: Path, tmp_path: Path, run: Run) -> None:
    train, held_out = str(folders / "train"), str(folders / "held-out")
    code, out, _ = run(
        "audit", train, held_out, str(tmp_path / "out"), "--synthetic", train, "--attack", "distance", "--no-power"
    )
    assert code == 3
    assert "May the synthetic cohort leave the house? signs of a leak. Of 1 attacks: nearest synthetic stay" in out
    assert "an attack succeeded" in out
    assert (tmp_path / "out" / "audit.html").exists()
    checked = check(tmp_path / "out")
    assert checked.kind == "an audit"
    assert checked.intact


def test_a_run_is_attacked_through_its_folder(folders: Path, tmp_path: Path, run: Run) -> None:
    train, held_out = str(folders / "train"), str(folders / "held-out")
    code, out, _ = run("fit", train, str(tmp_path / "run"), *SMALL)
    assert code == 0
    assert "A run folder knows more of the training stays" in out
    assert "200 training stays are few" in out
    code, out, _ = run(
        "audit", train, held_out, str(tmp_path / "out"), "--run", str(tmp_path / "run"), "--attack", "lira",
        "--models", "4", "--no-power",
    )  # fmt: skip
    assert code in (0, 3)
    assert "shadow model 4 of 4" in out
    assert "May the run folder leave the house?" in out


def test_mistakes_are_one_sentence(folders: Path, tmp_path: Path, run: Run) -> None:
    train, held_out = str(folders / "train"), str(folders / "held-out")
    code, _, error = run("audit", train, held_out, str(tmp_path / "out"))
    assert code == 2
    assert "nothing to attack" in error
    code, _, error = run("audit", train, train, str(tmp_path / "out"), "--synthetic", train)
    assert code == 2
    assert "share what they must not" in error
    assert not (tmp_path / "out").exists()
