"""Gaussian diffusion of continuous channels. ᾱ_t and ᾱ_s broadcast against x; ᾱ_s = 1 stands for the data itself."""

from torch import Tensor


def q_sample(x0: Tensor, noise: Tensor, alpha_bar: Tensor) -> Tensor:
    """x_t ~ q(x_t | x_0) = N(√ᾱ x_0, (1 − ᾱ) I), by its noise."""
    return alpha_bar.sqrt().to(x0.dtype) * x0 + (1 - alpha_bar).sqrt().to(x0.dtype) * noise


def predict_x0(x_t: Tensor, noise: Tensor, alpha_bar: Tensor) -> Tensor:
    """x_0 from x_t and its noise: the inverse of `q_sample`."""
    return alpha_bar.rsqrt().to(x_t.dtype) * x_t - (1 / alpha_bar - 1).sqrt().to(x_t.dtype) * noise


def predict_noise(x_t: Tensor, x0: Tensor, alpha_bar: Tensor) -> Tensor:
    """The noise that leads from x_0 to x_t."""
    return (x_t - alpha_bar.sqrt().to(x0.dtype) * x0) * (1 - alpha_bar).rsqrt().to(x0.dtype)


def posterior(x0: Tensor, x_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance β̃ of q(x_s | x_t, x_0); with s = t − 1 the paper's, with any earlier s its strided form."""
    alpha = alpha_bar_t / alpha_bar_s
    of_x0 = alpha_bar_s.sqrt() * (1 - alpha) / (1 - alpha_bar_t)
    of_x_t = alpha.sqrt() * (1 - alpha_bar_s) / (1 - alpha_bar_t)
    variance = (1 - alpha_bar_s) / (1 - alpha_bar_t) * (1 - alpha)
    return of_x0.to(x0.dtype) * x0 + of_x_t.to(x0.dtype) * x_t, variance.to(x0.dtype)


def ddim(x0: Tensor, x_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor) -> Tensor:
    """x_s on the deterministic path from x_t to x_0 (DDIM, Song et al. 2021, eq. 12 with σ = 0)."""
    return q_sample(x0, predict_noise(x_t, x0, alpha_bar_t), alpha_bar_s)
