"""Channels: which columns of a network's input and output are whose, for any mixture of classes."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Group:
    """Discrete channels with the same number of classes, so that their distributions are one dense (…, n, K) tensor."""

    k: int
    channels: Tensor  # (n,) positions among the discrete channels
    columns: Tensor  # (n · K,) positions among the ΣK one-hot columns


class Channels:
    """`continuous` channels, then discrete ones of `classes` classes, one column a class in the network's output."""

    def __init__(self, continuous: int, classes: tuple[int, ...], device: torch.device | str = "cpu") -> None:
        self.continuous, self.classes = continuous, classes
        self.width = continuous + sum(classes)
        owner = torch.repeat_interleave(torch.arange(len(classes)), torch.tensor(classes, dtype=torch.long))
        self.groups = []
        for k in sorted(set(classes)):
            members = torch.tensor([i for i, other in enumerate(classes) if other == k])
            columns = torch.isin(owner, members).nonzero()[:, 0]
            self.groups.append(Group(k, members.to(device), columns.to(device)))

    def logits(self, output: Tensor, group: Group) -> Tensor:
        """The network's logits for one group of channels, (B, L, n, K)."""
        flat = output[..., self.continuous :]
        flat = flat if len(self.groups) == 1 else flat[..., group.columns]
        return flat.reshape(*flat.shape[:-1], -1, group.k)

    def members(self, values: Tensor, group: Group) -> Tensor:
        """The part (B, L, n) of something a discrete channel, (B, L, P_d)."""
        return values if len(self.groups) == 1 else values[..., group.channels]


def one_hot_columns(classes: tuple[int, ...], device: torch.device | str) -> tuple[Tensor, Tensor]:
    """The channel and the class of each one-hot column, (ΣK,) each."""
    owner = torch.repeat_interleave(torch.arange(len(classes)), torch.tensor(classes, dtype=torch.long))
    which = torch.cat([torch.arange(k) for k in classes]) if classes else torch.zeros(0, dtype=torch.long)
    return owner.to(device), which.to(device)
