"""Which diffusion step a network is looking at: the step embedding, and the norm that it scales and shifts."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm


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


class ModulatedNorm(nn.LayerNorm):
    """norm(h) · (1 + scale) + shift; the norm's own weights join scale and shift, of which there are fewer."""

    def __init__(self, width: int) -> None:
        super().__init__(width)

    def forward(self, h: Tensor, scale: Tensor, shift: Tensor) -> Tensor:  # type: ignore[override]
        """(L, B, width), and (B, width) each."""
        weight, bias = self.folded(scale, shift)
        return torch.addcmul(bias, layer_norm(h, self.normalized_shape, eps=self.eps), weight)

    def folded(self, scale: Tensor, shift: Tensor) -> tuple[Tensor, Tensor]:
        """The weight and bias that do both."""
        scale, shift = scale.to(self.weight.dtype), shift.to(self.weight.dtype)
        return self.weight * (scale + 1), self.bias * (scale + 1) + shift
