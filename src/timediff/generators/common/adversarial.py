"""Adversarial training: a discriminator's logits as losses of either side, and its gradient penalty."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from timediff.generators.common.settings import AdversarialSettings
from timediff.runtime.randomness import Noise
from timediff.training.objective import LossFunction, Objective

EPSILON = 0.005  # of the finite difference, for columns and states that reach from about −1 to 1


def loss_if_real(logits: Tensor) -> Tensor:
    """Cross-entropy of logits of stays whose class should be "real"."""
    return softplus(-logits.float()).mean()


def loss_if_fake(logits: Tensor) -> Tensor:
    return softplus(logits.float()).mean()


def accuracy(real: Tensor, fake: Tensor) -> Tensor:
    """Fraction of right classes, from as many logits of either kind."""
    return torch.cat([(real > 0).flatten(), (fake <= 0).flatten()]).float().mean()


def discriminator_objective(
    loss: LossFunction, settings: AdversarialSettings, modules: tuple[str, ...] = ("discriminator",), *,
    lr: float = 1.0, first: int = 0,
) -> Objective:  # fmt: skip
    """Of a discriminator: its optimizer, its learning rate and its optimizer steps are as set."""
    return Objective(
        loss, "discriminator", modules, lr * settings.lr, settings.rounds, first=first, optimizer=settings.optimizer
    )


class DiscriminatorOutput(NamedTuple):
    real: Tensor  # logits
    fake: Tensor
    losses: dict[str, Tensor]  # "total" is the cross-entropy, and the weighted penalty


def discriminator_loss(
    discriminator: Callable[[Tensor], Tensor], series: Tensor, noise: Noise, penalty_weight: float
) -> DiscriminatorOutput:
    """Of a discriminator that should call the first half of the series real, and the others fake."""
    logits, penalty = with_penalty(discriminator, series, noise, penalty_weight)
    real, fake = logits.chunk(2)
    entropy = loss_if_real(real) + loss_if_fake(fake)
    losses = {"total": entropy + penalty_weight * penalty, "entropy": entropy, "penalty": penalty}
    return DiscriminatorOutput(real, fake, losses)


def with_penalty(
    discriminator: Callable[[Tensor], Tensor], series: Tensor, noise: Noise, penalty_weight: float
) -> tuple[Tensor, Tensor]:
    """A discriminator's logits, and its gradient penalty there, which is not computed where it has no weight."""
    if not penalty_weight:
        logits = discriminator(series)
        return logits, torch.zeros((), device=series.device)
    logits, moved = discriminator(torch.cat([series, perturbed(series, noise)])).chunk(2)
    return logits, gradient_penalty(logits, moved)


def perturbed(series: Tensor, noise: Noise) -> Tensor:
    """Series of B stays, and of as many made ones, once or more often (n B, L, P), each moved in a random direction."""
    directions = [noise.normal(*series.shape[1:]) for _ in range(len(series) // noise.total)]
    return series + EPSILON * torch.cat(directions)


def gradient_penalty(logits: Tensor, moved: Tensor) -> Tensor:
    """The squared slope of a stay's mean logit, from logits (B, …) of stays and of the same, perturbed.

    On average it is the squared norm of the gradient (Mescheder et al. 2018, R1 and R2), which cuDNN's RNNs could not
    take part in: it would have to be differentiated once more.
    """
    return ((moved - logits).float().flatten(1).mean(dim=1) / EPSILON).square().mean()
