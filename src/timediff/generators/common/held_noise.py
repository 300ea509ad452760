"""Noise of which a part lasts."""

import torch
from torch import Tensor


def holding(z: Tensor, fraction: float) -> Tensor:
    """Noise (B, L, n) of which a fraction is that of the first step throughout: a level, beside what happens."""
    held = round(fraction * z.shape[-1])
    return torch.cat([z[:, :1, :held].expand(-1, z.shape[1], -1), z[..., held:]], dim=-1)
