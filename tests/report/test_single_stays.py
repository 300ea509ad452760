"""A page shows single stays only of cohorts in which no copy was found, and never says that all are synthetic."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from timediff.data.cohort import Cohort
from timediff.evaluation.evaluate import evaluate
from timediff.evaluation.figure_data import cohort_figures
from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.evaluation.single_stays import why_withheld
from timediff.report.comparison_page import write_comparison
from timediff.sources.simulated import simulate

ICU = simulate(700, steps=6, seed=0)
TRAIN, TEST, FRESH = (ICU.take(np.arange(*ends)) for ends in ((0, 200), (200, 350), (350, 650)))
MARK = 187.53  # a value of one training stay that nothing else has


def marked() -> Cohort:
    """Training stays, of which the one that would be shown first has MARK."""
    series = {name: values.copy() for name, values in TRAIN.series.items()}
    series["heart_rate"][0] = MARK
    return replace(TRAIN, series=series)


def nearly(cohort: Cohort) -> Cohort:
    rng = np.random.default_rng(0)
    moved = {n: v if n == "heart_rate" else v + rng.normal(0, 0.1, v.shape) for n, v in cohort.series.items()}
    return replace(cohort, series=moved)


def written(synthetic: Cohort, folder: Path, *only: str) -> tuple[str, str]:
    """The page, and everything in the results folder."""
    results = evaluate(marked(), TEST, {"made": synthetic}, only=list(only))
    results.write(folder)
    everything = "".join(path.read_text() for path in folder.rglob("*") if path.suffix in (".json", ".csv"))
    return (folder / "report.html").read_text(), everything


@pytest.mark.parametrize(("copy", "kind"), [(lambda c: c, "exact copies"), (nearly, "near copies")])
def test_copies_are_not_drawn_and_it_says_why(copy, kind: str, tmp_path: Path) -> None:
    page, folder = written(copy(marked()), tmp_path / "out", "copies", "near_copies")
    assert f"{MARK:.4g}" not in folder + page[page.index("<body>") :]
    assert "every single stay shown is synthetic" not in page
    assert "None of them is a patient" not in page
    assert "Single synthetic stays" not in page
    assert f"Stays of made are withheld: 100.00% of the stays are {kind} of real training stays." in page
    assert f"Single stays of made are not shown: 100.00% of the stays are {kind}" in page


def test_stays_of_a_clean_cohort_are_drawn(tmp_path: Path) -> None:
    page, folder = written(FRESH, tmp_path / "out", "copies", "near_copies")
    assert "<h2>Single synthetic stays</h2>" in page
    assert "withheld" not in page
    assert "shown only of cohorts in which no copy of a real stay was found" in page
    assert '"section": "stays"' in folder


def test_what_nobody_looked_for_may_be_there(tmp_path: Path) -> None:
    page, folder = written(FRESH, tmp_path / "out", "copies")
    assert "it was not measured whether there are near copies of real stays among them" in page
    assert '"section": "stays"' not in folder


def test_the_copies_of_one_generator_do_not_hide_the_other(tmp_path: Path) -> None:
    made = {"honest": FRESH, "copying": marked()}
    evaluate(marked(), TEST, made, only=["copies", "near_copies"]).report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "<h2>Single synthetic stays</h2>" in page
    assert "Stays of copying are withheld" in page
    assert "Stays of honest are withheld" not in page
    assert f"{MARK:.4g}" not in page[page.index("<body>") :]


def test_a_figure_of_an_older_results_folder_is_withheld_as_well(tmp_path: Path) -> None:
    old = cohort_figures(TEST, marked(), "made", single=True)
    assert f"{MARK:.4g}" in json.dumps([figure.to_json() for figure in old])
    copied = [Score("copies", "share", 1.0, floor=0.0)]
    Results(("made",), {"made": copied}, {}, {}, figures=old).report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"{MARK:.4g}" not in page[page.index("<body>") :]


def test_copies_as_frequent_as_among_real_stays_are_copies_of_real_stays() -> None:
    near = Score("near_copies", "share", 0.0, floor=0.0, floor_high=0.01)
    assert why_withheld([Score("copies", "share", 0.3, floor=0.3), near])
    assert not why_withheld([Score("copies", "share", 0.0, floor=0.3), near])


def test_the_comparison_asks_for_training_stays(tmp_path: Path) -> None:
    for name, train, made, shown in (
        ("nobody", None, FRESH, False),
        ("clean", TRAIN, FRESH, True),
        ("copied", TRAIN, TRAIN, False),
    ):
        write_comparison(tmp_path / f"{name}.html", TEST, made, title="t", facts={}, train=train)
        text = (tmp_path / f"{name}.html").read_text()
        assert ("single synthetic stays" in text) == shown
        assert ("They are withheld" in text) != shown
