"""The exponential moving average of a network's weights."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class EMA:
    """Keeps `decay` of itself at each update, less at the start, where there is nothing worth keeping yet."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: value.detach().clone() for name, value in network.state_dict().items()}

    @torch.no_grad()
    def update(self, network: nn.Module, updates: int) -> None:
        decay = min(self.decay, (1 + updates) / (10 + updates))
        current = network.state_dict()
        torch._foreach_lerp_(list(self.weights.values()), [current[name] for name in self.weights], 1 - decay)

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        for name, value in self.weights.items():
            value.copy_(weights[name])
