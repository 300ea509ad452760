"""Discrete channels in groups of the same K: no padding, and no loop over channels."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from timediff.data.batch import OneHot


class ClassGroup(nn.Module):
    """Channels with K classes, so that their distributions are one dense (…, n, K) tensor."""

    channels: Tensor  # (n,) positions among the discrete channels
    columns: Tensor  # (n · K,) positions among the ΣK one-hot columns

    def __init__(self, k: int, one_hot: OneHot) -> None:
        super().__init__()
        self.k, self.alone = k, set(one_hot.classes) == {k}
        channels = torch.tensor([i for i, other in enumerate(one_hot.classes) if other == k])
        self.register_buffer("channels", channels, persistent=False)
        self.register_buffer("columns", torch.isin(one_hot.owner, channels).nonzero()[:, 0], persistent=False)

    def logits(self, output: Tensor) -> Tensor:
        """Of all one-hot columns (B, L, ΣK) those of this group, (B, L, n, K)."""
        own = output if self.alone else output[..., self.columns]
        return own.reshape(*own.shape[:-1], -1, self.k)

    def members(self, values: Tensor) -> Tensor:
        """Of something a discrete channel (B, L, P_d) the part (B, L, n)."""
        return values if self.alone else values[..., self.channels]


def class_groups(classes: Sequence[int]) -> nn.ModuleList:
    one_hot = OneHot(classes)
    return nn.ModuleList(ClassGroup(k, one_hot) for k in sorted(set(classes)))
