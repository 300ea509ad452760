"""The strict protocol refuses cohorts of which no number would be true; the paper's warns."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timediff.data.cohort import Cohort, concatenate
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.evaluation.evaluate import evaluate, evaluate_to
from timediff.evaluation.results import Results
from timediff.evaluation.settings import EvaluationSettings
from timediff.sources.simulated import simulate

STAYS = simulate(200, steps=6, seed=0)
TRAIN, TEST = STAYS.take(np.arange(100)), STAYS.take(np.arange(100, 200))
FRESH = simulate(100, steps=6, seed=1)


def with_patients(cohort: Cohort, patient: np.ndarray) -> Cohort:
    features = (*cohort.schema.features, Feature("patient", "categorical", "static", role="patient"))
    schema = replace(cohort.schema, features=features)
    return replace(cohort, schema=schema, static={**cohort.static, "patient": patient})


def series(count: int, seed: int = 0) -> Cohort:
    """Windows of eight steps of one long random walk, one a step."""
    schema = Schema((Feature("x", "continuous"), Feature("start", "continuous", "static", role="order")), 8)
    walk = np.random.default_rng(seed).normal(size=count + 8).cumsum()
    rows = np.lib.stride_tricks.sliding_window_view(walk, 8)[:count]
    return Cohort(schema, np.arange(count), {"x": rows}, {"start": np.arange(count, dtype=np.float64)})


def generated(cohort: Cohort) -> Cohort:
    return replace(cohort, schema=cohort.schema.generated(), static={})


def measured(train: Cohort, test: Cohort, synthetic: Cohort, **changes: Any) -> Results:
    return evaluate(train, test, synthetic, only=["copies"], **changes)


PATIENTS = with_patients(TRAIN, np.arange(100)), with_patients(TEST, np.arange(98, 198))
WINDOWS = series(600).split(0.3, by="random", seed=0)
SAME = TRAIN, concatenate([TEST, TRAIN.take(np.arange(5))])


@pytest.mark.parametrize(
    ("train", "test", "synthetic", "what", "remedy"),
    [
        (*PATIENTS, FRESH, "2 patients of the test cohort are in the training cohort too", "`timediff split`, which"),
        (*WINDOWS, generated(series(100, 1)), r"18\d of 18\d test windows overlap windows", "`timediff split --by bl"),
        (*SAME, FRESH, "5 of 105 test stays are in the training cohort too, value for value", "`timediff split` wrote"),
        (TRAIN, TRAIN, FRESH, "100 of 100 test stays are in the training cohort too", "`timediff split` wrote"),
    ],
)
def test_strict_refuses_what_was_trained_on_and_the_paper_warns(
    train: Cohort, test: Cohort, synthetic: Cohort, what: str, remedy: str, tmp_path: Path
) -> None:
    with pytest.raises(TimeDiffError, match=f"^{what}.*; expected none.*{remedy}"):
        measured(train, test, synthetic)
    with pytest.raises(TimeDiffError, match=what):
        evaluate_to(tmp_path / "out", train, test, synthetic, settings=EvaluationSettings(only=("copies",)))
    assert list(tmp_path.iterdir()) == []  # refused before anything is written
    assert re.match(what, measured(train, test, synthetic, protocol="paper").warnings[0])
    assert not measured(TRAIN, TEST, FRESH, protocol="paper").warnings


def test_strict_refuses_synthetic_stays_that_are_copies_of_test_stays() -> None:
    copied = concatenate([FRESH, TEST.take(np.arange(3))])
    with pytest.raises(TimeDiffError, match=r"^3 of 103 stays of the synthetic cohort 'b' are copied from the test"):
        evaluate(TRAIN, TEST, {"a": FRESH, "b": [FRESH, copied]}, only=["copies"])
    assert measured(TRAIN, TEST, copied, protocol="paper").scores["synthetic"]


def test_copies_of_training_stays_are_measured_and_not_refused() -> None:
    copied = concatenate([FRESH, TRAIN.take(np.arange(25))])
    (score,) = measured(TRAIN, TEST, copied).scores["synthetic"]
    assert score.value == 0.2


def test_the_results_say_how_the_cohorts_were_split() -> None:
    assert measured(TRAIN, TEST, FRESH).facts["split"] == "random, by stay (no patient is known)"
    apart = with_patients(TRAIN, np.arange(100)), with_patients(TEST, np.arange(100, 200))
    assert measured(*apart, FRESH).facts["split"] == "by patient"
    paper = measured(*WINDOWS, generated(series(100, 1)), protocol="paper")
    assert paper.facts["split"] == "random windows that overlap"
