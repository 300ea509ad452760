"""Areas and bootstraps that all metrics count with."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from timediff.evaluation.statistics.auc import Ranked
from timediff.evaluation.statistics.bootstrap import bootstrap, centred_interval, interval, resample, resamples

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 3)), min_size=2, max_size=30)


@given(ROWS)
def test_the_weighted_area_is_scikit_learns_of_the_repeated_rows(rows):
    scores, positive, counts = (np.array(column) for column in zip(*rows, strict=True))
    kinds = np.repeat(positive, counts)
    found = Ranked(scores, positive).auc(counts)
    if len(set(kinds)) < 2:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(roc_auc_score(kinds, np.repeat(scores, counts)))


def test_the_first_resample_is_the_cohort_and_the_others_draw_as_many_stays():
    counts = resamples(20, 50, np.random.default_rng(0))
    assert counts.shape == (51, 20)
    assert (counts[0] == 1).all()
    assert (counts.sum(axis=1) == 20).all()
    again = np.random.default_rng(0)
    np.testing.assert_array_equal(counts[1:], [resample(20, again) for _ in range(50)])


def test_the_interval_of_a_mean_is_that_of_theory():
    values, rng = np.random.default_rng(1).normal(size=400), np.random.default_rng(2)
    low, high = interval(bootstrap(lambda: np.asarray(resample(400, rng) @ values / 400), 2000))
    half = 1.96 * values.std() / 20
    assert low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_a_centred_interval_holds_its_value_and_stays_within_what_can_be():
    noisy = np.array([0.2, 0.3, 0.4, np.nan])
    low, high = centred_interval(0.05, noisy)
    assert 0 == low < 0.05 < high
    assert centred_interval(0.48, noisy, most=0.5)[1] == 0.5
    assert np.isnan(centred_interval(0.1, noisy[3:])).all()
