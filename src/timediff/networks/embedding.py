"""The step embedding: which diffusion step a network is looking at."""

import math

import torch
from torch import Tensor, nn


def sinusoidal(t: Tensor, width: int) -> Tensor:
    """(B,) → (B, width): sines and cosines of geometrically spaced frequencies (Vaswani et al. 2017)."""
    half = width // 2
    rates = torch.exp(torch.arange(half, device=t.device) * (-math.log(10_000) / (half - 1)))
    angles = t[:, None].float() * rates
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


class StepEmbedding(nn.Module):
    """Sinusoidal 64 → 256 → GELU → 256 → SiLU → `width`."""

    def __init__(self, width: int, inner: int = 64, outer: int = 256) -> None:
        super().__init__()
        self.inner = inner
        self.layers = nn.Sequential(
            nn.Linear(inner, outer), nn.GELU(), nn.Linear(outer, outer), nn.SiLU(), nn.Linear(outer, width)
        )

    def forward(self, t: Tensor) -> Tensor:
        embedded: Tensor = self.layers(sinusoidal(t, self.inner))
        return embedded
