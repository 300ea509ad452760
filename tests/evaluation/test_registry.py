"""Metrics by name: one file each, those of other packages beside ours, and none imported before it is asked for."""

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from helpers import foreign_attack
from timediff.cli import app
from timediff.errors import TimeDiffError
from timediff.evaluation.case import Case
from timediff.evaluation.evaluate import evaluate, evaluate_to
from timediff.evaluation.figure_data import FigureData, PlotlyFigure
from timediff.evaluation.registry import HOMES, METRICS, Meaning, Metric, metric
from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.report.summary import scores_table
from timediff.report.verdicts import exposes
from timediff.runtime import registry as registries
from timediff.sources.simulated import simulate

TRAIN, TEST = simulate(200, steps=4, seed=0).split(test=0.4, seed=0)
FRESH = simulate(80, steps=4, seed=1)


def rate_of_death(given):
    """A tiny metric: the difference of the label's rates, and a figure of it."""
    gap = float(np.mean(given.cohort.label) - np.mean(given.test.label))
    figure = FigureData("rates", "Rates of death", "by <b>set</b>", PlotlyFigure({"data": [], "layout": {}}))
    score = Score("death_gap", "gap_of_rates", gap, n=len(given.cohort), classifier="counting")
    return [score, replace(figure, generator=given.generator)]


WORDS = {
    "title": "Who dies",
    "sentence": "Whether as many <i>die</i>.",
    "numbers": {"gap_of_rates": Meaning("gap of deaths", "Synthetic minus real rate of death.", "0")},
    "classifiers": {"counting": "simple counting"},
    "floored": True,
}


@pytest.fixture
def death_gap():
    """Another package's metric, by decorator; gone afterwards."""
    yield metric("death_gap", "useful", **WORDS)(rate_of_death)
    METRICS._parts.pop("death_gap")


def in_the_terminal(results):
    console = Console(width=200)
    with console.capture() as text:
        console.print(scores_table(results))
    return text.get()


@pytest.mark.usefixtures("death_gap")
def test_a_metric_of_another_package_is_measured_stored_and_shown(tmp_path):
    settings = EvaluationSettings(only=("copies", "death_gap"))
    results = evaluate_to(tmp_path / "out", TRAIN, TEST, {"a": FRESH}, settings=settings)
    (score,) = (s for s in results.scores["a"] if s.metric == "death_gap")
    assert score.value == pytest.approx(FRESH.label.mean() - TEST.label.mean())
    stand_in = Case(TRAIN, TEST, settings).stand_in(len(FRESH))
    assert score.floor == pytest.approx(stand_in.label.mean() - TEST.label.mean())
    assert score in Results.read(tmp_path / "out").scores["a"]
    assert "gap of deaths (simple counting)" in in_the_terminal(results)
    page = (tmp_path / "out" / "report.html").read_text()
    useful = page[page.index("<h2>Is it useful?</h2>") : page.index("<h2>Whom could it expose?</h2>")]
    assert "<h3>Who dies</h3>" in useful
    assert "Whether as many &lt;i&gt;die&lt;/i&gt;." in useful
    assert "gap of deaths, simple counting" in useful
    assert "Synthetic minus real rate of death. Best: 0." in useful
    assert "<h2>Rates of death</h2>" in page


def test_what_the_report_has_no_package_for_keeps_its_own_name(death_gap, tmp_path):
    results = evaluate(TRAIN, TEST, FRESH, only=["death_gap"])
    METRICS._parts.pop("death_gap")
    results.report(tmp_path / "report.html")
    METRICS.add("death_gap", death_gap)
    page = (tmp_path / "report.html").read_text()
    assert "<h2>Other numbers</h2>" in page
    assert "gap of rates" in page


def test_an_entry_point_is_as_good_as_a_decorator(monkeypatch):
    found = EntryPoint("death_gap", "test_registry_entry:found", "timediff.metrics")
    part = Metric("death_gap", "useful", rate_of_death)
    monkeypatch.setitem(sys.modules, "test_registry_entry", type("Module", (), {"found": part}))
    monkeypatch.setattr(registries, "_entry_points", lambda group: {"death_gap": found})
    try:
        assert "death_gap" in METRICS
        scores = evaluate(TRAIN, TEST, FRESH, only=["death_gap"]).scores["synthetic"]
    finally:
        METRICS._parts.pop("death_gap", None)
    assert [score.metric for score in scores] == ["death_gap"]


@pytest.mark.usefixtures("death_gap")
def test_without_asking_only_our_own_are_measured():
    assert EvaluationSettings().metrics == tuple(HOMES)
    assert "death_gap" in METRICS


@pytest.mark.usefixtures("death_gap")
def test_no_metric_takes_the_name_of_another():
    with pytest.raises(TimeDiffError, match="a metric 'copies' already"):
        metric("copies", "private")(rate_of_death)
    with pytest.raises(TimeDiffError, match="a metric 'death_gap' already"):
        metric("death_gap", "private")(lambda given: [])


def test_an_attack_of_another_package_counts_for_the_verdict():
    ours = [Score(name, "share", 0.0, floor=0.0) for name in ("copies", "near_copies")]
    with foreign_attack.installed():
        assert exposes(ours).grade == "not shown"  # it was not asked for, and is not missed
        assert exposes([*ours, foreign_attack.found(0.5)]).grade == "good"
        assert exposes([*ours, foreign_attack.found(0.7)]).grade == "poor"


def test_averages_over_distances_are_no_attacks():
    ours = [(name, what, says.no_leak) for name in HOMES for what, says in METRICS(name).numbers.items()]
    assert {no_leak for *_, no_leak in ours} == {None}


@pytest.mark.parametrize("name", HOMES)
def test_each_of_ours_lies_in_the_file_of_its_name(name):
    found = METRICS(name)
    assert found.name == name
    assert found.measure.__module__ == f"timediff.evaluation.metrics.{name}"


def test_quick_leaves_out_what_says_that_it_is_slow():
    assert EvaluationSettings.quick().skip == tuple(name for name in HOMES if not METRICS(name).quick)
    assert EvaluationSettings.quick().skip == ("tsrtr", "subgroups")


def test_the_command_answers_a_wrong_name_with_the_nearest(tmp_path):
    for name, cohort in (("train", TRAIN), ("test", TEST)):
        cohort.write(tmp_path / name)
    paths = [f"--train={tmp_path / 'train'}", f"--test={tmp_path / 'test'}", f"--synthetic={tmp_path / 'test'}"]
    run = CliRunner().invoke(app, ["evaluate", *paths, f"--out={tmp_path / 'out'}", "--only=fidelty"])
    assert "did you mean fidelity?" in str(run.exception)
    assert not (tmp_path / "out").exists()


def test_words_and_reports_need_no_torch():
    script = (
        "import sys\n"
        "from timediff.evaluation.registry import HOMES, METRICS\n"
        "before = {'torch', 'numpy'} & set(sys.modules)\n"
        "import timediff.report.evaluation_page\n"
        "loaded = [METRICS(name).title for name in HOMES]\n"
        "print(before, 'torch' in sys.modules)\n"
    )
    assert subprocess.check_output([sys.executable, "-c", script], text=True).split() == ["set()", "False"]
