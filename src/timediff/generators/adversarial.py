"""What adversarial rivals share: noise, a discriminator's logits as losses of either side, and what keeps it smooth."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

from timediff.randomness import Noise

NUDGE = 0.005  # of columns, which reach from −1 to 1


def holding(z: Tensor, share: float) -> Tensor:
    """Noise (B, L, n) of which a share is that of the first step throughout: a level, beside what happens."""
    held = round(share * z.shape[-1])
    return torch.cat([z[:, :1, :held].expand(-1, z.shape[1], -1), z[..., held:]], dim=-1)


def called_real(logits: Tensor) -> Tensor:
    """Cross-entropy of answers that should have been "real"."""
    return softplus(-logits.float()).mean()


def called_fake(logits: Tensor) -> Tensor:
    return softplus(logits.float()).mean()


def accuracy(real: Tensor, fake: Tensor) -> Tensor:
    """Share of right answers, as many of either kind."""
    return torch.cat([(real > 0).flatten(), (fake <= 0).flatten()]).float().mean()


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
