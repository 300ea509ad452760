"""Multinomial diffusion, lemma by lemma, against the Markov chain written out as matrices."""

import math

import pytest
import torch
from torch import Tensor

from timediff.diffusion.ddpm import multinomial
from timediff.diffusion.ddpm.schedules import cosine

CLASSES = [2, 3, 4, 5, 6, 7]
ALPHA_BAR = cosine(12)


def transition(k: int, first: int, last: int) -> Tensor:
    """q(c_last | c_first) by multiplying the one-step matrices (1 − β) I + β/K; first = −1 is the data."""
    before = torch.cat([torch.ones(1, dtype=torch.float64), ALPHA_BAR])
    matrix = torch.eye(k, dtype=torch.float64)
    for t in range(first + 1, last + 1):
        beta = 1 - before[t + 1] / before[t]
        matrix = matrix @ ((1 - beta) * torch.eye(k, dtype=torch.float64) + beta / k)
    return matrix


def at(t: int) -> Tensor:
    return ALPHA_BAR[t] if t >= 0 else torch.ones((), dtype=torch.float64)


@pytest.mark.parametrize("k", CLASSES)
@pytest.mark.parametrize("t", [0, 5, 11])
def test_q_is_the_chain_run_t_times(k: int, t: int) -> None:
    log_q = multinomial.log_q(torch.arange(k), k, at(t), torch.float64)
    assert torch.allclose(log_q.exp(), transition(k, -1, t))


@pytest.mark.parametrize("k", CLASSES)
@pytest.mark.parametrize(("t", "s"), [(0, -1), (1, 0), (11, 10), (11, 3), (7, -1), (8, 0)])
def test_posterior_is_bayes_rule(k: int, t: int, s: int) -> None:
    """q(c_s | c_t, c_0) ∝ q(c_t | c_s) q(c_s | c_0), for every c_0 and c_t, neighbouring or strided."""
    c0, c_t = (grid.flatten() for grid in torch.meshgrid(torch.arange(k), torch.arange(k), indexing="ij"))
    joint = transition(k, s, t)[:, c_t].T * transition(k, -1, s)[c0]
    log_c0 = multinomial.log_one_hot(c0, k, torch.float64)
    computed = multinomial.log_posterior(log_c0, c_t, at(t), at(s)).exp()
    assert torch.allclose(computed, joint / joint.sum(-1, keepdim=True))
    assert torch.allclose(computed.sum(-1), torch.ones(k * k, dtype=torch.float64))


@pytest.mark.parametrize("k", CLASSES)
def test_posterior_of_a_guess_is_its_formula(k: int) -> None:
    """φ = (α c_t + (1 − α)/K) ⊙ (ᾱ_s ĉ_0 + (1 − ᾱ_s)/K), normalised, for probabilities ĉ_0."""
    guess = torch.rand(50, k, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    guess /= guess.sum(-1, keepdim=True)
    c_t = torch.arange(50) % k
    alpha = ALPHA_BAR[6] / ALPHA_BAR[5]
    phi = (alpha * torch.nn.functional.one_hot(c_t, k) + (1 - alpha) / k) * (
        ALPHA_BAR[5] * guess + (1 - ALPHA_BAR[5]) / k
    )
    computed = multinomial.log_posterior(guess.log(), c_t, ALPHA_BAR[6], ALPHA_BAR[5]).exp()
    assert torch.allclose(computed, phi / phi.sum(-1, keepdim=True))


@pytest.mark.parametrize("k", CLASSES)
def test_kl_is_its_definition(k: int) -> None:
    log_q, log_p = torch.randn(2, 100, k, generator=torch.Generator().manual_seed(0), dtype=torch.float64).log_softmax(
        -1
    )
    expected = (log_q.exp() * (log_q - log_p)).sum(-1)
    assert torch.allclose(multinomial.kl(log_q, log_p), expected)
    assert torch.allclose(multinomial.kl(log_q, log_q), torch.zeros(100, dtype=torch.float64))


def test_kl_of_a_certainty_is_the_negative_log_likelihood() -> None:
    log_p = torch.randn(20, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).log_softmax(-1)
    c = torch.arange(20) % 3
    nll = -log_p.gather(-1, c[:, None])[:, 0]
    assert torch.allclose(multinomial.kl(multinomial.log_one_hot(c, 3, torch.float64), log_p), nll)


def test_kl_has_a_gradient_where_q_is_zero() -> None:
    logits = torch.zeros(4, 3, requires_grad=True)
    multinomial.kl(
        multinomial.log_one_hot(torch.zeros(4, dtype=torch.long), 3), logits.log_softmax(-1)
    ).sum().backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert (logits.grad[:, 0] < 0).all()


@pytest.mark.parametrize("k", [2, 3, 7])
def test_single_precision_keeps_its_digits_at_every_step(k: int) -> None:
    """The divergence of a whole schedule in float32, where terms are as small as 1e-9, against float64."""
    table = torch.cat([torch.ones(1, dtype=torch.float64), cosine(1000)])
    t = torch.arange(1, 1000)
    alpha_bar_t, alpha_bar_s = table[t + 1][:, None, None], table[t][:, None, None]
    logits = torch.randn(999, 64, k, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    c0, c_t = torch.randint(k, (2, 999, 64), generator=torch.Generator().manual_seed(1))

    def divergence(dtype: torch.dtype) -> Tensor:
        hot = multinomial.log_one_hot(c0, k, dtype)
        target = multinomial.log_posterior(hot, c_t, alpha_bar_t, alpha_bar_s)
        model = multinomial.log_posterior(logits.to(dtype).log_softmax(-1), c_t, alpha_bar_t, alpha_bar_s)
        return multinomial.kl(target, model).sum(-1)

    single, double = divergence(torch.float32), divergence(torch.float64)
    assert (single >= 0).all()
    assert torch.allclose(single.double(), double, rtol=1e-3)


@pytest.mark.parametrize("k", CLASSES)
def test_the_prior_term(k: int) -> None:
    q = transition(k, -1, 11)[0]
    expected = (q * (q * k).log()).sum()
    assert math.isclose(multinomial.prior_kl(k, float(ALPHA_BAR[-1])), expected, rel_tol=1e-6, abs_tol=1e-12)
