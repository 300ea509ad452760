"""What is said of an attack is true: chance is exact, rates and areas are their definitions, ε is a lower bound."""

import math

import numpy as np
import pytest

from timediff.evaluation.attacks.membership import (
    LEVEL,
    Rates,
    Truth,
    chance,
    description_scores,
    epsilon,
    group_scores,
    inference_scores,
    membership_scores,
    succeeded,
)
from timediff.evaluation.score import Score


def truth(members: int, others: int) -> Truth:
    return Truth.of(np.arange(members), np.arange(others))


def by_what(scores: list[Score]) -> dict[str, Score]:
    return {score.what: score for score in scores}


@pytest.mark.parametrize("ties", [False, True])
def test_guesses_succeed_no_more_often_than_is_said(ties: bool) -> None:
    rng, member = np.random.default_rng(0), np.repeat([True, False], 150)
    values = [chance(rng.integers(0, 9, 300).astype(float) if ties else rng.random(300), member) for _ in range(600)]
    assert np.mean(np.array(values) <= 0.1) <= 0.13
    assert np.mean(np.array(values) <= LEVEL) <= 0.022  # more are less likely than 1 in 100


def test_a_few_that_are_found_for_sure_are_seen_and_so_is_a_small_shift_of_all() -> None:
    rng, member = np.random.default_rng(1), np.repeat([True, False], 500)
    scores = rng.random(1000)
    assert chance(scores, member) > LEVEL
    certain = scores + 2.0 * (np.arange(1000) < 16)
    assert chance(certain, member) < LEVEL
    assert chance(scores + 0.12 * member, member) < LEVEL


def test_patients_and_not_stays_are_counted() -> None:
    """Ten stays each of thirty patients, and two patients whose stays are all found, are no proof."""
    units = np.repeat(np.arange(30), 10)
    both = Truth.of(units, units)
    scores = np.random.default_rng(2).permuted(np.arange(600.0)) % 7
    scores[:20] = 100.0
    assert by_what(membership_scores("x", scores, both, np.random.default_rng(0)))["chance"].value > LEVEL
    alone = Truth.of(np.arange(300), np.arange(300))
    assert by_what(membership_scores("x", scores, alone, np.random.default_rng(0)))["chance"].value < LEVEL


def test_true_positives_at_a_rate_are_those_above_the_threshold() -> None:
    scores, member = np.array([5.0, 4, 3, 2, 1, 0]), np.array([True, False, True, True, False, False])
    rates = Rates(scores, member)
    assert rates.true_positives(0.0) == pytest.approx(1 / 3)
    assert rates.true_positives(1 / 3) == 1.0
    assert rates.true_positives(0.3) == pytest.approx(1 / 3)
    assert Rates(np.zeros(6), member).true_positives(0.5) == 0.0  # all or none


def test_the_area_has_its_definition_and_an_interval_around_it() -> None:
    rng = np.random.default_rng(3)
    scores = np.concatenate([rng.normal(0.5, 1, 200), rng.normal(0, 1, 200)])
    auc = by_what(membership_scores("x", scores, truth(200, 200), rng))["auc"]
    assert auc.value == pytest.approx((scores[:200, None] > scores[None, 200:]).mean())
    assert auc.low < auc.value < auc.high
    assert auc.low > 0.5


def test_a_rate_that_so_few_stays_cannot_show_says_so() -> None:
    scores = by_what(membership_scores("x", np.arange(400.0), truth(200, 200), np.random.default_rng(0)))
    assert math.isnan(scores["tpr_at_0.001"].value)
    assert "200 patients that were not trained on are too few" in scores["tpr_at_0.001"].note
    assert not math.isnan(scores["tpr_at_0.01"].value)


@pytest.mark.parametrize("true", [0.0, 1.0, 2.0])
def test_epsilon_is_a_lower_bound(true: float) -> None:
    """Randomised response: the answer is right with odds e^ε, and no attack proves more than ε."""
    rng, member = np.random.default_rng(4), np.repeat([True, False], 1000)
    right = np.exp(true) / (1 + np.exp(true))
    found = []
    for _ in range(40):
        answer = np.where(rng.random(2000) < right, member, ~member)
        found.append(epsilon(answer + 1e-3 * rng.random(2000), member, rng))
    assert np.mean(np.array(found) > true + 1e-9) <= 0.15
    assert np.mean(found) > true - 0.5


def test_the_risk_of_guesses_is_what_goes_beyond_those_about_others() -> None:
    rng = np.random.default_rng(5)
    right = (rng.random((800, 2)) < np.repeat([0.8, 0.6], 400)[:, None]).astype(float)
    right[0] = np.nan
    found = by_what(inference_scores("x", right, truth(400, 400), rng))
    train, control = np.nanmean(right[:400]), right[400:].mean()
    assert found["risk"].value == pytest.approx((train - control) / (1 - control))
    assert succeeded(list(found.values()))
    same = (rng.random((800, 2)) < 0.6).astype(float)
    assert not succeeded(inference_scores("x", same, truth(400, 400), rng))


def test_a_description_counts_if_it_fits_exactly_one() -> None:
    fits = np.zeros((200, 30))
    fits[:20, :20] = np.eye(20)  # twenty that single out a training stay
    fits[:2, 20:] = 1  # ten that fit two
    found = by_what(description_scores("x", fits, truth(100, 100), np.random.default_rng(0)))
    assert found["right_training"].value == pytest.approx(20 / 30)
    assert found["right_others"].value == 0
    assert succeeded(list(found.values()))


def test_of_few_patients_nothing_is_said() -> None:
    few = membership_scores("x", np.arange(30.0), truth(15, 15), np.random.default_rng(0))
    assert [score.what for score in few] == ["auc"]
    assert math.isnan(few[0].value)
    groups = {"rare": np.arange(400) % 50 == 0, "common": np.arange(400) % 2 == 0}
    found = group_scores("x", np.arange(400.0), truth(200, 200), groups, np.random.default_rng(0))
    assert [score.group for score in found] == ["common"]
