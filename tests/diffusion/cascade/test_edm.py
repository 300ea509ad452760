"""EDM: noise levels, preconditioning and weight are those of Karras et al. 2022, for data of unit variance."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from timediff.diffusion.cascade import edm
from timediff.diffusion.cascade.edm import EDMPrecond, NetworkOutput


def test_the_noise_rises_with_the_level_and_its_logarithm_is_normal():
    sigma = edm.training_sigma(torch.linspace(0.001, 0.999, 999))
    assert (sigma.diff() >= 0).all()
    assert float(edm.training_sigma(torch.tensor([0.5]))) == pytest.approx(math.exp(edm.P_MEAN), rel=1e-6)
    assert float(edm.training_sigma(torch.tensor([1.0]))) == edm.SIGMA_MAX
    assert float(edm.training_sigma(torch.tensor([0.0]))) == edm.SIGMA_MIN


@given(st.integers(1, 300))
def test_a_sampler_goes_from_the_most_noise_to_the_least(n):
    sigmas = edm.sigma_steps(n)
    assert len(sigmas) == n
    assert sigmas[0] == pytest.approx(edm.SIGMA_MAX)
    assert list(sigmas) == sorted(sigmas, reverse=True)
    if n > 1:
        assert sigmas[-1] == pytest.approx(edm.SIGMA_MIN)


@given(st.floats(0.01, 0.99))
def test_preconditioning_gives_back_the_data_for_the_output_that_it_wants(u):
    """F = (x_0 − c_skip x)/c_out makes D exactly x_0, and then F has unit variance for data of unit variance."""
    g = torch.Generator().manual_seed(0)
    x0, sigma = torch.randn(4000, 1, 1, generator=g), edm.training_sigma(torch.tensor([u]))[:, None, None]
    x = x0 + sigma.float() * torch.randn(4000, 1, 1, generator=g)
    wanted = (x0.double() - x.double() / (sigma**2 + 1)) / (sigma * (sigma**2 + 1).rsqrt())

    def network(scaled: Tensor, c_noise: Tensor) -> NetworkOutput:
        assert float(scaled.std()) == pytest.approx(1, abs=0.1)
        return NetworkOutput(wanted.float(), scaled)

    assert torch.allclose(EDMPrecond(network)(x, sigma).values, x0, atol=1e-4)
    assert float(edm.weight(sigma) * (sigma * (sigma**2 + 1).rsqrt()) ** 2) == pytest.approx(1)
    if u > 0.1:  # below, x_0 − x is lost in single precision
        assert float(wanted.std()) == pytest.approx(1, abs=0.1)


@settings(deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(1, 5), st.integers(1, 3), st.booleans())
def test_preconditioning_wraps_any_network_as_defined(seed, stays, channels, one_level):
    """D = c_skip x + c_out F(c_in x; c_noise), for one σ of all stays or one of each; the head's part as it is."""
    g = torch.Generator().manual_seed(seed)
    weight = torch.randn(channels + 1, channels, generator=g, dtype=torch.float64)
    x = torch.randn(stays, 4, channels, generator=g, dtype=torch.float64)
    sigma = edm.training_sigma(torch.rand(1 if one_level else stays, generator=g))

    def network(scaled: Tensor, c_noise: Tensor) -> NetworkOutput:
        level = c_noise[:, None, None].expand(stays, 4, 1)
        return NetworkOutput((torch.cat([scaled, level], dim=-1) @ weight).tanh(), level)

    found = EDMPrecond(network)(x, sigma[:, None, None])
    for stay in range(stays):
        s = float(sigma[0 if one_level else stay])
        c_skip, c_out, c_in, c_noise = 1 / (s**2 + 1), s / math.sqrt(s**2 + 1), 1 / math.sqrt(s**2 + 1), math.log(s) / 4
        scaled = torch.cat([c_in * x[stay], torch.full((4, 1), c_noise, dtype=torch.float64)], dim=-1)
        assert torch.allclose(found.values[stay], c_skip * x[stay] + c_out * (scaled @ weight).tanh(), rtol=1e-9)
        assert torch.allclose(found.head[stay], torch.full((4, 1), c_noise, dtype=torch.float64))
