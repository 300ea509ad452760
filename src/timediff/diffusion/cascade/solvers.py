"""Solvers of the probability-flow ODE, and one of its SDE: plain functions with one signature.

Each takes a denoiser D(x; σ), x at the first noise level, the levels (n + 1,) in double, the last of which is 0, and a
noise source, and returns x at σ = 0.
"""

import math
from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from timediff.diffusion.process import NoiseSource

Denoise = Callable[[Tensor, Tensor], Tensor]  # x (B, L, P_r) and σ (1,) → D(x; σ)


class Solver(Protocol):
    def __call__(self, denoise: Denoise, x: Tensor, sigmas: Tensor, noise: NoiseSource, /) -> Tensor: ...


SECOND_ORDER = "calls_per_level"


def second_order(solver: Solver) -> Solver:
    """Marks a solver that calls the denoiser twice a level, but for the last: it gets half as many levels."""
    setattr(solver, SECOND_ORDER, 2)
    return solver


def levels_for(solver: Solver, calls: int) -> int:
    """How many noise levels a solver passes in so many calls of the denoiser."""
    return (calls + 1) // 2 if getattr(solver, SECOND_ORDER, 1) == 2 else calls


def calls_for(solver: Solver, levels: int) -> int:
    return 2 * levels - 1 if getattr(solver, SECOND_ORDER, 1) == 2 else levels


def euler(denoise: Denoise, x: Tensor, sigmas: Tensor, noise: NoiseSource) -> Tensor:
    """Euler's method."""
    for i in range(len(sigmas) - 1):
        x = _euler_step(x, denoise(x, sigmas[i : i + 1]), sigmas[i : i + 1], sigmas[i + 1 : i + 2])
    return x


def multistep(denoise: Denoise, x: Tensor, sigmas: Tensor, noise: NoiseSource) -> Tensor:
    """DPM-Solver++ (2M) (Lu et al. 2022, alg. 2)."""
    before: tuple[Tensor, Tensor] | None = None  # the last step's D, and its step in −log σ
    last = len(sigmas) - 2
    for i in range(last + 1):
        sigma_t, sigma_s = sigmas[i : i + 1], sigmas[i + 1 : i + 2]
        d = denoise(x, sigma_t)
        if i == last:
            return d
        ratio, step, extrapolated = (sigma_s / sigma_t).to(x.dtype), sigma_t.log() - sigma_s.log(), d
        if before is not None:
            r = (before[1] / step).to(x.dtype)
            extrapolated = d + (d - before[0]) / (2 * r)
        x, before = ratio * x + (1 - ratio) * extrapolated, (d, step)
    return x


@second_order
def heun(denoise: Denoise, x: Tensor, sigmas: Tensor, noise: NoiseSource) -> Tensor:
    """Heun's second-order method (Karras et al. 2022, alg. 1)."""
    for i in range(len(sigmas) - 1):
        x = _heun_step(denoise, x, sigmas[i : i + 1], sigmas[i + 1 : i + 2], last=i == len(sigmas) - 2)
    return x


@second_order
def stochastic(
    denoise: Denoise, x: Tensor, sigmas: Tensor, noise: NoiseSource,
    s_churn: float = 40.0, s_min: float = 0.05, s_max: float = 50.0, s_noise: float = 1.003,
) -> Tensor:  # fmt: skip
    """Heun's method with noise added before each step (Karras et al. 2022, alg. 2, their ImageNet settings)."""
    n = len(sigmas) - 1
    gamma = min(s_churn / n, math.sqrt(2) - 1)
    for i, sigma in enumerate(sigmas[:-1].tolist()):
        sigma_t, raised = sigmas[i : i + 1], gamma if s_min <= sigma <= s_max else 0.0
        sigma_hat = sigma_t * (1 + raised)
        if raised:
            extra = (sigma_hat**2 - sigma_t**2).sqrt().to(x.dtype)
            x = x + extra * s_noise * noise.normal(*x.shape[1:])
        x = _heun_step(denoise, x, sigma_hat, sigmas[i + 1 : i + 2], last=i == n - 1)
    return x


def _euler_step(x: Tensor, d: Tensor, sigma_t: Tensor, sigma_s: Tensor) -> Tensor:
    return d + (x - d) * (sigma_s / sigma_t).to(x.dtype)


def _heun_step(denoise: Denoise, x: Tensor, sigma_t: Tensor, sigma_s: Tensor, *, last: bool) -> Tensor:
    d = denoise(x, sigma_t)
    x_s = _euler_step(x, d, sigma_t, sigma_s)
    if last:  # at σ = 0 there is no slope to average with
        return x_s
    slope = (x - d) / sigma_t.to(x.dtype)
    slope_s = (x_s - denoise(x_s, sigma_s)) / sigma_s.to(x.dtype)
    return x + (sigma_s - sigma_t).to(x.dtype) * (slope + slope_s) / 2
