"""Continuous channels in continuous time (Karras et al. 2022), their noise level tied to one variable u in (0, 1).

Data have unit variance (σ_data = 1). A level u is a quantile of the noise seen in training: log σ(u) is normal, so
levels drawn uniformly are EDM's training distribution, and steps evenly spaced in u are spent where it has its weight.
"""

import math

import torch
from torch import Tensor

P_MEAN, P_STD = -0.6, 1.4  # of log σ; data here are noisier and smaller than images, for which it is −1.2 and 1.2
SIGMA_MIN, SIGMA_MAX = 1e-3, 80.0


def sigma(u: Tensor) -> Tensor:
    """The noise level of u: 0 at u = 0 (as far as single precision goes), the largest at u = 1."""
    normal = math.sqrt(2) * torch.erfinv((2 * u.double() - 1).clamp(-1 + 1e-12, 1 - 1e-12))
    return (P_MEAN + P_STD * normal).exp().clamp(SIGMA_MIN, SIGMA_MAX)


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
