"""Mixtures of logistic distributions, and what they give to an interval (PixelCNN++: Salimans et al. 2017)."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

LOG_SCALES = -8.0, 2.0  # of a component
STEEPEST = 40.0  # scales from the middle at which a logistic is 0 or 1
NARROWEST = 1e-6  # scales: the width of an interval, at least


def parameters(output: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(…, 3 M) → log-weights, means and log-scales of M components."""
    weights, means, scales = output.float().chunk(3, dim=-1)
    return weights.log_softmax(-1), means, (scales - 1).clamp(*LOG_SCALES)


def log_probability(output: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """log p of the interval from low to high (…), or where both are one number its density."""
    weights, means, scales = parameters(output)
    per_scale = torch.exp(-scales)
    a, b = (((end[..., None] - means) * per_scale).clamp(-STEEPEST, STEEPEST) for end in (low, high))
    # σ(b) − σ(a) = (1 − e^−(b − a)) σ(b) (1 − σ(a)), which keeps its digits far out.
    inside = torch.log(-torch.expm1(-(b - a).clamp(min=NARROWEST))) - softplus(a) - softplus(-b)
    density = -a - 2 * softplus(-a) - scales
    return torch.logsumexp(weights + torch.where((high > low)[..., None], inside, density), dim=-1)


def sample(output: Tensor, component: Tensor, place: Tensor) -> Tensor:
    """Numbers (…): `component` (…) and `place` (…), uniform, say which component and where in it."""
    weights, means, scales = parameters(output)
    chosen = (component[..., None] >= weights.exp().cumsum(-1)[..., :-1]).sum(-1, keepdim=True)
    mean, scale = (one.gather(-1, chosen)[..., 0] for one in (means, scales))
    place = place.clamp(1e-6, 1 - 1e-6)
    return mean + scale.exp() * (place.log() - (-place).log1p())
