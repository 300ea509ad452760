"""Samplers of the continuous channels: x_s from x_t and the predicted x_0, one function a sampler, for any s < t.

With s = t − 1 throughout it is the paper's; with a subset of the steps the strided form.
"""

from typing import Protocol

from torch import Tensor

from timediff.diffusion.ddpm import gaussian
from timediff.diffusion.process import NoiseSource


class ReverseStep(Protocol):
    def __call__(
        self, x0: Tensor, x_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor, noise: NoiseSource, /
    ) -> Tensor: ...


def ancestral(x0: Tensor, x_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor, noise: NoiseSource) -> Tensor:
    """x_s ~ p_θ(x_s | x_t) (Ho et al. 2020, alg. 2)."""
    mean, variance = gaussian.posterior(x0, x_t, alpha_bar_t, alpha_bar_s)
    return mean + variance.sqrt() * noise.normal(*x_t.shape[1:])


def ddim(x0: Tensor, x_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor, noise: NoiseSource) -> Tensor:
    """The deterministic path (Song et al. 2021); discrete channels take the matching strided posterior."""
    return gaussian.ddim(x0, x_t, alpha_bar_t, alpha_bar_s)
