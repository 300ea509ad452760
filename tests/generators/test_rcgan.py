"""RCGAN: the label as a condition, and noise that is held."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.small_baselines import baseline, noise_for, untrained
from timediff.data.cohort import Cohort
from timediff.generators.common.held_noise import holding


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
