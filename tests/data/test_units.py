"""Intervals resample patients, and stretches of one long series: they are as wide as what is independent allows."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from timediff.data.cohort import Cohort, concatenate
from timediff.data.schema import Feature, Schema
from timediff.data.units import STRETCH, blocks, numbered, periods, resampling_units, side_by_side
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.classifiers.discriminators import split, split_by_period
from timediff.evaluation.metrics.fidelity import fidelity
from timediff.evaluation.metrics.tstr import weighted
from timediff.evaluation.registry import METRICS
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.statistics.auc import Ranked
from timediff.evaluation.statistics.bootstrap import bootstrap, interval, resample, resamples
from timediff.sources.simulated import simulate


def with_patients(cohort: Cohort, patient: np.ndarray) -> Cohort:
    features = (*cohort.schema.features, Feature("patient", "categorical", "static", role="patient"))
    schema = replace(cohort.schema, features=features)
    return replace(cohort, schema=schema, static={**cohort.static, "patient": patient})


def windows(start: np.ndarray, length: int) -> Cohort:
    schema = Schema((Feature("x", "continuous"), Feature("at", "continuous", "static", role="order")), length)
    return Cohort(schema, np.arange(len(start)), {"x": np.zeros((len(start), length))}, {"at": start.astype(float)})


def test_units_are_patients_or_stretches_or_the_stays_themselves(icu: Cohort) -> None:
    assert resampling_units(icu).tolist() == list(range(len(icu)))
    patients = with_patients(icu.take(np.arange(6)), np.array(["b", "a", "b", "c", "a", "d"]))
    assert resampling_units(patients).tolist() == [0, 1, 0, 2, 1, 3]
    assert resampling_units(windows(np.arange(100, 130), 5)).tolist() == np.repeat([0, 1, 2], STRETCH * 5).tolist()


def test_units_of_one_stay_each_are_numbered_as_their_stays() -> None:
    """So that a cohort in which each patient has one stay is resampled like one that knows of no patients."""
    assert numbered(np.array([7, 3, 5, 1])).tolist() == [0, 1, 2, 3]
    alone, apart = (resamples(u, 20, np.random.default_rng(0)) for u in (9, np.arange(9)))
    np.testing.assert_array_equal(alone, apart)


def test_the_stays_of_a_unit_are_drawn_together() -> None:
    units = np.array([0, 1, 0, 2, 2, 2])
    for counts in resamples(units, 50, np.random.default_rng(0))[1:]:
        by_unit = [set(counts[units == unit]) for unit in range(3)]
        assert all(len(count) == 1 for count in by_unit)
        assert sum(count.pop() for count in by_unit) == 3


def test_units_side_by_side_are_not_shared() -> None:
    assert side_by_side(np.array([0, 1, 0]), np.array([0, 0]), np.array([1, 0])).tolist() == [0, 1, 0, 2, 2, 4, 3]


@pytest.mark.parametrize("copies", [4, 9])
def test_intervals_of_k_equal_stays_a_patient_are_root_k_wider(copies: int) -> None:
    real, other = simulate(100, steps=6, seed=0), simulate(900, steps=6, seed=1)
    every = np.repeat(np.arange(100), copies)

    def widths(cohort: Cohort) -> dict[tuple, float]:
        found = fidelity(cohort, other, bootstrap=400, seed=0)
        return {s.key: s.high - s.low for s in found if s.what in ("mean", "missing") and s.high > s.low}

    as_stays, as_patients = widths(real.take(every)), widths(with_patients(real.take(every), every))
    alone = widths(real)
    for key, width in as_patients.items():
        assert width == pytest.approx(alone[key], rel=0.25)
    # The synthetic side adds its own variance to both, so the ratio falls short of the root.
    expected = ((1 / 100 + 1 / 900) / (1 / (100 * copies) + 1 / 900)) ** 0.5
    ratio = np.median([as_patients[key] / as_stays[key] for key in as_stays])
    assert ratio == pytest.approx(expected, rel=0.12)


def test_an_interval_holds_the_truth_as_often_as_it_says() -> None:
    """Fifty patients of five stays that share most of their variance: 95 % of intervals hold the mean, 0."""
    patient, rng = np.repeat(np.arange(50), 5), np.random.default_rng(0)

    def coverage(units: int | np.ndarray) -> float:
        held = 0
        for _ in range(200):
            values = rng.normal(size=50)[patient] + 0.3 * rng.normal(size=250)

            def mean(values: np.ndarray = values) -> np.ndarray:
                counts = resample(units, rng)
                return np.asarray(counts @ values / counts.sum())

            low, high = interval(bootstrap(mean, 200))
            held += low <= 0 <= high
        return held / 200

    assert coverage(patient) == pytest.approx(0.95, abs=0.05)
    assert coverage(250) < 0.75


def test_an_interval_over_windows_is_about_that_of_the_series() -> None:
    """Of windows that overlap, one a step: the SD of their mean over many series, against the bootstrap's."""
    rng, length, count = np.random.default_rng(1), 12, 600
    cohort = windows(np.arange(count), length)
    means, deviations = [], []
    for _ in range(100):
        series = rng.normal(size=count + length)
        values = np.lib.stride_tricks.sliding_window_view(series, length)[:count].mean(axis=1)
        means.append(values.mean())
        counts = resamples(resampling_units(cohort), 100, rng)[1:]
        deviations.append((counts @ values / counts.sum(axis=1)).std())
    assert np.mean(deviations) == pytest.approx(np.std(means), rel=0.2)
    alone = resamples(count, 100, rng)[1:]
    assert (alone @ values / count).std() < 0.5 * np.std(means)


REAL, FRESH = simulate(240, steps=6, seed=0), simulate(120, steps=6, seed=1)
TRAIN, TEST = REAL.take(np.arange(120)), REAL.take(np.arange(120, 240))


@pytest.mark.parametrize("name", ["copies", "nnaa", "mir", "fidelity", "predictive", "tstr", "tsrtr", "discriminative"])
def test_every_metric_draws_the_stays_of_a_patient_together(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    short(monkeypatch)
    train = concatenate([TRAIN, TEST.take(np.arange(24))])  # so that there are copies

    def intervals(test: Cohort) -> dict[object, np.ndarray]:
        settings = EvaluationSettings(repetitions=1, bootstrap=30)
        found = METRICS(name).measure(Measurement(Case(train, test, settings), FRESH))
        return {s.key: np.nan_to_num([s.low, s.high, s.floor_low, s.floor_high]) for s in found if isinstance(s, Score)}

    alone = intervals(TEST)
    each, together = (intervals(with_patients(TEST, np.arange(120) // stays)) for stays in (1, 12))
    assert alone.keys() == each.keys()
    assert all((alone[key] == each[key]).all() for key in alone)
    assert any((alone[key] != together[key]).any() for key in alone.keys() & together.keys())


def short(monkeypatch: pytest.MonkeyPatch) -> None:
    from timediff.evaluation.classifiers import parallel_networks

    recipe = parallel_networks.Recipe
    few: Callable[..., object] = lambda *args, **given: recipe(*args, **{**given, "iterations": 10})  # noqa: E731
    monkeypatch.setattr(parallel_networks, "Recipe", few)


def test_groups_of_stays_keep_their_patients() -> None:
    cohort = with_patients(TEST, np.arange(120) // 2)
    counts = weighted(cohort.take(np.arange(0, 60)), 10, seed=0)
    np.testing.assert_array_equal(counts[:, ::2], counts[:, 1::2])


def test_blocks_of_a_series_share_no_step() -> None:
    windows = Schema((Feature("x", "continuous"), Feature("start", "continuous", "static", role="order")), steps=3)
    start = np.array([20.0, 0, 1, 2, 11, 10, 21])
    cohort = Cohort(windows, np.arange(7), {"x": np.zeros((7, 3))}, {"start": start})
    assert blocks(cohort).tolist() == [0, 1, 1, 1, 2, 2, 0]
    one = cohort.take(np.array([1, 2, 3]))  # of one run there is nothing to divide by but stretches
    assert blocks(one).tolist() == resampling_units(one).tolist()
    assert blocks(TEST).tolist() == list(range(120))


def series(starts: np.ndarray, length: int = 5) -> Cohort:
    """Windows of a level that rises with time."""
    found = windows(starts, length)
    return replace(found, series={"x": (starts[:, None] + np.arange(length)).astype(float)})


SPLITS = {
    "at random": lambda every, rng: np.isin(every, rng.permutation(every)[: len(every) // 4]),
    "in blocks": lambda every, rng: np.isin(every // 50, rng.permutation(every.max() // 50)[::4]),
}


@pytest.mark.parametrize("by", SPLITS)
@pytest.mark.parametrize("seed", range(5))
def test_periods_hold_windows_of_both_cohorts_and_share_no_step(by: str, seed: int) -> None:
    every = np.arange(2000)
    held = SPLITS[by](every, np.random.default_rng(seed))
    cohorts = series(every[held]), series(every[~held])
    found = periods(*cohorts)
    assert found is not None
    count = max(units.max() for units in found) + 1
    assert count >= 3
    covered = []
    for number in range(count):
        inside = [one.static["at"][units == number] for one, units in zip(cohorts, found, strict=True)]
        assert min(map(len, inside)) >= 10
        covered.append((min(map(min, inside)), max(map(max, inside)) + 5))
    assert all(end <= start for (_, end), (start, _) in pairwise(covered))


def test_a_split_in_time_and_stays_have_no_common_periods(icu: Cohort) -> None:
    assert periods(series(np.arange(1000)), series(np.arange(1010, 1400))) is None
    assert periods(icu, icu) is None


@pytest.mark.parametrize("by", SPLITS)
def test_a_classifier_that_learns_when_a_window_was_cannot_tell_real_from_real(by: str) -> None:
    """It says of each held-out window what the nearest one in time was that it was trained on."""
    every = np.arange(2000)
    areas = {"alike": [], "apart": []}
    for seed in range(10):
        held = SPLITS[by](every, np.random.default_rng(seed))
        cohorts = series(every[held]), series(every[~held])
        at = np.concatenate([one.static["at"] for one in cohorts])
        is_real = np.repeat([True, False], [len(one) for one in cohorts])
        together = periods(*cohorts)
        assert together is not None
        for way, repetition in (
            ("alike", split_by_period("paper", *together, 0, seed)),
            ("apart", split("paper", *map(blocks, cohorts), 0, seed)),
        ):
            trained, asked = np.concatenate(repetition.pools), repetition.held_out
            assert not set(trained) & set(asked)
            assert way == "apart" or is_real[asked].mean() == 0.5
            nearest = np.abs(at[asked][:, None] - at[trained]).argmin(axis=1)
            areas[way].append(Ranked(is_real[trained[nearest]].astype(float), is_real[asked]).auc())
    assert abs(np.mean(areas["alike"]) - 0.5) < 0.1
    if by == "in blocks":
        assert np.mean(areas["apart"]) < 0.3  # each kind by itself misleads it
