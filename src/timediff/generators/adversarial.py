"""What adversarial rivals share: a discriminator's logits as losses of either side."""

import torch
from torch import Tensor
from torch.nn.functional import softplus


def called_real(logits: Tensor) -> Tensor:
    """Cross-entropy of answers that should have been "real"."""
    return softplus(-logits.float()).mean()


def called_fake(logits: Tensor) -> Tensor:
    return softplus(logits.float()).mean()


def accuracy(real: Tensor, fake: Tensor) -> Tensor:
    """Share of right answers, as many of either kind."""
    return torch.cat([(real > 0).flatten(), (fake <= 0).flatten()]).float().mean()
