"""Mixtures of logistics: a distribution, whose samples follow it, and whose logarithms keep their digits far out."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from timediff.diffusion.autoregressive import logistics

SEEDS = st.integers(0, 2**31 - 1)


def mixture(seed: int, components: int = 4) -> torch.Tensor:
    return torch.randn(3 * components, generator=torch.Generator().manual_seed(seed))


@settings(deadline=None)
@given(SEEDS, st.lists(st.integers(-500, 500), min_size=1, max_size=8, unique=True))
def test_the_intervals_of_a_partition_have_all_of_the_probability(seed, ends):
    edges = torch.tensor([-1000.0, *(end / 100 for end in sorted(ends)), 1000.0])
    output = mixture(seed).expand(len(edges) - 1, -1)
    assert float(logistics.log_probability(output, edges[:-1], edges[1:]).exp().sum()) == pytest.approx(1, abs=1e-4)


@settings(deadline=None)
@given(SEEDS, st.floats(-3, 3))
def test_a_density_is_that_of_ever_narrower_intervals(seed, at):
    output, low = mixture(seed), torch.tensor(at)
    width = 1e-3
    narrow = logistics.log_probability(output, low - width / 2, low + width / 2) - math.log(width)
    assert float(logistics.log_probability(output, low, low)) == pytest.approx(float(narrow), abs=0.02)


@given(st.floats(-1e4, 1e4), st.floats(0, 1e3))
def test_it_is_finite_anywhere_and_so_is_its_gradient(low, width):
    output = mixture(0).requires_grad_()
    found = logistics.log_probability(output, torch.tensor(low), torch.tensor(low + width))
    found.backward()
    assert found.isfinite()
    assert output.grad is not None
    assert output.grad.isfinite().all()


def test_samples_are_as_frequent_as_it_says():
    output, n = mixture(3), 40_000
    drawn = logistics.sample(output.expand(n, -1), torch.rand(n), torch.rand(n))
    edges = torch.tensor([-30.0, -2.0, -0.5, 0.0, 0.7, 1.5, 30.0])
    stated = logistics.log_probability(output.expand(6, -1), edges[:-1], edges[1:]).exp()
    found = torch.histogram(drawn.clamp(-29, 29), edges).hist / n
    assert torch.allclose(found, stated.detach(), atol=0.012)
