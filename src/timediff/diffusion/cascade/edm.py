"""EDM (Karras et al. 2022) for data of unit variance (σ_data = 1): noise levels, preconditioning and weight."""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

P_MEAN, P_STD = -1.2, 1.6  # of log σ in training; wider than for images (1.2): series are smooth, their details small
SIGMA_MIN, SIGMA_MAX, RHO = 2e-3, 80.0, 7.0


def training_sigma(u: Tensor) -> Tensor:
    """The noise level to train at, for u in (0, 1): its logarithm is normal."""
    normal = math.sqrt(2) * torch.erfinv((2 * u.double() - 1).clamp(-1 + 1e-12, 1 - 1e-12))
    return (P_MEAN + P_STD * normal).exp().clamp(SIGMA_MIN, SIGMA_MAX)


def sigma_steps(n: int) -> tuple[float, ...]:
    """n noise levels of a sampler, from σ_max to σ_min, dense where there is little noise (eq. 5, ρ = 7)."""
    high, low = SIGMA_MAX ** (1 / RHO), SIGMA_MIN ** (1 / RHO)
    return tuple((high + i / max(1, n - 1) * (low - high)) ** RHO for i in range(n))


def weight(sigma: Tensor) -> Tensor:
    """λ(σ) = (σ² + σ_data²) / (σ σ_data)²: the network's own error, whatever the noise."""
    return (sigma**2 + 1) / sigma**2


def c_noise(sigma: Tensor) -> Tensor:
    """log σ / 4."""
    return sigma.log() / 4


class NetworkOutput(NamedTuple):
    values: Tensor  # F: (B, L, P_r)
    head: Tensor  # what the head of the discrete stage starts from, (B, L, its width)


class EDMPrecond:
    """D(x; σ) = c_skip x + c_out F(c_in x; c_noise) for any network F (eq. 7)."""

    def __init__(self, network: Callable[[Tensor, Tensor], NetworkOutput]) -> None:
        self.network = network

    def __call__(self, x: Tensor, sigma: Tensor) -> NetworkOutput:
        """x (B, L, P_r) and σ, in double, that broadcasts against it."""
        c_skip, c_out, c_in = 1 / (sigma**2 + 1), sigma * (sigma**2 + 1).rsqrt(), (sigma**2 + 1).rsqrt()
        output = self.network(x * c_in.to(x.dtype), c_noise(sigma.flatten()))
        return output._replace(values=c_skip.to(x.dtype) * x + c_out.to(x.dtype) * output.values)
