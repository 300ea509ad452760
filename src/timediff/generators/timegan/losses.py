"""The losses of TimeGAN, with the weights of the authors' published code."""

import torch
from torch import Tensor
from torch.nn.functional import mse_loss

from timediff.generators.common.adversarial import loss_if_fake, loss_if_real

GAMMA = 1.0  # of the generator's series before the supervisor, beside those after it
ETA = 100.0  # of the root of the supervised loss, for generator and supervisor; 10 in the paper, without a root
MOMENTS = 100.0
LAMBDA = 0.1  # of the supervised loss, for the embedder
RECOVERY = 10.0  # of the root of the error of recovery
ENOUGH = 0.15  # a discriminator with a lower loss waits


def root(loss: Tensor) -> Tensor:
    return (loss + 1e-12).sqrt()  # whose slope at 0 is finite


def supervised_loss(expected: Tensor, h: Tensor) -> Tensor:
    """The squared error of latent steps (B, L, hidden) from what was expected after the steps before them."""
    return mse_loss(expected[:, :-1], h[:, 1:])


def moment_loss(made: Tensor, x: Tensor) -> Tensor:
    """How far means and standard deviations over the batch are apart, at each step and of each column."""

    def moments(series: Tensor) -> tuple[Tensor, Tensor]:
        return series.mean(dim=0), (series.var(dim=0, correction=0) + 1e-6).sqrt()

    (mean, std), (wanted_mean, wanted_std) = moments(made), moments(x)
    return (mean - wanted_mean).abs().mean() + (std - wanted_std).abs().mean()


def fooling_loss(supervised: Tensor, generated: Tensor) -> Tensor:
    """Of the discriminator's logits of Ĥ and Ê."""
    return loss_if_real(supervised) + GAMMA * loss_if_real(generated)


def discriminator_entropy(logits: Tensor) -> Tensor:
    """Of its logits (3 B, L, 1) of H, Ĥ and Ê."""
    real, supervised, generated = torch.chunk(logits, 3)
    return loss_if_real(real) + loss_if_fake(supervised) + GAMMA * loss_if_fake(generated)
