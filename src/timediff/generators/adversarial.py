"""What adversarial rivals share: a discriminator's logits as losses of either side, and what keeps it smooth."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from timediff.randomness import Noise

NUDGE = 0.005  # of columns and states that reach from about −1 to 1


def called_real(logits: Tensor) -> Tensor:
    """Cross-entropy of answers that should have been "real"."""
    return softplus(-logits.float()).mean()


def called_fake(logits: Tensor) -> Tensor:
    return softplus(logits.float()).mean()


def accuracy(real: Tensor, fake: Tensor) -> Tensor:
    """Share of right answers, as many of either kind."""
    return torch.cat([(real > 0).flatten(), (fake <= 0).flatten()]).float().mean()


class Contest(NamedTuple):
    real: Tensor  # logits
    fake: Tensor
    losses: dict[str, Tensor]  # of the discriminator: "total" is what it "told", and its weighted roughness


def contested(discriminator: Callable[[Tensor], Tensor], series: Tensor, noise: Noise, smooth: float) -> Contest:
    """A discriminator should call the first half of the series real, and the others fake."""
    logits, rough = examined(discriminator, series, noise, smooth)
    real, fake = logits.chunk(2)
    told = called_real(real) + called_fake(fake)
    return Contest(real, fake, {"total": told + smooth * rough, "told": told, "rough": rough})


def examined(
    discriminator: Callable[[Tensor], Tensor], series: Tensor, noise: Noise, smooth: float
) -> tuple[Tensor, Tensor]:
    """A discriminator's logits, and its roughness there, which is not computed where it has no weight."""
    if not smooth:
        logits = discriminator(series)
        return logits, torch.zeros((), device=series.device)
    logits, moved = discriminator(torch.cat([series, nudged(series, noise)])).chunk(2)
    return logits, roughness(logits, moved)


def nudged(series: Tensor, noise: Noise) -> Tensor:
    """Series of B stays and of as many made ones, once or more often (n B, L, P), each moved in a random direction."""
    directions = [noise.normal(*series.shape[1:]) for _ in range(len(series) // noise.total)]
    return series + NUDGE * torch.cat(directions)


def roughness(logits: Tensor, moved: Tensor) -> Tensor:
    """The squared slope of a stay's mean logit, from logits (B, …) of stays and of the same, nudged.

    On average it is the squared norm of the gradient (Mescheder et al. 2018, R1 and R2), which cuDNN's RNNs could not
    take part in: it would have to be differentiated once more.
    """
    return ((moved - logits).float().flatten(1).mean(dim=1) / NUDGE).square().mean()
