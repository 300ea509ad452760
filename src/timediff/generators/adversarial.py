"""What adversarial rivals share: a discriminator's logits as losses of either side, and what keeps it smooth."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from timediff.randomness import Noise

NUDGE = 0.005  # of columns, which reach from −1 to 1


def called_real(logits: Tensor) -> Tensor:
    """Cross-entropy of answers that should have been "real"."""
    return softplus(-logits.float()).mean()


def called_fake(logits: Tensor) -> Tensor:
    return softplus(logits.float()).mean()


def accuracy(real: Tensor, fake: Tensor) -> Tensor:
    """Share of right answers, as many of either kind."""
    return torch.cat([(real > 0).flatten(), (fake <= 0).flatten()]).float().mean()


def nudged(series: Tensor, noise: Noise) -> Tensor:
    """Series of B stays and as many made ones (2 B, L, P), each moved a little in a random direction."""
    directions = [noise.normal(*series.shape[1:]) for _ in range(2)]
    return series + NUDGE * torch.cat(directions)


def roughness(logits: Tensor, moved: Tensor) -> Tensor:
    """The squared slope of a stay's mean logit, from logits (B, …) of stays and of the same, nudged.

    On average it is the squared norm of the gradient (Mescheder et al. 2018, R1 and R2), which cuDNN's RNNs could not
    take part in: it would have to be differentiated once more.
    """
    return ((moved - logits).float().flatten(1).mean(dim=1) / NUDGE).square().mean()
