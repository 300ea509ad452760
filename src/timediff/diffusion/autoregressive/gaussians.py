"""Mixtures of Gaussians, and what they give to an interval.

Logistics have heavier tails: with them, trees told more of the spread of values within a stay.
"""

import math

import torch
from torch import Tensor
from torch.special import log_ndtr, ndtri

LOG_SCALES = -8.0, 2.0  # of a component
STEEPEST = 12.0  # scales from the middle at which a component is 0 or 1
NARROWEST = 1e-5  # scales: the width of an interval, at least


def parameters(output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(…, 3 M) → log-weights, means and log-scales of M components."""
    weights, means, scales = output.float().chunk(3, dim=-1)
    return weights.log_softmax(-1), means, (scales - 0.5).clamp(*LOG_SCALES)


def log_probability(output: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """log p of the interval from low to high (…), or where both are one number its density."""
    weights, means, scales = parameters(output)
    a, b = (((end[..., None] - means) * torch.exp(-scales)).clamp(-STEEPEST, STEEPEST) for end in (low, high))
    wide = (high > low)[..., None]
    inside = _log_difference(a, torch.where(wide, torch.maximum(b, a + NARROWEST), a + 1.0))
    density = -a.square() / 2 - math.log(2 * math.pi) / 2 - scales
    return torch.logsumexp(weights + torch.where(wide, inside, density), dim=-1)


def _log_difference(a: Tensor, b: Tensor) -> Tensor:
    """log(Φ(b) − Φ(a)) of a < b, on the side of 0 where both keep their digits."""
    above = a + b > 0
    a, b = torch.where(above, -b, a), torch.where(above, -a, b)
    log_a, log_b = log_ndtr(a), log_ndtr(b)
    found: Tensor = log_b + torch.log(-torch.expm1((log_a - log_b).clamp(max=-1e-6)))
    return found


def sample(output: Tensor, component: Tensor, place: Tensor) -> Tensor:
    """Numbers (…): `component` (…) and `place` (…), uniform, say which component and where in it."""
    weights, means, scales = parameters(output)
    chosen = (component[..., None] >= weights.exp().cumsum(-1)[..., :-1]).sum(-1, keepdim=True)
    mean, scale = (one.gather(-1, chosen)[..., 0] for one in (means, scales))
    found: Tensor = mean + scale.exp() * ndtri(place.clamp(1e-6, 1 - 1e-6))
    return found
