"""Classifiers of series: the same side by side, they miss nothing that is planted, and see nothing where nothing is."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from helpers.data import DATA
from timediff.data.cohort import Cohort
from timediff.evaluation.classifiers import discriminators, series_classifiers
from timediff.evaluation.classifiers.held_out import HeldOutLogits
from timediff.evaluation.classifiers.parallel_networks import Recipe, parallel
from timediff.evaluation.classifiers.series_classifiers import Repetition, train_and_measure
from timediff.evaluation.inputs.view import View
from timediff.evaluation.metrics.discriminative import discriminative
from timediff.evaluation.metrics.predictive import predictive
from timediff.runtime.seeding import stream
from timediff.sources.registry import resolve, source
from timediff.sources.simulated import simulate

REAL = DATA / "physionet2012"
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"no {REAL}: put the challenge's files there, or set TIMEDIFF_DATA")
Series = npt.NDArray[np.float32]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def noise(stays: int, seed: int, steps: int = 8, channels: int = 4) -> Series:
    return np.random.default_rng(seed).normal(size=(stays, steps, channels)).astype(np.float32)


def quick(monkeypatch, iterations: int) -> None:
    """The same classifiers, with less time to train."""
    whole = discriminators.recipe
    monkeypatch.setattr(discriminators, "recipe", lambda *given: replace(whole(*given), iterations=iterations))


# Side by side


def some_repetitions(count: int, *, unequal: bool = False) -> list[Repetition]:
    """Different stays for each repetition, of 120; of patients, as many on each side only by chance."""
    found = []
    for r in range(count):
        order = np.random.default_rng(r).permutation(120)
        first, last = (40 - 13 * r, 80 + 7 * r) if unequal else (40, 80)
        found.append(Repetition((order[:first], order[40:80]), held_out=order[last:100], validation=order[100:]))
    return found


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(3, iterations=45, batch=16),
        Recipe(3, layers=2, reads="summary", iterations=45, batch=16, rate=5e-3, patience=5),
        Recipe(3, layers=2, reads="summary", iterations=400, batch=16, rate=2e-2, patience=1),
        Recipe(2, reads="every step", iterations=45, batch=16),
        Recipe(3, layers=3, network="convolution", iterations=45, batch=16, rate=5e-3, patience=5),
    ],
)
def test_networks_side_by_side_are_those_one_after_the_other(recipe):
    series = noise(120, 0)
    targets = series[:, :, :2] * 2 if recipe.reads == "every step" else series[:, -1:, :1]

    def error(outputs, wanted):
        return (outputs - wanted) ** 2

    ways = [
        train_and_measure(
            recipe, series, targets, some_repetitions(3), loss=error, measure=error, seed=5, side_by_side=way
        )
        for way in (True, False)
    ]
    np.testing.assert_allclose(ways[0], ways[1], rtol=1e-3, atol=1e-5)
    assert not np.allclose(ways[0][0], ways[0][1])


def test_side_by_side_takes_repetitions_of_different_sizes():
    recipe, series = Recipe(3, iterations=45, batch=30, patience=5), noise(120, 0)
    settings = {"loss": series_classifiers.cross_entropy, "measure": series_classifiers.logit, "seed": 5}
    stays = some_repetitions(3, unequal=True)  # two of them have a batch of 30, the third of fewer
    ways = [
        train_and_measure(recipe, series, series[:, -1:, :1], stays, side_by_side=way, **settings)
        for way in (True, False)
    ]
    assert [len(one) for one in ways[0]] == [20, 13, 6]
    for together, alone in zip(*ways, strict=True):
        np.testing.assert_allclose(together, alone, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "recipe",
    [Recipe(3, layers=2, reads="summary"), Recipe(3, layers=3, network="convolution")],
    ids=lambda r: r.network,
)
def test_no_network_sees_what_another_one_does(recipe):
    networks = parallel(recipe, 2, 1, [stream("evaluation", 0, r) for r in range(3)])
    series = torch.from_numpy(noise(5, 1, channels=6)).transpose(0, 1).requires_grad_()
    networks(series)[:, :, 1].sum().backward()
    assert series.grad is not None
    assert (series.grad[:, :, 2:4] != 0).all()
    assert (series.grad[:, :, [0, 1, 4, 5]] == 0).all()


def test_classifiers_leave_the_global_random_state_alone():
    before = torch.random.get_rng_state()
    discriminative(noise(60, 0), noise(60, 1), seed=0, repetitions=1, architecture="strong")
    assert torch.equal(before, torch.random.get_rng_state())


# The seed


@pytest.mark.parametrize("architecture", ["paper", "strong", "convolution"])
def test_the_seed_decides_everything(architecture, monkeypatch):
    quick(monkeypatch, iterations=60)
    real, synthetic = noise(80, 0), noise(90, 1) + 0.3
    one, same, other = (
        discriminative(real, synthetic, seed=s, repetitions=2, architecture=architecture) for s in (3, 3, 4)
    )
    assert one == same
    assert one != other


def test_the_predictive_seed_decides_everything():
    one, same, other = (predictive(noise(60, 0), noise(60, 1), seed=s, repetitions=2, iterations=30) for s in (3, 3, 4))
    assert one == same
    assert one != other


# What is planted, and what is not


@pytest.fixture(scope="module")
def icu() -> tuple[View, Cohort, Cohort]:
    """What classifiers see of a simulated ICU, and two sets of its stays that it was not fitted on."""
    whole = simulate(3000, steps=24, seed=3)
    train, real, other = (whole.take(np.arange(i * 1000, (i + 1) * 1000)) for i in range(3))
    return View.fit(train, "strict"), real, other


def changed(cohort: Cohort, fault: str) -> Cohort:
    """The same stays with one fault."""
    rng = np.random.default_rng(0)
    series = dict(cohort.series)
    breaths = series.get("resp_rate", np.zeros(1))
    mean, sd = np.nanmean(breaths), np.nanstd(breaths)
    if fault == "a mean shifted by half an SD":
        series["resp_rate"] = breaths + 0.5 * sd
    elif fault == "a spread halved":
        series["resp_rate"] = mean + (breaths - mean) / 2
    elif fault == "time shuffled":
        order = np.argsort(rng.random(breaths.shape), axis=1)
        series = {name: np.take_along_axis(values, order, axis=1) for name, values in series.items()}
    elif fault == "mask bits flipped":
        for name, values in series.items():
            turned = np.where(np.isnan(values), np.nanmean(values), np.nan)
            series[name] = np.where(rng.random(values.shape) < 0.01, turned, values)
    return replace(cohort, series=series)


@pytest.mark.parametrize(
    ("fault", "least"), [("a mean shifted by half an SD", 0.6), ("a spread halved", 0.8), ("time shuffled", 0.7)]
)
def test_the_two_layer_gru_catches(fault, least, icu, monkeypatch):
    quick(monkeypatch, iterations=240)
    view, real, other = icu
    _, auc = discriminative(
        view.series(real), view.series(changed(other, fault)), seed=0, repetitions=1, architecture="strong"
    )
    assert auc.value > least
    assert auc.low > 0.5


def test_a_convolution_catches_steps_out_of_order(icu, monkeypatch):
    quick(monkeypatch, iterations=200)
    view, real, other = icu
    seen = view.with_elapsed
    _, auc = discriminative(
        seen.series(real),
        seen.series(changed(other, "time shuffled")),
        seed=0,
        repetitions=1,
        architecture="convolution",
    )
    assert auc.value > 0.8


def test_the_two_layer_gru_catches_flipped_masks_by_the_masks_alone(icu, monkeypatch):
    quick(monkeypatch, iterations=160)
    view, real, other = icu
    synthetic = view.masks.series(changed(other, "mask bits flipped"))
    _, auc = discriminative(
        view.masks.series(real), synthetic, seed=0, repetitions=1, architecture="strong", name="strong, masks alone"
    )
    assert auc.value > 0.65
    assert auc.low > 0.6
    assert auc.classifier == "strong, masks alone"


@real
def test_one_mask_bit_in_a_hundred_is_enough_on_real_stays(monkeypatch):
    quick(monkeypatch, iterations=240)
    sets = [source("physionet2012").extract(str(REAL / f"set-{x}.parquet"), resolve("physionet2012")) for x in "ab"]
    train, test = (found.cohort.take(np.arange(1500)) for found in sets)
    view = View.fit(train, "strict").masks
    faulty = changed(train, "mask bits flipped")
    _, floor = discriminative(view.series(test), view.series(train), seed=0, repetitions=1, architecture="strong")
    _, auc = discriminative(view.series(test), view.series(faulty), seed=0, repetitions=1, architecture="strong")
    assert auc.low > 0.6
    assert auc.low > floor.high


def test_two_halves_of_one_cohort_are_alike(icu, monkeypatch):
    quick(monkeypatch, iterations=100)
    view, real, other = icu
    score, auc = discriminative(view.series(real), view.series(other), seed=0, repetitions=2, architecture="strong")
    assert score.value < 0.05
    assert 0.45 < auc.value < 0.55
    assert score.low <= score.value <= score.high
    assert auc.low <= auc.value <= auc.high
    assert set(auc.std) == {"classifier"}
    assert auc.n == 400


def test_the_papers_gru_tells_what_is_plain_from_what_is_not():
    alike, _ = discriminative(noise(400, 0, 4, 2), noise(400, 1, 4, 2), seed=0, repetitions=1)
    shifted, auc = discriminative(noise(400, 0, 4, 2), noise(400, 1, 4, 2) + 2, seed=0, repetitions=1)
    assert alike.value < 0.1
    assert shifted.value > 0.45
    assert auc.value > 0.99


# The recipe of the paper


@pytest.mark.parametrize(("channels", "units"), [(1, 1), (2, 1), (5, 2), (28, 14)])
def test_the_papers_gru_has_half_as_many_units_as_channels(channels, units):
    assert discriminators.recipe("paper", channels) == Recipe(units, 1, "last", iterations=2000, batch=128, rate=1e-3)


def test_each_repetition_has_its_own_split_with_equally_many_of_both_kinds():
    one, other = (discriminators.split("strong", 100, 300, 0, r) for r in (0, 1))
    for found in (one, other):
        assert found.validation is not None
        parts = [*found.pools, found.held_out, found.validation]
        together = np.concatenate(parts)
        assert len(set(together)) == len(together) == 200
        assert all((part < 100).sum() * 2 == len(part) for part in (found.held_out, found.validation))
        assert [len(part) for part in parts] == [68, 68, 40, 24]
    assert set(one.held_out) != set(other.held_out)


def test_stays_of_one_patient_are_on_one_side():
    patients = np.arange(90) // 3
    for repetition in range(5):
        found = discriminators.split("strong", patients, 80, 0, repetition)
        held_out = set(patients[found.held_out[found.held_out < 90]])
        assert held_out
        assert not held_out & set(patients[found.pools[0]])


# AUC and its resamples


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans(), st.integers(0, 3)), min_size=2, max_size=30))
def test_weighted_accuracy_and_auc_are_those_of_the_repeated_stays(rows):
    logits, is_real, weights = (np.array(column) for column in zip(*rows, strict=True))
    repeated_real = np.repeat(is_real, weights)
    if len(set(repeated_real)) < 2:
        return
    score, auc = HeldOutLogits(logits.astype(float), is_real).score_and_auc(weights)
    assert auc == pytest.approx(roc_auc_score(repeated_real, np.repeat(logits, weights)))
    accuracy = np.mean((np.repeat(logits, weights) > 0) == repeated_real)
    assert score == pytest.approx(abs(accuracy - 0.5))


# Prediction


def test_a_series_known_exactly_is_predicted():
    """Each stay alternates between a level and its negative."""
    level = np.random.default_rng(0).uniform(-1, 1, (400, 1, 1))
    series = np.repeat(level * (-1.0) ** np.arange(4)[:, None], 8, axis=2).astype(np.float32)
    (score,) = predictive(series[:200], series[200:], seed=0, repetitions=1, iterations=1200)
    assert score.value < 0.1
    assert score.low < score.value < score.high
    assert score.n == 200


def test_the_error_of_noise_is_its_mean_absolute_deviation():
    (score,) = predictive(noise(500, 0), noise(300, 1), seed=0, repetitions=2, iterations=200)
    assert score.value == pytest.approx(np.sqrt(2 / np.pi), abs=0.03)


def test_the_scalar_target_is_the_last_channel_and_lies_between_0_and_1():
    """The last channel is what the others were a step before; then that of another stay."""
    values = np.random.default_rng(0).uniform(0, 1, (400, 6, 1)).astype(np.float32)
    others, last = np.repeat(values[:, 1:], 7, axis=2), values[:, :-1]
    known, unknown = (
        predictive(series[:200], series[200:], target="scalar", seed=0, repetitions=1, iterations=1000)[0].value
        for series in (np.concatenate([others, column], axis=2) for column in (last, np.roll(last, 1, axis=0)))
    )
    assert known < 0.05
    assert unknown == pytest.approx(0.25, abs=0.02)


def test_the_predictor_is_timegans(monkeypatch):
    seen = []

    def recorded(recipe, *rest, **more):
        seen.append(recipe)
        return [np.zeros(60)]

    monkeypatch.setattr(series_classifiers, "train_and_measure", recorded)
    predictive(noise(60, 0, channels=5), noise(60, 1, channels=5), seed=0, repetitions=1)
    assert seen == [Recipe(2, 1, "every step", iterations=5000, batch=128, rate=1e-3)]


# What cannot be measured


def test_too_few_stays_are_said_to_be_too_few():
    for score in discriminative(noise(49, 0), noise(60, 1), seed=0, repetitions=1):
        assert np.isnan(score.value)
        assert "49 real and 60 synthetic stays; at least 50 of each" in score.note
    (score,) = predictive(noise(60, 0), noise(10, 1), seed=0, repetitions=1)
    assert "60 training stays and 10 to predict" in score.note


def test_nothing_to_see_is_said():
    score, _ = discriminative(noise(60, 0)[:, :, :0], noise(60, 1)[:, :, :0], seed=0, repetitions=1)
    assert "no channel" in score.note
    assert "at least 2" in predictive(noise(60, 0, 1), noise(60, 1, 1), seed=0, repetitions=1)[0].note
    one = noise(60, 0, channels=1)
    assert "needs at least 2" in predictive(one, one, target="scalar", seed=0, repetitions=1)[0].note


def test_progress_is_of_all_networks_and_ends_complete():
    seen: list[tuple[int, int]] = []
    predictive(
        noise(60, 0), noise(60, 1), seed=0, repetitions=2, iterations=30, progress=lambda d, t, **_: seen.append((d, t))
    )
    assert seen == sorted(seen)
    assert seen[-1] == (2000, 2000)
