"""Gaussian diffusion, lemma by lemma, in double precision against closed forms."""

import pytest
import torch

from timediff.diffusion.ddpm import gaussian
from timediff.diffusion.ddpm.schedules import cosine

ALPHA_BAR = cosine(1000)
X0 = torch.linspace(-1, 1, 7, dtype=torch.float64)
PAIRS = [(999, 998), (500, 499), (1, 0), (999, 700), (500, 20), (20, 0)]


@pytest.mark.parametrize("t", [0, 1, 500, 999])
def test_q_sample_has_the_stated_mean_and_variance(t: int) -> None:
    noise = torch.randn(200_000, 1, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x_t = gaussian.q_sample(X0, noise, ALPHA_BAR[t])
    assert torch.allclose(x_t.mean(0), ALPHA_BAR[t].sqrt() * X0, atol=0.01)
    assert torch.allclose(x_t.var(0), (1 - ALPHA_BAR[t]).expand(7), rtol=0.02)


@pytest.mark.parametrize("t", [0, 1, 500, 990])
def test_x0_and_noise_are_recovered_from_each_other(t: int) -> None:
    noise = torch.randn(7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    x_t = gaussian.q_sample(X0, noise, ALPHA_BAR[t])
    assert torch.allclose(gaussian.predict_x0(x_t, noise, ALPHA_BAR[t]), X0)
    assert torch.allclose(gaussian.predict_noise(x_t, X0, ALPHA_BAR[t]), noise)


@pytest.mark.parametrize(("t", "s"), PAIRS)
def test_posterior_is_bayes_rule(t: int, s: int) -> None:
    """q(x_s | x_t, x_0) ∝ q(x_t | x_s) q(x_s | x_0), a product of two Gaussians in x_s."""
    x_t = torch.linspace(2, -2, 7, dtype=torch.float64)
    alpha = ALPHA_BAR[t] / ALPHA_BAR[s]
    precision = alpha / (1 - alpha) + 1 / (1 - ALPHA_BAR[s])
    mean = (alpha.sqrt() * x_t / (1 - alpha) + ALPHA_BAR[s].sqrt() * X0 / (1 - ALPHA_BAR[s])) / precision
    computed, variance = gaussian.posterior(X0, x_t, ALPHA_BAR[t], ALPHA_BAR[s])
    assert torch.allclose(computed, mean)
    assert torch.allclose(variance, 1 / precision)


@pytest.mark.parametrize("t", [1, 500, 990])
def test_posterior_mean_is_the_papers_formula_for_the_noise(t: int) -> None:
    """μ_θ = (x_t − β/√(1 − ᾱ) ε) / √α."""
    noise = torch.randn(7, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    x_t = gaussian.q_sample(X0, noise, ALPHA_BAR[t])
    alpha = ALPHA_BAR[t] / ALPHA_BAR[t - 1]
    papers = (x_t - (1 - alpha) / (1 - ALPHA_BAR[t]).sqrt() * noise) / alpha.sqrt()
    computed, _ = gaussian.posterior(gaussian.predict_x0(x_t, noise, ALPHA_BAR[t]), x_t, ALPHA_BAR[t], ALPHA_BAR[t - 1])
    assert torch.allclose(computed, papers)


def test_the_last_step_gives_x0_without_noise() -> None:
    one = torch.ones((), dtype=torch.float64)
    mean, variance = gaussian.posterior(X0, X0 + 1, ALPHA_BAR[0], one)
    assert torch.allclose(mean, X0)
    assert variance == 0


@pytest.mark.parametrize(("t", "s"), PAIRS)
def test_ddim_stays_on_the_path_of_its_noise(t: int, s: int) -> None:
    noise = torch.randn(7, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    x_t, x_s = (gaussian.q_sample(X0, noise, ALPHA_BAR[step]) for step in (t, s))
    assert torch.allclose(gaussian.ddim(X0, x_t, ALPHA_BAR[t], ALPHA_BAR[s]), x_s)


@pytest.mark.parametrize(("t", "s"), PAIRS)
def test_single_precision_is_close_to_double(t: int, s: int) -> None:
    x_t = torch.linspace(2, -2, 7)
    single, _ = gaussian.posterior(X0.float(), x_t, ALPHA_BAR[t], ALPHA_BAR[s])
    double, _ = gaussian.posterior(X0, x_t.double(), ALPHA_BAR[t], ALPHA_BAR[s])
    assert torch.allclose(single.double(), double, atol=1e-6)
