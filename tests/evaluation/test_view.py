"""What classifiers see: filled and scaled by training data alone, as the contracts have it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from timediff.data.arrays import carried
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.evaluation.inputs.view import View
from timediff.sources.simulated import simulate

NAN = np.nan


def cohort(hr, died, **others):
    hr = np.array(hr, float)
    schema = Schema((Feature("hr", "continuous"), Feature("died", "binary", "static", role="label")), hr.shape[1])
    return Cohort(schema, np.arange(len(hr)), {"hr": hr}, {"died": np.array(died, float)})


def test_a_value_is_carried_forward_then_backward():
    given = np.array([[NAN, 1, NAN, 2, NAN], [NAN] * 5, [3, NAN, NAN, NAN, 4]])
    assert np.array_equal(carried(given), [[1, 1, 1, 2, 2], [NAN] * 5, [3, 3, 3, 3, 4]], equal_nan=True)


@given(arrays(np.float64, (3, 6), elements=st.sampled_from([NAN, 1.0, 2.0, 3.0])))
def test_carrying_changes_no_observed_value_and_leaves_gaps_only_in_empty_series(values):
    filled = carried(values)
    there = ~np.isnan(values)
    assert np.array_equal(filled[there], values[there])
    assert np.array_equal(np.isnan(filled).any(axis=1), ~there.any(axis=1))


def test_the_paper_fills_with_minus_one_and_sees_no_masks():
    train = cohort([[1, 2], [3, NAN]], [0, 1])
    view = View.fit(train, "paper")
    assert [(c.feature, c.part) for c in view.channels] == [("hr", "value"), ("died", "value")]
    assert np.array_equal(view.unscaled.series(train)[:, :, 0], [[1, 2], [3, -1]])
    assert np.array_equal(view.unscaled.series(train)[:, :, 1], [[0, 0], [1, 1]])


def test_without_the_label_it_is_seen_by_nobody():
    train = cohort([[1, 2], [3, NAN]], [0, 1])
    view = View.fit(train, "paper").unlabelled
    assert [c.feature for c in view.channels] == ["hr"]
    assert np.array_equal(view.series(train), view.series(cohort([[1, 2], [3, NAN]], [1, 0])))


@pytest.mark.parametrize("scaling", ["standard", "minmax"])
def test_the_paper_scales_each_cohort_by_itself(scaling):
    """So a synthetic cohort that is twice as wide and ten higher looks the same."""
    train, other = simulate(80, steps=6, seed=0), simulate(60, steps=6, seed=1)
    moved = replace(other, series={**other.series, "heart_rate": 2 * other.series["heart_rate"] + 10})
    moved.series["heart_rate"][np.isnan(other.series["heart_rate"])] = 2 * -1 + 10  # what −1 becomes
    view = View.fit(train, "paper", scaling)
    seen = view.series(other)
    assert np.allclose(seen, view.series(moved), atol=1e-4)
    assert not np.allclose(view.by_training.series(other), view.by_training.series(moved), atol=1)
    flat = seen.reshape(-1, seen.shape[2])
    low, high = (flat.mean(axis=0), flat.std(axis=0)) if scaling == "standard" else (flat.min(axis=0), flat.max(axis=0))
    assert np.allclose(low, 0, atol=1e-4)
    assert np.allclose(high, 1, atol=1e-3)


def test_a_class_that_is_missing_is_none_of_the_classes():
    ward = Feature("ward", "categorical", classes=("a", "b", "c"))
    schema = Schema((ward,), 3)
    stays = Cohort(schema, np.arange(1), {"ward": np.array([[0, NAN, 2.0]])}, {})
    assert View.fit(stays, "paper").unscaled.series(stays)[0].tolist() == [[1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_the_strict_view_fills_within_the_stay_and_sees_no_label():
    train = cohort([[1, 2], [3, NAN]], [0, 1])
    view = View.fit(train, "strict")
    assert [(c.feature, c.part) for c in view.channels] == [("hr", "value"), ("hr", "mask")]
    assert np.allclose((view.series(train) * view.scale + view.shift)[:, :, 0], [[1, 2], [3, 3]], atol=1e-6)


def test_training_stays_are_standardised_and_others_by_the_same_numbers():
    train, other = simulate(300, steps=6, seed=0), simulate(40, steps=6, seed=1)
    view = View.fit(train, "strict")
    seen = view.series(train).reshape(-1, len(view.channels))
    assert np.allclose(seen.mean(axis=0), 0, atol=1e-4)
    assert np.all(np.isclose(seen.std(axis=0), 1, atol=1e-3) | (seen.std(axis=0) == 0))
    assert np.isfinite(view.series(other)).all()


def test_windows_of_a_long_series_are_scaled_to_0_1_in_the_papers_protocol():
    values = np.arange(12.0).reshape(4, 3)
    schema = Schema((Feature("price", "continuous"), Feature("start", "continuous", "static", role="order")), 3)
    windows = Cohort(schema, np.arange(4), {"price": values}, {"start": np.arange(4.0)})
    seen = View.fit(windows, "paper").series(windows)
    assert seen.min() == 0
    assert seen.max() == 1


def test_for_a_classifier_synthetic_windows_are_scaled_by_training_windows_and_real_ones_by_themselves():
    schema = Schema((Feature("price", "continuous"), Feature("start", "continuous", "static", role="order")), 2)

    def windows(values):
        return Cohort(schema, np.arange(2), {"price": np.array(values, float)}, {"start": np.arange(2.0)})

    view = View.fit(windows([[0, 1], [2, 10]]), "paper")
    real, synthetic = view.compared(windows([[0, 5], [2, 4]]), windows([[0, 5], [2, 4]]))
    assert np.allclose(real[:, :, 0], [[0, 1], [0.4, 0.8]])
    assert np.allclose(synthetic[:, :, 0], [[0, 0.5], [0.2, 0.4]])


def test_parts_of_a_view_are_columns_of_the_whole():
    train = simulate(50, steps=4, seed=0)
    view = View.fit(train, "strict")
    whole = view.series(train)
    chosen = [channel.part == "mask" for channel in view.channels]
    assert np.array_equal(view.masks.series(train), whole[:, :, chosen])
    assert np.array_equal(view.values.series(train), whole[:, :, [not c for c in chosen]])


def test_a_flat_view_counts_a_static_channel_once():
    view = View.fit(cohort([[1, 2], [3, NAN]], [0, 1]), "paper")
    assert view.flat(cohort([[1, 2]], [1])).shape == (1, 2 + 1)


def test_distances_of_the_paper_count_the_label_at_every_step():
    stays = cohort([[1, 2], [3, NAN]], [0, 1])
    assert View.fit(stays, "paper").rows(stays).shape == (2, 2 * 2)
    strict = View.fit(stays, "strict")
    assert np.array_equal(strict.rows(stays), strict.flat(stays))
