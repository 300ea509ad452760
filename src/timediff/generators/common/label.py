"""The label as a condition: which channel it is, how often each class occurs, and its columns at every step."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.runtime.randomness import Noise


def label_channel(codec: Codec) -> int | None:
    """The discrete channel with the label's values; a constant label has none."""
    named = [
        i
        for i, channel in enumerate(codec.layout.discrete)
        if codec.schema[channel.feature].role == "label" and channel.part == "value"
    ]
    return named[0] if named else None


def label_rates(data: Batch, channel: int, classes: int) -> Tensor:
    """Of the training stays, (K,)."""
    counts = data.discrete[:, 0, channel].long().bincount(minlength=classes)
    return counts / counts.sum()


def sampled_label(rates: Tensor, noise: Noise) -> Tensor:
    """(B,) classes at these rates."""
    edges = rates.cumsum(0)
    return torch.searchsorted(edges, noise.uniform()).clamp(max=len(edges) - 1)


def label_columns(label: Tensor, classes: int, length: int) -> Tensor:
    """(B,) classes → (B, L, columns), as `Columns` has them."""
    hot = 2 * one_hot(label, classes).float() - 1
    known = hot[:, 1:] if classes == 2 else hot
    return known[:, None].expand(-1, length, -1)
