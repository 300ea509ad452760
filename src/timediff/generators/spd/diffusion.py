"""How much noise there is when, and the way back: diffusion of whitened series w = L⁻¹ x, whose noise is white.

What diffuses is the series: x_t = √ᾱ x_0 + √(1 − ᾱ) L z, with L Lᵀ the covariance of a process over its times. Whitened
it is w_t = √ᾱ w_0 + √(1 − ᾱ) z, for which posteriors and solvers are those of white noise. The covariance by which the
reverse SDE multiplies the score is in the whitening.
"""

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from timediff.diffusion.cascade import solvers
from timediff.diffusion.cascade.edm import RHO
from timediff.diffusion.ddpm import gaussian
from timediff.diffusion.ddpm.schedules import subset
from timediff.diffusion.process import NoiseSource

Denoise = Callable[[Tensor, Tensor], Tensor]  # w_t (B, L, P) and ᾱ (1,), in double → the predicted w_0
SDE_STEPS = 100  # where their number is unset


class DiffusionTime(nn.Module):
    """Diffusion time, as a number from 0 to 1 or as steps; ᾱ falls with it."""

    def draw(self, noise: NoiseSource) -> tuple[Tensor, Tensor]:
        """Times to train at, as the network is told them, (B,), and their ᾱ in double."""
        return self.fraction(noise.uniform())

    @abstractmethod
    def fraction(self, u: Tensor) -> tuple[Tensor, Tensor]:
        """The same at fractions u (B,) of all times, from 0 to but not including 1."""

    @abstractmethod
    def at(self, alpha_bar: Tensor) -> Tensor:
        """The time at which there is so much noise, as the network is told it."""

    @abstractmethod
    def uniform(self, calls: int | None) -> Tensor:
        """ᾱ of `calls` evenly spaced times, the latest first, in double."""

    @abstractmethod
    def spaced(self, calls: int | None) -> Tensor:
        """ᾱ of about `calls` times from the latest to the earliest, dense where there is little noise."""


class ContinuousTime(DiffusionTime):
    """CSPD: dx = −½ β(s) x ds + √β(s) L dW with β(s) linear, so that ᾱ(s) = exp(−∫β) (Song et al. 2021, VP)."""

    TOLD = 1000.0  # the network is told s as of so many steps
    EARLIEST = 1e-3  # of a solver whose steps grow with s

    def __init__(self, beta_start: float, beta_end: float) -> None:
        super().__init__()
        self.start, self.rise = beta_start, beta_end - beta_start

    def alpha_bar(self, s: Tensor) -> Tensor:
        return (-(self.start * s + self.rise * s.square() / 2)).exp()

    def fraction(self, u: Tensor) -> tuple[Tensor, Tensor]:
        s = u.double()
        return (self.TOLD * s).float(), self.alpha_bar(s)

    def at(self, alpha_bar: Tensor) -> Tensor:
        integral = -alpha_bar.log()
        root = (self.start**2 + 2 * self.rise * integral).sqrt()
        return (self.TOLD * 2 * integral / (self.start + root)).float()

    def uniform(self, calls: int | None) -> Tensor:
        calls = calls or SDE_STEPS
        return self.alpha_bar(torch.arange(calls, 0, -1, dtype=torch.float64) / calls)

    def spaced(self, calls: int | None) -> Tensor:
        ends = self.alpha_bar(torch.tensor([1.0, self.EARLIEST], dtype=torch.float64))
        return _dense(ends, calls or SDE_STEPS)


class DiscreteTime(DiffusionTime):
    """DSPD: T steps, β linear."""

    table: Tensor  # (T,): ᾱ, in double

    def __init__(self, beta_start: float, beta_end: float, steps: int) -> None:
        super().__init__()
        beta = torch.linspace(beta_start, beta_end, steps, dtype=torch.float64) / steps
        self.register_buffer("table", (1 - beta).cumprod(0), persistent=False)

    def fraction(self, u: Tensor) -> tuple[Tensor, Tensor]:
        steps = len(self.table)
        t = (u.double() * steps).long().clamp(max=steps - 1)  # in double: float32 · T could round up to T itself
        return t.float(), self.table[t]

    def at(self, alpha_bar: Tensor) -> Tensor:
        return (self.table - alpha_bar[:, None]).abs().argmin(dim=1).float()

    def uniform(self, calls: int | None) -> Tensor:
        return self.table[subset(len(self.table), calls)]

    def spaced(self, calls: int | None) -> Tensor:
        wanted = _dense(self.table[[-1, 0]].cpu(), calls or len(self.table)).to(self.table.device)
        steps = (self.table.log() - wanted[:, None].log()).abs().argmin(dim=1)
        return self.table[torch.unique(steps).flip(0)]


def _dense(ends: Tensor, calls: int) -> Tensor:
    """ᾱ between two, at noise levels σ = √(1 / ᾱ − 1) spaced as by Karras et al. 2022, eq. 5."""
    high, low = (1 / ends - 1).sqrt() ** (1 / RHO)
    sigma = (high + torch.arange(calls) / max(1, calls - 1) * (low - high)) ** RHO
    level: Tensor = 1 / (1 + sigma**2)
    return level


def ancestral(denoise: Denoise, w: Tensor, levels: Tensor, noise: NoiseSource) -> Tensor:
    """Of all or some of the T steps, each with variance β (Ho et al. 2020, alg. 2)."""
    for i in range(len(levels)):
        level = levels[i : i + 1]
        w0 = denoise(w, level)
        if i == len(levels) - 1:
            return w0
        mean, _ = gaussian.posterior(w0, w, level, levels[i + 1 : i + 2])
        w = mean + (1 - level / levels[i + 1]).sqrt().to(w.dtype) * noise.normal(*w.shape[1:])
    return w


def sde(denoise: Denoise, w: Tensor, levels: Tensor, noise: NoiseSource) -> Tensor:
    """Euler and Maruyama's method for the reverse SDE, in time ∫β; the last step is the predicted w_0."""
    for i in range(len(levels)):
        level = levels[i : i + 1]
        w0 = denoise(w, level)
        if i == len(levels) - 1:
            return w0
        step = (levels[i + 1] / level).log()
        score = (level.sqrt().to(w.dtype) * w0 - w) / (1 - level).to(w.dtype)
        w = w + step.to(w.dtype) * (w / 2 + score) + step.sqrt().to(w.dtype) * noise.normal(*w.shape[1:])
    return w


def multistep(denoise: Denoise, w: Tensor, levels: Tensor, noise: NoiseSource) -> Tensor:
    """The probability-flow ODE by DPM-Solver++ (2M), which is the same for w / √ᾱ at noise level σ = √(1 / ᾱ − 1)."""

    def scaled(x: Tensor, sigma: Tensor) -> Tensor:
        level = 1 / (1 + sigma**2)
        return denoise(x * level.sqrt().to(x.dtype), level)

    sigmas = torch.cat([(1 / levels - 1).sqrt(), levels.new_zeros(1)])
    return solvers.multistep(scaled, w / levels[0].sqrt().to(w.dtype), sigmas, noise)


SAMPLERS = {"ancestral": ancestral, "sde": sde, "multistep": multistep}


def levels_for(time: DiffusionTime, sampler: str, calls: int | None) -> Tensor:
    """ᾱ at which a sampler calls the network."""
    return time.spaced(calls) if sampler == "multistep" else time.uniform(calls)
