"""An evaluation in a notebook: metrics of one's own, quick, and a folder that is finished."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import timediff as td
from timediff.evaluation.case import Measurement
from timediff.evaluation.evaluate import evaluate, evaluate_to
from timediff.evaluation.own_metrics import requested
from timediff.evaluation.registry import HOMES, METRICS, metric
from timediff.evaluation.score import Score

TRAIN, TEST, FRESH = (td.simulate(60, steps=6, seed=seed) for seed in (0, 1, 2))


def mean_heart_rate(measurement: Measurement) -> float:
    name = measurement.test.schema.temporal[0].name
    return float(np.nanmean(measurement.cohort[name]))


def two_numbers(measurement: Measurement) -> list[Score]:
    return [Score("two_numbers", what, 1.0) for what in ("first", "second")]


def test_a_function_of_ones_own_is_a_metric_with_a_floor() -> None:
    results = evaluate(TRAIN, TEST, FRESH, only=[mean_heart_rate])
    (score,) = results.scores["synthetic"]
    name = TEST.schema.temporal[0].name
    assert (score.metric, score.what) == ("mean_heart_rate", "value")
    assert score.value == np.nanmean(FRESH[name])
    assert score.floor == pytest.approx(np.nanmean(TRAIN[name]))
    assert results.settings["only"] == ("mean_heart_rate",)


def test_metrics_are_measured_beside_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = requested(metrics=[mean_heart_rate, two_numbers])
    assert asked.metrics == (*HOMES, "mean_heart_rate", "two_numbers")
    results = evaluate(TRAIN, TEST, FRESH, only=["copies"], metrics=[two_numbers])
    assert {(score.metric, score.what) for score in results.scores["synthetic"]} >= {
        ("copies", "share"), ("two_numbers", "first"), ("two_numbers", "second"),
    }  # fmt: skip


def test_what_the_decorator_makes_is_taken_as_it_is() -> None:
    @metric("decorated", "private", title="Decorated")
    def decorated(measurement: Measurement) -> list[Score]:
        return []

    assert requested(only=[decorated]).metrics == ("decorated",)
    assert METRICS("decorated").question == "private"


@pytest.mark.parametrize("given", [lambda measurement: 1.0, 3])
def test_what_has_no_name_is_refused(given: Any) -> None:
    with pytest.raises(td.TimeDiffError, match="a function with a name"):
        requested(metrics=[given])


def test_a_function_that_returns_no_number_is_named() -> None:
    def nothing(measurement: Measurement) -> None: ...

    with pytest.raises(td.TimeDiffError, match="'nothing' returned NoneType; expected a number or scores"):
        evaluate(TRAIN, TEST, FRESH, only=[nothing])


def test_quick_is_what_the_command_line_calls_quick() -> None:
    slow = {name for name in HOMES if not METRICS(name).quick}
    assert slow
    assert requested(quick=True) == td.EvaluationSettings.quick()
    assert set(requested(quick=True).metrics) == set(HOMES) - slow
    assert requested(quick=True, repetitions=5).repetitions == 5
    assert requested(quick=True, only=[min(slow)]).metrics == (min(slow),)


def test_a_setting_that_is_not_there_is_answered_with_those_that_are() -> None:
    with pytest.raises(td.TimeDiffError, match=r"protocl.*the settings of an evaluation are quick, metrics, protocol"):
        requested(protocl="paper")


def test_a_finished_folder_is_read_again_by_resume(tmp_path: Path) -> None:
    said: list[str] = []
    first = evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, only=["copies"])
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    again = evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, only=["copies"], resume=True, say=said.append)
    assert again.to_csv() == first.to_csv()
    assert said == [f"{tmp_path / 'out'} is finished: nothing was left to do"]
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


@pytest.mark.parametrize("other", [{"only": ["fidelity"]}, {"seed": 7, "only": ["copies"]}])
def test_a_folder_of_another_evaluation_is_not_taken_for_this_one(tmp_path: Path, other: dict[str, Any]) -> None:
    evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, only=["copies"])
    with pytest.raises(td.TimeDiffError, match="holds another evaluation"):
        evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, resume=True, **other)
    with pytest.raises(td.TimeDiffError, match="holds another evaluation"):
        evaluate_to(tmp_path / "out", TRAIN, TEST, TRAIN.take(np.arange(50)), only=["copies"], resume=True)
    with pytest.raises(td.TimeDiffError, match="exists already"):
        evaluate_to(tmp_path / "out", TRAIN, TEST, FRESH, only=["copies"])
