"""Near copies: planted ones are found, stays of nobody are not taken for any, and the false alarms are as stated."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from timediff.data.cohort import Cohort
from timediff.evaluation.evaluate import evaluate
from timediff.evaluation.inputs.view import View
from timediff.evaluation.metrics import near_copies as module
from timediff.evaluation.metrics.near_copies import FALSE_ALARMS, most_telling, near_copies, tail
from timediff.evaluation.score import Score
from timediff.evaluation.statistics.neighbours import nearest_few
from timediff.report.verdicts import exposes
from timediff.sources.simulated import simulate

ICU = simulate(3000, steps=8, seed=0)
TRAIN, TEST, FRESH = (ICU.take(np.arange(*ends)) for ends in ((0, 225), (225, 325), (325, 725)))
VIEW = View.fit(TRAIN)


def jittered(cohort: Cohort, noise: float, seed: int = 0) -> Cohort:
    """Every value moved by so many standard deviations of its feature."""
    rng = np.random.default_rng(seed)
    moved = {name: v + rng.normal(0, noise * np.nanstd(v), v.shape) for name, v in cohort.series.items()}
    return replace(cohort, series=moved)


def joined(*cohorts: Cohort) -> Cohort:
    first = cohorts[0]
    series = {name: np.concatenate([one.series[name] for one in cohorts]) for name in first.series}
    static = {name: np.concatenate([one.static[name] for one in cohorts]) for name in first.static}
    return Cohort(first.schema, np.arange(sum(map(len, cohorts))), series, static)


def measured(synthetic: Cohort, train: Cohort = TRAIN) -> Score:
    (score,) = near_copies(*(VIEW.flat(one) for one in (train, TEST, synthetic)))
    return score


@pytest.mark.parametrize("noise", [0.05, 0.1, 0.3])
def test_twenty_jittered_patients_among_four_hundred_are_found(noise: float) -> None:
    planted = measured(joined(FRESH.take(np.arange(380)), jittered(TRAIN.take(np.arange(20)), noise)))
    assert planted.excess() > 0
    assert 20 <= round(planted.value * 400) <= 30
    clean = measured(FRESH)
    assert clean.excess() <= 0


def test_noise_on_every_patient_is_a_copy_of_every_patient() -> None:
    assert measured(jittered(TRAIN, 0.3)).value > 0.99


def test_both_are_signs_of_a_leak_and_a_clean_cohort_is_none() -> None:
    train, test = ICU.take(np.arange(725, 2325)), ICU.take(np.arange(2325, 3000))  # enough to say that there is no leak
    planted = joined(FRESH.take(np.arange(380)), jittered(train.take(np.arange(20)), 0.1))
    cohorts = {"clean": FRESH, "planted": planted, "noised": jittered(train.take(np.arange(400)), 0.3)}
    results = evaluate(train, test, cohorts, only=["copies", "near_copies", "nnaa", "mir"])
    grades = {name: exposes(results.scores[name]).grade for name in cohorts}
    assert grades == {"clean": "not shown", "planted": "poor", "noised": "poor"}
    assert len(results.warnings) == 2
    (found,) = (score for score in results.scores["planted"] if score.metric == "near_copies")
    assert 20 / 400 <= found.value <= 24 / 400  # all that were planted, and by chance at most 1 % beside them
    assert f"{found.value:.1%} of the stays of planted are near copies" in results.warnings[0]


def test_held_out_stays_in_place_of_synthetic_ones_raise_no_more_alarms_than_stated() -> None:
    rows = VIEW.flat(ICU)
    chances, alarms = [], 0
    for seed in range(200):
        order = np.random.default_rng(seed).permutation(len(rows))
        train, test, fresh = rows[order[:150]], rows[order[150:200]], rows[order[200:500]]
        real = [module._ratios(test, train, "cpu"), module._ratios(train, train, "cpu", exclude_self=True)]
        found = most_telling(module._ratios(fresh, train, "cpu"), np.concatenate(real))
        chances.append(found.chance)
        alarms += found.count > found.most
    for level in (0.05, 0.2):
        count = sum(chance <= level for chance in chances)
        assert count <= 200 * level + 3 * math.sqrt(200 * level)
    assert min(chances) > FALSE_ALARMS
    assert alarms == 0
    assert sum(chance <= 0.5 for chance in chances) > 20  # nor is it deaf


def test_the_chance_is_that_of_all_orders() -> None:
    """Three real and four synthetic numbers: of all their orders, how many have so many below the second real one."""
    orders = list(combinations(range(7), 3))  # the places of the real ones
    for count in range(6):
        found = np.mean([sum(place not in real for place in range(real[1])) >= count for real in orders])
        assert tail(count, 2, 3, 4) == pytest.approx(found)


def test_the_largest_number_by_chance_is_where_the_chance_falls_below_the_level() -> None:
    most = module.most_by_chance(2, 325, 400, 1e-3)
    assert tail(most, 2, 325, 400) > 1e-3 >= tail(most + 1, 2, 325, 400)


def test_a_note_says_how_many_would_not_be_seen_and_they_are_not() -> None:
    hidden = measured(FRESH).note
    few = int(hidden.split()[2])
    assert hidden == f"Up to {few} near copies among 400 synthetic stays cannot be told from chance."
    real = np.linspace(0.8, 1, 325)
    for count, seen in ((few, False), (few + 1, True)):
        found = most_telling(np.r_[np.full(count, 0.1), np.full(400 - count, 0.9999)], real)
        assert (found.count > found.most) == seen


def test_a_training_stay_that_is_there_twice_hides_no_copy() -> None:
    assert measured(jittered(TRAIN, 0.1), joined(TRAIN, TRAIN)).value > 0.99


def test_real_stays_that_are_near_copies_of_each_other_do_not_hide_many_synthetic_ones() -> None:
    pair = joined(TRAIN, jittered(TRAIN.take(np.arange(1)), 0.01))
    planted = joined(FRESH.take(np.arange(340)), jittered(TRAIN.take(np.arange(20, 80)), 0.1))
    assert measured(planted, pair).excess() > 0


def test_exact_copies_are_another_metrics() -> None:
    assert measured(TRAIN).value == 0
    results = evaluate(TRAIN, TEST, TRAIN, only=["copies", "near_copies"])
    assert exposes(results.scores["synthetic"]).grade == "poor"


def test_of_several_cohorts_the_worst_counts() -> None:
    cohorts = {"a": [FRESH, jittered(TRAIN.take(np.arange(60)), 0.1), FRESH]}
    (score,) = evaluate(TRAIN, TEST, cohorts, only=["near_copies"]).scores["a"]
    assert score.value == 1
    assert score.n == 60


def test_the_second_nearest_is_brute_force() -> None:
    a, b = (np.random.default_rng(seed).normal(size=(60, 5)).astype(np.float32) for seed in (0, 1))
    b[10:20] = b[:10]  # ties
    distances = np.sqrt(((a[:, None].astype(np.float64) - b[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(nearest_few(a, b, 3), np.sort(distances, axis=1)[:, :3], rtol=1e-7)
    own = np.sqrt(((b[:, None].astype(np.float64) - b[None]) ** 2).sum(axis=2))
    np.fill_diagonal(own, np.inf)
    np.testing.assert_allclose(nearest_few(b, b, 2, exclude_self=True), np.sort(own, axis=1)[:, :2], atol=1e-9)
    crowd = np.float32(1e5) + np.arange(40, dtype=np.float32)[:, None] / 64  # closer than a product can tell
    np.testing.assert_allclose(nearest_few(crowd, crowd, 2, exclude_self=True)[1:-1], 1 / 64, rtol=1e-7)
    side = np.where(np.arange(600) % 2, 1000, -1000).astype(np.float32)[:, None]
    rows = np.random.default_rng(0).normal(size=(600, 50)).astype(np.float32) + side  # as large as the gaps
    others = np.sqrt(((rows[:, None].astype(np.float64) - rows[None]) ** 2).sum(axis=2))
    np.testing.assert_allclose(nearest_few(rows, rows, 2), np.sort(others, axis=1)[:, :2], rtol=1e-8)
    assert nearest_few(a[:1], b[:1], 2)[0, 1] == np.inf
    with pytest.raises(ValueError, match="count is 4"):
        nearest_few(a, b, 4)
