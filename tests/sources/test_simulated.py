"""The simulated ICU behaves like one: autocorrelated, correlated, sicker people die and are watched more closely."""

import warnings
from pathlib import Path

import numpy as np
import pytest

from conftest import same
from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import TimeDiffError
from timediff.sources.simulated import VITALS, simulate, simulate_to


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return simulate(6000, steps=48, seed=1)


def summaries(cohort: Cohort) -> np.ndarray:
    """Mean, minimum, maximum and SD of each vital sign, a missing one filled with its mean over stays."""
    columns = [cohort.static["age"], cohort.static["sex"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a stay without any temperature
        for values in cohort.series.values():
            columns += [f(values, axis=1) for f in (np.nanmean, np.nanmin, np.nanmax, np.nanstd)]
    table = np.stack(columns, axis=1)
    return np.where(np.isnan(table), np.nanmean(table, axis=0), table)


def test_death_is_learnable_but_not_given_away(cohort: Cohort) -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    train, test = cohort.split(seed=0)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)).fit(summaries(train), train.label)
    assert 0.75 <= roc_auc_score(test.label, model.predict_proba(summaries(test))[:, 1]) <= 0.9
    assert 0.1 < cohort.label.mean() < 0.17


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    both = ~np.isnan(a) & ~np.isnan(b)
    return float(np.corrcoef(a[both], b[both])[0, 1])


@pytest.mark.parametrize("name", [vital.feature.name for vital in VITALS])
def test_each_vital_sign_remembers_its_last_hour(name: str, cohort: Cohort) -> None:
    values = cohort.series[name]
    assert correlation(values[:, 1:], values[:, :-1]) > 0.5


@pytest.mark.parametrize(
    ("a", "b", "low", "high"),
    [
        ("sbp", "mbp", 0.4, 1),
        ("heart_rate", "sbp", -0.8, -0.02),
        ("heart_rate", "resp_rate", 0.15, 0.9),
        ("heart_rate", "spo2", -0.9, -0.1),
    ],
)
def test_vital_signs_go_together(a: str, b: str, low: float, high: float, cohort: Cohort) -> None:
    assert low < correlation(cohort.series[a], cohort.series[b]) < high


def test_those_who_die_are_sicker_and_watched_more_closely(cohort: Cohort) -> None:
    dead, alive = (cohort.take(cohort.label == value) for value in (1, 0))
    assert np.nanmean(dead.series["heart_rate"]) > np.nanmean(alive.series["heart_rate"]) + 3
    assert np.isnan(dead.series["temperature"]).mean() < np.isnan(alive.series["temperature"]).mean() - 0.05


@pytest.mark.parametrize(("name", "factor"), [("heart_rate", 1.5), ("sbp", 2.35), ("temperature", 1.2)])
def test_gaps_come_in_spells(name: str, factor: float, cohort: Cohort) -> None:
    """More than because some stays are sicker than others or have no line, which makes 1.2, 2.2 and 1.1."""
    missing = np.isnan(cohort.series[name])
    after, before = missing[:, 1:], missing[:, :-1]
    assert after[before].mean() > factor * after[~before].mean()


def test_values_obey_their_schema(cohort: Cohort) -> None:
    assert same(Cohort.from_tables(cohort.schema, *cohort.tables()), cohort)
    for vital in VITALS:
        values = cohort.series[vital.feature.name]
        multiples = values[~np.isnan(values)] / vital.feature.resolution
        assert np.allclose(multiples, np.round(multiples))


def test_the_seed_decides() -> None:
    assert same(simulate(40, steps=6, seed=3), simulate(40, steps=6, seed=3))
    assert not same(simulate(40, steps=6, seed=3), simulate(40, steps=6, seed=4))


def test_on_disk_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timediff.sources.simulated.BLOCK", 30)
    simulate_to(tmp_path / "icu", 100, steps=6, seed=2)
    assert same(read_cohort(tmp_path / "icu"), simulate(100, steps=6, seed=2))


def test_none_is_too_few() -> None:
    with pytest.raises(TimeDiffError, match="at least 1"):
        simulate(0)
