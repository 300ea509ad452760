"""Columns: the channels of a layout as real numbers, for methods that know no others.

A continuous channel is one column in [−1, 1], or a standard normal one where the codec goes by quantiles; one of two
classes is a column of −1 and 1; one of K > 2 classes is K columns, 1 for its class and −1 for the others. What a method
makes of them is rounded to the nearest valid class.
"""

import torch
from torch import Tensor

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.settings import columns_width


class Columns:
    def __init__(self, codec: Codec) -> None:
        self.continuous, self.classes = len(codec.layout.continuous), codec.layout.classes
        self.normal = any(known.quantiles for known in codec.statistics.values())
        self.widths = tuple(1 if k == 2 else k for k in self.classes)  # of each discrete channel
        self.width = columns_width(codec.layout)

    def join(self, x: Tensor, c: Tensor) -> Tensor:
        """Continuous (…, P_r) and classes (…, P_d) → (…, width)."""
        parts = [x]
        for i, k in enumerate(self.classes):
            own = c[..., i, None].long()
            hot = own == 1 if k == 2 else own == torch.arange(k, device=c.device)
            parts.append(2 * hot.to(x.dtype) - 1)
        return torch.cat(parts, dim=-1)

    def of(self, batch: Batch) -> Tensor:
        """The columns of a batch, (B, L, width)."""
        return self.join(batch.continuous, batch.discrete)

    def split(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Back again: the class on whose side, or nearest to which, a number lies."""
        x, *discrete = torch.split(columns, [self.continuous, *self.widths], dim=-1)
        c = [own[..., 0] > 0 if own.shape[-1] == 1 else own.argmax(dim=-1) for own in discrete]
        empty = torch.zeros((*x.shape[:-1], 0), dtype=torch.long, device=x.device)
        return x, torch.stack([one.long() for one in c], dim=-1) if c else empty

    def of_channel(self, number: int) -> slice:
        """The columns of discrete channel `number`."""
        start = self.continuous + sum(self.widths[:number])
        return slice(start, start + self.widths[number])
