"""RCGAN: the label as a condition, and noise that is held."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.small_baselines import baseline, noise_for, untrained
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.generators.common.held_noise import holding
from timediff.settings.resolve import resolve


@given(numbers=st.integers(1, 9), steps=st.integers(1, 6), fraction=st.floats(0, 1))
def test_held_noise_is_that_of_the_first_step_and_the_rest_as_sampled(
    numbers: int, steps: int, fraction: float
) -> None:
    z = torch.randn(4, steps, numbers)
    made, held = holding(z, fraction), round(fraction * numbers)
    assert made.shape == z.shape
    assert torch.equal(made[..., :held], z[:, :1, :held].repeat(1, steps, 1))
    assert torch.equal(made[..., held:], z[..., held:])


def test_it_is_conditioned_on_the_label(mixed: Cohort) -> None:
    network = untrained(baseline("rcgan"), mixed).network
    z, label = network.sample_noise(noise_for(5), 6)
    with torch.no_grad():
        made = [network.generate(z, torch.full_like(label, of), length=6) for of in (0, 1)]
    different = (made[0] - made[1]).abs().amax(dim=(0, 1)) > 1e-4
    assert different.all()  # and not only the label's own column


def test_labels_are_sampled_at_their_rate(mixed: Cohort) -> None:
    made = baseline("rcgan", training__steps=1).fit(mixed, seed=0).sample(4000, seed=1)
    assert np.mean(made.label) == pytest.approx(np.mean(mixed.label), abs=0.03)


def test_as_published_both_losses_are_cross_entropies_of_every_step(mixed: Cohort) -> None:
    made = untrained(baseline("rcgan-published"), mixed)
    network, stays = made.network, len(made.batch)
    with torch.no_grad():
        synthetic = network.generate(*network.sample_noise(noise_for(stays), 6), length=6)
        real, fake = (network.discriminator(x) for x in (made.columns.of(made.batch), synthetic))
        assert real.shape == (stays, 6, 1)
        expected = -(real.sigmoid().log().mean() + (-fake).sigmoid().log().mean())
        fooling = -fake.sigmoid().log().mean()
    assert made.losses("discriminator")["total"].item() == pytest.approx(expected.item(), rel=1e-5)
    assert made.losses("generator")["total"].item() == pytest.approx(fooling.item(), rel=1e-5)


def test_as_published_noise_is_another_at_every_step_and_passes_through_the_states(mixed: Cohort) -> None:
    network = untrained(baseline("rcgan-published"), mixed).network
    z, _ = network.sample_noise(noise_for(500), 6)
    assert z.shape == (500, 6, 10)
    assert (z[:, 1:] - z[:, :-1]).abs().amax(dim=(0, 1)).min() > 1  # of every number
    assert network.generator.output.in_features == network.generator.width
    assert untrained(baseline("rcgan"), mixed).network.generator.skip


def test_as_published_the_discriminator_is_trained_by_sgd_once_for_three_steps_of_the_generator(mixed: Cohort) -> None:
    settings = resolve("rcgan-published")
    objectives = {one.name: one for one in baseline("rcgan-published").objectives(Codec.fit(mixed))}
    assert {name: one.repeats for name, one in objectives.items()} == {"discriminator": 1, "generator": 3}
    assert [objectives[name].optimizer for name in ("discriminator", "generator")] == ["sgd", None]
    assert settings.training.lr * objectives["discriminator"].lr == pytest.approx(0.1)
    assert (settings.training.optimizer, settings.training.lr) == ("adam", 1e-3)
