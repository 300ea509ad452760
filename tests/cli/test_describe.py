"""`timediff describe` of whatever TimeDiff writes."""

from pathlib import Path

import pytest

import timediff as td
from helpers.command_line import SMALL, Run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cohorts, real and synthetic, a run, and results."""
    path = tmp_path_factory.mktemp("described")
    train, test = td.simulate(160, steps=6, seed=0).split(0.4, seed=0)
    train.write(path / "train")
    model = td.TimeDiff(settings=settings()).fit(train, seed=7, run=path / "run")
    made = model.sample(60, seed=3)
    made.write(path / "synthetic")
    td.evaluate_to(path / "results", train, test, made, only=["copies"])
    return path


def settings() -> object:
    from timediff.settings.resolve import parse_assignment, resolve

    return resolve("paper", assignments=dict(map(parse_assignment, SMALL[3::2])))


def test_a_run_says_what_was_fitted_and_how(folder: Path, run: Run) -> None:
    code, out, _ = run("describe", folder / "run")
    assert code == 0
    assert f"{folder / 'run'}: a run" in out
    assert "generator: timediff" in out
    assert "stays of 6 steps of 1h" in out
    assert "training seed: 7" in out
    assert f"version: {td.__version__}" in out
    assert "hidden = 8" in out
    assert f"run: {td.load(folder / 'run').identity[:16]}" in out


def test_a_run_that_has_no_weights_yet_is_described_too(folder: Path, tmp_path: Path, run: Run) -> None:
    from timediff.generators.run import Run as RunFolder

    whole = RunFolder.open(folder / "run")
    facts = {"generator": "timediff", "seed": 1, "stays": 96}
    RunFolder.create(tmp_path / "begun", whole.settings, whole.schema, facts, whole.codec())
    code, out, _ = run("describe", tmp_path / "begun")
    assert code == 0
    assert "not finished: timediff fit … --resume goes on" in out


def test_results_are_their_verdicts_and_facts(folder: Path, run: Run) -> None:
    code, out, _ = run("describe", folder / "results")
    assert code == 0
    assert "Results of synthetic: strict protocol" in out
    assert "training data, SHA-256" in out


def test_a_synthetic_cohort_says_so_on_the_screen_and_on_its_page(folder: Path, tmp_path: Path, run: Run) -> None:
    code, out, _ = run("describe", folder / "synthetic", "--html", tmp_path / "page.html")
    assert code == 0
    assert "synthetic: by timediff, 60 stays sampled with seed 3" in out
    page = (tmp_path / "page.html").read_text()
    for name, value in {"synthetic": "yes", "generator": "timediff", "sampling seed": "3"}.items():
        assert f'<th scope="row">{name}</th><td>{value}</td>' in page
    assert td.load(folder / "run").identity in page
    run("describe", folder / "train", "--html", tmp_path / "real.html")
    assert "sampling seed" not in (tmp_path / "real.html").read_text()


def test_a_page_is_of_a_cohort_alone(folder: Path, tmp_path: Path, run: Run) -> None:
    code, _, err = run("describe", folder / "run", "--html", tmp_path / "page.html")
    assert code == 2
    assert "is a run; --html draws a page of a cohort" in err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.mkdir()])
def test_what_is_none_of_ours_is_named(make, tmp_path: Path, run: Run) -> None:
    make(tmp_path / "what")
    code, _, err = run("describe", tmp_path / "what")
    assert code == 2
    assert "a cohort" in err
