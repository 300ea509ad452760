"""The command that evaluates: its exit code tells a script what its page tells a person."""

from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import Run
from timediff.cli.check import check
from timediff.evaluation.results import Results
from timediff.sources.simulated import simulate

METRICS = ("copies", "near_copies", "nnaa", "mir")


@pytest.fixture(scope="module")
def cohorts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cohorts")
    icu = simulate(500, steps=4, seed=0)
    for name, start, end in (("train", 0, 200), ("test", 200, 350), ("fresh", 350, 500)):
        icu.take(np.arange(start, end)).write(folder / name)
    return folder


def command(cohorts: Path, out: Path, *synthetic: str) -> list[str]:
    given = [f"--synthetic={name}={cohorts / path}" for name, path in (one.split("=") for one in synthetic)]
    chosen = [f"--only={name}" for name in METRICS]
    return ["evaluate", f"--train={cohorts / 'train'}", f"--test={cohorts / 'test'}", *given, f"--out={out}", *chosen]


def test_a_leak_ends_with_three_when_all_is_written(run: Run, cohorts: Path, tmp_path: Path) -> None:
    code, out, err = run(*command(cohorts, tmp_path / "out", "honest=fresh", "copying=train"))
    assert code == 3
    assert "copying: Whom could it expose? signs of a leak. 100.00% of the synthetic stays are exact copies" in out
    assert "signs of a leak in copying: this ends with exit code 3" in out
    assert "Traceback" not in err
    assert (tmp_path / "out" / "report.html").is_file()
    assert set(Results.read(tmp_path / "out").scores) == {"honest", "copying"}


def test_no_leak_ends_with_zero(run: Run, cohorts: Path, tmp_path: Path) -> None:
    code, out, _ = run(*command(cohorts, tmp_path / "out", "honest=fresh"))
    assert code == 0
    assert "exit code" not in out
    assert "Whom could it expose? not shown. No exact copies or near copies beyond chance were found; whether" in out


def test_a_finished_evaluation_is_shown_again_by_resume_and_by_nothing_else(
    run: Run, cohorts: Path, tmp_path: Path
) -> None:
    given = [*command(cohorts, tmp_path / "out", "copying=train"), "--only=copies"]
    first = run(*given)
    again = run(*given, "--resume")
    assert (first[0], again[0]) == (3, 3)
    assert "is finished: nothing was left to do" in again[1]
    assert "signs of a leak in copying" in again[1]
    assert run(*given)[0] == 2
    code, _, err = run(*given, "--resume", "--seed=9")
    assert code == 2
    assert "holds another evaluation" in err


def test_an_audit_of_the_cohort_answers_the_third_question(run: Run, cohorts: Path, tmp_path: Path) -> None:
    for name in ("train", "fresh"):
        real = [str(cohorts / "train"), str(cohorts / "test"), str(tmp_path / f"audit-{name}")]
        run("audit", *real, "--synthetic", str(cohorts / name), "--attack", "distance", "--no-power")
    asked = command(cohorts, tmp_path / "out", "honest=fresh")
    code, out, _ = run(*asked, f"--audit={tmp_path / 'audit-fresh'}")
    assert code == 0
    assert "Whom could it expose? not shown. Audit: None of 1 attacks does better than chance" in out
    assert check(tmp_path / "out").intact
    asked = command(cohorts, tmp_path / "other", "honest=fresh")
    code, _, err = run(*asked, f"--audit={tmp_path / 'audit-train'}")
    assert code == 2
    assert "of no synthetic cohort that is evaluated here" in " ".join(err.split())
    assert not (tmp_path / "other").exists()


def test_help_says_so(run: Run) -> None:
    assert "Exit code 3" in run("evaluate", "--help")[1]


def test_a_report_is_not_called_what_it_is_not(run: Run, cohorts: Path, tmp_path: Path) -> None:
    run(*command(cohorts, tmp_path / "out", "honest=fresh"))
    for name in ("r.pdf", "r"):
        code, _, err = run("report", tmp_path / "out", "--out", tmp_path / name)
        assert code == 2
        assert "a report is an HTML file, such as r.html" in err
        assert not (tmp_path / name).exists()
    assert run("report", tmp_path / "out", "--out", tmp_path / "r.HTML")[0] == 0
