"""The losses of EHR-M-GAN, each by itself."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize, softplus

SMALLEST = 1e-6  # under a root


def kl_divergence(mean: Tensor, log_std: Tensor) -> Tensor:
    """KL(N(mean, std²) ‖ N(0, 1)) of steps (B, L, latent), summed over latent columns, (B, L)."""
    return ((2 * log_std).exp() + mean.square() - 1 - 2 * log_std).sum(dim=2) / 2


def contrastive(one: Tensor, other: Tensor, *, cosine: bool) -> Tensor:
    """NT-Xent (Chen et al. 2020): of all latent series of both kinds, a stay's other one should be the most alike."""
    both = torch.cat([one, other]).flatten(1)
    if cosine:
        both = normalize(both, dim=-1)
    stays = len(one)
    itself = torch.eye(2 * stays, dtype=torch.bool, device=both.device)
    logits = (both @ both.T).float().masked_fill(itself, -1e9)
    # Each row's class is the same stay in the other half.
    places = torch.arange(2 * stays, device=both.device).roll(stays)
    return 2 * cross_entropy(logits, places)


def moment_gap(made: Tensor, real: Tensor, *, rooted: bool) -> Tensor:
    """How far stds and means over a batch are apart, step by step and column by column; `rooted`: √|mean|."""

    def moments(x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.float()
        mean = x.mean(dim=0)
        return (x.var(dim=0, correction=0) + SMALLEST).sqrt(), (mean.abs() + SMALLEST).sqrt() if rooted else mean

    return sum(((a - b).abs().mean() for a, b in zip(moments(made), moments(real), strict=True)), made.new_zeros(()))


def smoothed_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy with targets that need not be 0 or 1, and may lie beyond."""
    logits = logits.float()
    return (softplus(logits) - targets * logits).mean()
