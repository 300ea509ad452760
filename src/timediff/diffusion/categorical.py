"""Samples of categorical distributions."""

from torch import Tensor


def sample(log_p: Tensor, uniform: Tensor) -> Tensor:
    """Class indices (…) from log-probabilities (…, K) by inverting the distribution function at `uniform` (…)."""
    below = log_p[..., :-1].exp()
    if below.shape[-1] > 1:
        below = below.cumsum(-1)
    return (uniform.unsqueeze(-1) >= below).sum(-1)
