"""Selection: stays of a pool are chosen as often as there are real ones of their kind."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from timediff.data.cohort import Cohort, concatenate
from timediff.generators import selection
from timediff.generators.selection import chosen, density_ratio, normal_scores, realness, systematic
from timediff.sources.simulated import simulate


@given(st.lists(st.floats(0.01, 10), min_size=1, max_size=30), st.integers(1, 100), st.floats(0, 0.999))
def test_each_is_picked_as_often_as_its_part_of_the_weights_rounded_up_or_down(weights, n, start):
    picked = systematic(np.array(weights), n, start)
    expected = n * np.array(weights) / sum(weights)
    counts = np.bincount(picked, minlength=len(weights))
    assert counts.sum() == n
    assert (counts >= np.floor(expected - 1e-9)).all()
    assert (counts <= np.ceil(expected + 1e-9)).all()


@given(st.lists(st.floats(-700, 700), min_size=2, max_size=50))
def test_weights_are_in_the_order_of_the_odds_with_a_mean_of_one(odds):
    weights = density_ratio(np.array(odds))
    assert weights.mean() == pytest.approx(1)
    assert (np.diff(weights[np.argsort(odds)]) >= 0).all()


def test_one_stay_that_looks_much_more_real_than_all_others_is_not_all_that_is_chosen():
    weights = density_ratio(np.array([0.0] * 999 + [100.0]))
    assert weights.max() == pytest.approx(1)


def test_odds_of_two_densities_give_back_the_one_from_the_other():
    """Of numbers from a standard normal those are chosen that another normal distribution would have given."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=200_000)
    picked = x[systematic(density_ratio(0.5 * x), 50_000, 0.5)]  # log N(x; 0.5, 1) − log N(x; 0, 1) but for a constant
    assert picked.mean() == pytest.approx(0.5, abs=0.03)
    assert picked.std() == pytest.approx(1, abs=0.03)


def test_ranks_of_a_table_are_normal_scores_and_what_is_missing_is_marked():
    rng = np.random.default_rng(0)
    real, made = rng.lognormal(size=(500, 2)), rng.lognormal(size=(1000, 2))
    made[:100, 1] = np.nan
    scores = normal_scores(real, made)
    assert scores.shape == (1500, 3)
    assert np.array_equal(scores[:, 2] == 1, np.isnan(np.concatenate([real, made])[:, 1]))
    assert (scores[scores[:, 2] == 1, 1] == 0).all()
    assert abs(scores[:, 0].mean()) < 0.1
    assert scores[:, 0].std() == pytest.approx(1, abs=0.1)
    nothing = normal_scores(np.full((30, 1), np.nan), np.full((30, 1), np.nan))  # too few values to rank
    assert nothing.shape == (60, 1)


def faulty(cohort: Cohort) -> Cohort:
    """Heart rates whose changes are twice as large."""
    rate = cohort.series["heart_rate"]
    middle = np.nanmean(rate)
    return replace(cohort, series={**cohort.series, "heart_rate": np.rint(middle + 2 * (rate - middle))})


def test_a_fault_of_half_of_the_pool_is_mostly_not_chosen_and_the_seed_says_which():
    real = simulate(400, steps=24, seed=0)
    pool = concatenate([simulate(300, steps=24, seed=1), faulty(simulate(300, steps=24, seed=2))])
    numbered = replace(pool, stay_id=np.arange(600))
    taken = chosen(real, numbered, 400, seed=0)
    assert len(taken) == 400
    assert np.array_equal(taken.stay_id, np.arange(400))
    odds = realness(real, numbered, 0)
    weights = density_ratio(odds)
    assert weights[:300].sum() / weights.sum() > 0.8  # it was .5
    again = chosen(real, numbered, 400, seed=0)
    assert np.array_equal(again.series["heart_rate"], taken.series["heart_rate"], equal_nan=True)
    other = chosen(real, numbered, 400, seed=1)
    assert not np.array_equal(other.series["heart_rate"], taken.series["heart_rate"], equal_nan=True)


def test_no_stay_is_weighed_by_a_network_that_was_trained_on_it(monkeypatch: pytest.MonkeyPatch):
    """What a network is trained on says, of each stay, that it is generated; of others it says nothing."""
    real, pool = simulate(210, steps=6, seed=0), simulate(210, steps=6, seed=1)
    seen: list[set[bytes]] = []

    class Remembers:
        def __init__(self, inputs, is_real):
            self.known = {row.numpy().tobytes() for row, real in zip(inputs, is_real, strict=True) if not real}
            seen.append(self.known)

        def __call__(self, inputs):
            return inputs.new_tensor([[-9.0 if row.numpy().tobytes() in self.known else 1.0] for row in inputs])

    monkeypatch.setattr(selection, "trained", Remembers)
    monkeypatch.setattr(selection.devices, "device", lambda: torch.device("cpu"))
    assert (realness(real, pool, 0) == 1).all()
    assert len(seen) == selection.FOLDS
    assert len(set.union(*seen)) == len(pool)


def test_with_too_few_real_stays_there_is_nothing_to_choose_by():
    real, pool = simulate(50, steps=6, seed=0), simulate(80, steps=6, seed=1)
    taken = chosen(real, pool, 60, seed=0)
    assert np.array_equal(taken.series["heart_rate"], pool.series["heart_rate"][:60], equal_nan=True)
