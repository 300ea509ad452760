"""Continuous channels in continuous time (Karras et al. 2022), for data of unit variance (σ_data = 1)."""

import math

import torch
from torch import Tensor

P_MEAN, P_STD = -1.2, 1.6  # of log σ in training; wider than for images (1.2): series are smooth, their details small
SIGMA_MIN, SIGMA_MAX, RHO = 2e-3, 80.0, 7.0


def sigma(u: Tensor) -> Tensor:
    """The noise to train at, for u in (0, 1): its logarithm is normal."""
    normal = math.sqrt(2) * torch.erfinv((2 * u.double() - 1).clamp(-1 + 1e-12, 1 - 1e-12))
    return (P_MEAN + P_STD * normal).exp().clamp(SIGMA_MIN, SIGMA_MAX)


def levels(calls: int) -> tuple[float, ...]:
    """The noise at each call of a sampler, from most to least, dense where there is little (eq. 5, ρ = 7)."""
    high, low = SIGMA_MAX ** (1 / RHO), SIGMA_MIN ** (1 / RHO)
    return tuple((high + i / max(1, calls - 1) * (low - high)) ** RHO for i in range(calls))


def told(sigma: Tensor) -> Tensor:
    """c_noise = log σ / 4, how the network is told of the noise."""
    return sigma.log() / 4


def scaled_input(x: Tensor, sigma: Tensor) -> Tensor:
    """c_in x: unit variance whatever the noise."""
    return x * (sigma**2 + 1).rsqrt().to(x.dtype)


def denoised(x: Tensor, output: Tensor, sigma: Tensor) -> Tensor:
    """D(x; σ) = c_skip x + c_out F."""
    c_skip, c_out = 1 / (sigma**2 + 1), sigma * (sigma**2 + 1).rsqrt()
    return c_skip.to(x.dtype) * x + c_out.to(x.dtype) * output


def weight(sigma: Tensor) -> Tensor:
    """λ(σ) = (σ² + σ_data²) / (σ σ_data)²: the network's own error, whatever the noise."""
    return (sigma**2 + 1) / sigma**2


def multistep(x: Tensor, d: Tensor, before: tuple[Tensor, Tensor] | None, sigma_t: Tensor, sigma_s: Tensor) -> Tensor:
    """x at σ_s by DPM-Solver++ (2M) (Lu et al. 2022, alg. 2); `before` is the last step's D and its step in −log σ."""
    ratio = (sigma_s / sigma_t).to(x.dtype)
    if before is not None:
        step = sigma_t.log() - sigma_s.log()
        r = (before[1] / step).to(x.dtype)
        d = d + (d - before[0]) / (2 * r)
    return ratio * x + (1 - ratio) * d


def euler(x: Tensor, d: Tensor, before: tuple[Tensor, Tensor] | None, sigma_t: Tensor, sigma_s: Tensor) -> Tensor:
    """x at σ_s by one Euler step."""
    return d + (x - d) * (sigma_s / sigma_t).to(x.dtype)
