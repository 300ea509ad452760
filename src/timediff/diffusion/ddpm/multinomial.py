"""Multinomial diffusion of discrete channels (Hoogeboom et al. 2021). Distributions are log-probabilities, (…, K).

ᾱ_t and ᾱ_s are double and broadcast against (…, K); the large tensors stay in the precision of the log-probabilities.
All is in log space, so that single precision holds the probabilities of 1e-5 and less that one step of T = 1000 has.
"""

import math

import torch
from torch import Tensor


def log_q(classes: Tensor, k: int, alpha_bar: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """log q(c_t | c_0) = log(ᾱ c_0 + (1 − ᾱ)/K) of class indices (…), as (…, K)."""
    hot = classes.unsqueeze(-1) == torch.arange(k, device=classes.device)
    same = (alpha_bar + (1 - alpha_bar) / k).log().to(dtype)
    other = ((1 - alpha_bar) / k).log().to(dtype)
    return torch.where(hot, same, other)


def log_posterior(log_c0: Tensor, c_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor) -> Tensor:
    """log q(c_s | c_t, c_0) for log-probabilities of c_0: φ / Σφ, φ = (α c_t + (1 − α)/K) ⊙ (ᾱ_s c_0 + (1 − ᾱ_s)/K)."""
    k, dtype = log_c0.shape[-1], log_c0.dtype
    uniform = ((1 - alpha_bar_s) / k).log().to(dtype)
    from_start = torch.logaddexp(log_c0 + alpha_bar_s.log().to(dtype), uniform.expand_as(log_c0))
    log_phi = log_q(c_t, k, alpha_bar_t / alpha_bar_s, dtype) + from_start
    return log_phi.log_softmax(-1)


def log_one_hot(classes: Tensor, k: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """log of the one-hot vectors: 0 and −∞."""
    hot = classes.unsqueeze(-1) == torch.arange(k, device=classes.device)
    return torch.zeros(hot.shape, dtype=dtype, device=classes.device).masked_fill_(~hot, -math.inf)


def kl(log_q: Tensor, log_p: Tensor) -> Tensor:
    """KL(q ‖ p) over the last axis, for normalised log-probabilities; q may hold zeros.

    As Σ q (Δ + e^{−Δ} − 1) with Δ = log q − log p. The added Σ (p − q) is nothing in exact arithmetic, and makes every
    term non-negative, so that divergences far below single precision's 1e-7 of rounding keep their digits.
    """
    q = log_q.exp()
    delta = torch.where(q > 0, log_q - log_p, 0.0)
    return torch.where(q > 0, q * (delta + torch.expm1(-delta)), log_p.exp()).sum(-1)


def prior_kl(k: int, alpha_bar_last: float) -> float:
    """KL(q(c_T | c_0) ‖ uniform), the same for every c_0."""
    log_p = torch.full((k,), -math.log(k), dtype=torch.float64)
    zero, alpha_bar = torch.zeros((), dtype=torch.long), torch.tensor(alpha_bar_last, dtype=torch.float64)
    return float(kl(log_q(zero, k, alpha_bar, torch.float64), log_p))
