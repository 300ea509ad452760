"""Each attack finds the leak that it is for, and nothing where there is none."""

from dataclasses import replace

import numpy as np
import pytest

from helpers.leaky import Leaky, LeakySettings
from timediff.data.cohort import Cohort, concatenate
from timediff.evaluation.attacks.case import AttackCase, Shadow
from timediff.evaluation.attacks.membership import (
    Truth,
    description_scores,
    inference_scores,
    membership_scores,
    succeeded,
)
from timediff.evaluation.attacks.registry import ATTACKS
from timediff.evaluation.attacks.shadows import halves
from timediff.sources.simulated import simulate

STAYS = 150
MODELS = 4
TRUTH = Truth.of(np.arange(STAYS), np.arange(STAYS))


@pytest.fixture(scope="module")
def real() -> list[Cohort]:
    """Training stays, others, a reference, and others still."""
    whole = simulate(4 * STAYS, steps=8, seed=5)
    return [whole.take(np.arange(i * STAYS, (i + 1) * STAYS)) for i in range(4)]


def case(real: list[Cohort], trained: Cohort, **settings: float) -> AttackCase:
    """An attack on a leaky generator that was trained on these stays."""
    joined = concatenate(real[:2])
    candidates = replace(joined, stay_id=np.arange(len(joined)))

    def fitted(cohort: Cohort, seed: int) -> Leaky:
        return Leaky(settings=LeakySettings(**settings)).fit(cohort, seed=seed)

    model = fitted(trained, 0)
    shadows = []
    for number, on in enumerate(halves(TRUTH.units, MODELS, 0)):
        shadow = fitted(candidates.take(np.flatnonzero(on)), number + 1)
        shadows.append(Shadow(shadow, on, shadow.sample(2 * STAYS, seed=number + 1)))
    return AttackCase(candidates, real[2], model.sample(2 * STAYS, seed=1), model, shadows)


def success(name: str, given: AttackCase) -> bool:
    attack, rng = ATTACKS(name), np.random.default_rng(0)
    found = attack.run(given)
    scores = {"membership": membership_scores, "inference": inference_scores, "description": description_scores}
    return succeeded(scores[attack.kind](name, found, TRUTH, rng))


@pytest.mark.parametrize("name", ATTACKS.names())
def test_a_leak_is_found_and_where_there_is_none_nothing_is(name: str, real: list[Cohort]) -> None:
    assert success(name, case(real, real[0]))
    assert not success(name, case(real, real[3]))


def test_who_is_sure_of_few_needs_no_shift_of_all(real: list[Cohort]) -> None:
    """One in ten of the synthetic stays is a copy, the others are of nobody."""
    given = case(real, real[3])
    copies = Leaky(settings=LeakySettings(noise=0.0)).fit(real[0], seed=0).sample(30, seed=2)
    assert given.synthetic is not None
    joined = concatenate([given.synthetic.take(np.arange(270)), copies])
    assert success("distance", replace(given, synthetic=replace(joined, stay_id=np.arange(300))))


@pytest.mark.parametrize("name", ["lira", "lira-offline", "rmia", "loss"])
def test_attacks_on_the_run_folder_read_the_losses(name: str, real: list[Cohort]) -> None:
    """With losses that say nothing they find nothing, whatever the cohort gives away."""
    assert not success(name, case(real, real[0], loss_noise=1e4))


def test_each_patient_is_in_half_of_the_shadow_models() -> None:
    units = np.array([0, 0, 1, 2, 3, 3, 4])
    trained = halves(units, 6, seed=3)
    assert (trained.sum(axis=0) == 3).all()
    assert (trained[:, 0] == trained[:, 1]).all()
    assert (trained[:, 4] == trained[:, 5]).all()
    assert not (trained[:, 0] == trained[:, 2]).all() or not (trained[:, 0] == trained[:, 3]).all()


def test_a_linked_half_is_of_the_same_synthetic_stay(real: list[Cohort]) -> None:
    given = case(real, real[0], noise=0.0)
    linked = ATTACKS("linkability").run(given)[:, 0]
    assert linked[:STAYS].mean() > linked[STAYS:].mean() + 0.3
