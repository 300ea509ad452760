"""The exponential moving average of a network's weights."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn


class EMA:
    """Keeps `decay` of itself at each update, less at the start, where there is nothing worth keeping yet."""

    def __init__(self, network: nn.Module, decay: float) -> None:
        self.decay = decay
        self.weights = {name: value.detach().clone() for name, value in network.state_dict().items()}

    def rate(self, updates: int) -> float:
        """How much of the new weights goes in after so many updates of the average."""
        return 1 - min(self.decay, (1 + updates) / (10 + updates))

    @torch.no_grad()
    def update(self, network: nn.Module, rate: Tensor) -> None:
        current, kept = network.state_dict(), list(self.weights.values())
        change = torch._foreach_sub([current[name] for name in self.weights], kept)
        torch._foreach_mul_(change, rate)
        torch._foreach_add_(kept, change)

    @torch.no_grad()
    def load(self, weights: Mapping[str, Tensor]) -> None:
        for name, value in self.weights.items():
            value.copy_(weights[name])
