"""Solvers against a normal distribution, whose denoiser and probability-flow ODE are known in closed form."""

import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers.denoisers import training_noise
from timediff.diffusion.cascade import edm
from timediff.diffusion.cascade.solvers import calls_for, euler, heun, levels_for, multistep, stochastic
from timediff.diffusion.samplers import CASCADE_SAMPLERS

MEAN, STD = 0.5, 0.6
ALL = [euler, multistep, heun, stochastic]


def denoise(x: Tensor, sigma: Tensor) -> Tensor:
    """D(x; σ) = E[x_0 | x] for x_0 ~ N(MEAN, STD²)."""
    return MEAN + (STD**2 / (STD**2 + sigma**2)).to(x.dtype) * (x - MEAN)


def levels(n: int) -> Tensor:
    return torch.tensor([*edm.sigma_steps(n), 0.0], dtype=torch.float64)


@pytest.mark.parametrize("solve", ALL)
def test_the_denoiser_of_a_normal_gives_that_normal(solve):
    noise = training_noise(20_000)
    x = solve(denoise, MEAN + noise.normal(1, 1) * math.hypot(edm.SIGMA_MAX, STD), levels(200), noise)
    assert float(x.mean()) == pytest.approx(MEAN, abs=0.015)
    assert float(x.std()) == pytest.approx(STD, rel=0.03)


def error(solve, intervals: int) -> float:
    """Against the exact solution, x − MEAN ∝ √(STD² + σ²), down to σ_min; the last step is D for all solvers."""
    x = torch.tensor([[[-90.0]], [[40.0]]], dtype=torch.float64)
    sigmas = levels(intervals + 1)
    exact = MEAN + (x - MEAN) * math.sqrt((STD**2 + edm.SIGMA_MIN**2) / (STD**2 + edm.SIGMA_MAX**2))
    found = solve(denoise, x, sigmas, training_noise(2))
    return float((found - denoise(exact, sigmas[-2:-1])).abs().max())


@pytest.mark.parametrize(("solve", "order"), [(euler, 1), (heun, 2), (multistep, 2)])
def test_the_error_falls_with_the_steps_by_the_order_of_the_solver(solve, order):
    errors = [error(solve, intervals) for intervals in (64, 128, 256)]
    for coarse, fine in pairwise(errors):
        assert coarse / fine == pytest.approx(2**order, rel=0.15)


def test_stochastic_without_churn_is_heun():
    x = 80 * torch.randn(7, 3, 2, generator=torch.Generator().manual_seed(0))
    noise = training_noise(7)
    without = stochastic(denoise, x, levels(12), noise, s_churn=0.0)
    assert torch.equal(noise.normal(), training_noise(7).normal())  # it took none
    assert torch.equal(without, heun(denoise, x, levels(12), training_noise(7)))
    assert not torch.equal(without, stochastic(denoise, x, levels(12), training_noise(7)))


def test_churn_is_added_between_its_bounds_alone():
    """Before each step at a level within [s_min, s_max], as much noise as raises σ by γ (alg. 2, lines 4 to 6)."""
    seen: list[tuple[float, float]] = []

    def still(x: Tensor, sigma: Tensor) -> Tensor:
        seen.append((float(sigma), float(x.std())))
        return x  # so that no step moves it, and only noise does

    sigmas, n = torch.tensor([30.0, 2.0, 0.5, 0.0], dtype=torch.float64), 3
    stochastic(still, torch.zeros(50_000, 1, 1), sigmas, training_noise(50_000), 0.6, 1.0, 10.0, 1.5)
    gamma = 0.6 / n
    raised = 2.0 * (1 + gamma)
    first_calls = [seen[0], seen[2], seen[4]]
    assert [sigma for sigma, _ in first_calls] == pytest.approx([30.0, raised, 0.5])
    added = 1.5 * math.sqrt(raised**2 - 4.0)
    assert [std for _, std in first_calls] == pytest.approx([0.0, added, added], rel=0.02)
    stochastic(still, torch.zeros(2, 1, 1), torch.tensor([2.0, 0.0]).double(), training_noise(2), 40.0)
    assert seen[-1][0] == pytest.approx(2 * math.sqrt(2))  # γ is at most √2 − 1


@settings(deadline=None)
@given(st.integers(1, 40), st.sampled_from(ALL))
def test_how_often_the_denoiser_is_called(n, solve):
    called = []
    solve(lambda x, sigma: called.append(sigma) or denoise(x, sigma), torch.ones(2, 1, 1), levels(n), training_noise(2))
    assert len(called) == (2 * n - 1 if solve in (heun, stochastic) else n)
    assert calls_for(solve, n) == len(called)


@given(st.integers(1, 300), st.sampled_from(ALL))
def test_a_solver_gets_the_most_levels_that_the_calls_are_enough_for(calls, solve):
    n = levels_for(solve, calls)
    assert calls_for(solve, n) <= calls < calls_for(solve, n + 1)


def test_the_registry_knows_them_by_their_names():
    assert all(CASCADE_SAMPLERS(solve.__name__) is solve for solve in ALL)
