"""The paper's numbers, as they are printed."""

import json
import math
from pathlib import Path

import pytest

from timediff.errors import TimeDiffError
from timediff.reproduction.experiments.base import Experiment
from timediff.reproduction.experiments.registry import EXPERIMENTS, chosen
from timediff.reproduction.published import printed

PRINTED = [one for one in EXPERIMENTS.values() if one.published]


@pytest.mark.parametrize("experiment", PRINTED, ids=lambda one: one.name)
def test_every_row_has_a_number_for_every_data_set(experiment: Experiment) -> None:
    table = printed(experiment.published)
    for rows in table.numbers.values():
        for numbers in rows.values():
            assert len(numbers) == len(table.datasets)
            assert all(len(one) <= 2 for one in numbers)


@pytest.mark.parametrize("experiment", PRINTED, ids=lambda one: one.name)
def test_every_number_of_the_paper_has_its_place_beside_ours(experiment: Experiment) -> None:
    table = printed(experiment.published)
    if experiment.told == "statistics":
        return
    metrics = {number.metric for number in experiment.numbers} or {"hours"}
    assert set(table.numbers) <= metrics
    ours = {arm.row(method) for arm in experiment.arms for method in arm.methods}
    ours |= {number.classifier.partition(",")[0].lower() for number in experiment.numbers if number.classifier}
    for rows in table.numbers.values():
        assert set(rows) <= ours | {"real"}
        assert "real" not in rows or experiment.real != "none"


@pytest.mark.parametrize(
    ("name", "metric", "row", "dataset", "value", "std"),
    [
        ("scores", "discriminative", "timediff", "stocks", 0.048, 0.028),
        ("scores", "predictive", "cspd-gp", "mimic3", 1.083, 0.002),
        ("scores", "discriminative", "real", "eicu", 0.004, 0.003),
        ("privacy", "mir", "timediff", "mimic4", 0.232, 0.048),
        ("privacy", "aa_train", "pforcing", "mimic4", 0.976, 0.002),
        ("ablation", "discriminative", "rounding", "mimic3", 0.355, 0.020),
        ("lambda", "predictive", "lambda-0.01", "eicu", 0.309, 0.019),
        ("lambda", "discriminative", "lambda-10", "mimic4", 0.441, 0.090),
        ("rnn-classifiers", "trtr", "lstm", "mimic3", 0.587, 0.026),
        ("static", "nnaa", "static", "mimic4", 0.004, 0.003),
        ("runtime", "hours", "timegan", "eicu", 110.0, math.nan),
        ("datasets", "statistics", "stays", "eicu", 62453, math.nan),
    ],
)
def test_a_few_of_them(name: str, metric: str, row: str, dataset: str, value: float, std: float) -> None:
    found = printed(name).of(metric, row, dataset)
    assert (found.value, found.std) == pytest.approx((value, std), nan_ok=True)


def test_what_the_paper_does_not_have_is_no_number() -> None:
    assert math.isnan(printed("scores").of("discriminative", "fast", "stocks").value)
    assert math.isnan(printed("privacy").of("mir", "timediff", "stocks").value)
    assert math.isnan(printed("datasets").of("statistics", "label", "stocks").value)


def test_experiments_are_known_by_name() -> None:
    assert [one.name for one in chosen(["scores", "datasets"])] == ["datasets", "scores"]
    assert len(chosen([])) == 14
    with pytest.raises(TimeDiffError, match="Did you mean privacy"):
        chosen(["privcy"])


def test_what_the_benchmarks_cite_are_the_same_numbers() -> None:
    cited = json.loads((Path(__file__).parents[2] / "benchmarks" / "cited" / "tian2024.json").read_text())
    for metric in ("discriminative", "predictive"):
        for dataset, rows in cited[metric].items():
            for row, (value, std) in rows.items():
                found = printed("scores").of(metric, row, dataset)
                assert (found.value, found.std) == (value, std)
