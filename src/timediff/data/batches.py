"""Cohort → training batches of tensors, for networks and training loops of one's own."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from timediff.data.batch import Batch, Channel
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.runtime.seeding import require_seed, stream
from timediff.settings.training import CodecSettings


@dataclass(frozen=True)
class Batches:
    """All stays as tensors; each pass through it yields `epochs` times every stay, `size` of them at a time.

    A batch has `continuous` (B, L, P_r), `discrete` (B, L, P_d) as class indices, and `lengths` (B,).
    """

    codec: Codec
    data: Batch
    size: int
    epochs: int
    seed: int | None  # of the order of stays; None = as they are in the cohort

    @property
    def continuous(self) -> tuple[str, ...]:
        """The names of continuous channels: a feature each."""
        return tuple(map(_name, self.codec.layout.continuous))

    @property
    def discrete(self) -> tuple[str, ...]:
        """The names of discrete channels: a feature each, or a feature's mask (1 = missing)."""
        return tuple(map(_name, self.codec.layout.discrete))

    @property
    def classes(self) -> tuple[int, ...]:
        """How many classes each discrete channel has."""
        return self.codec.layout.classes

    def __len__(self) -> int:
        """How many batches a pass has; the last of an epoch may be smaller."""
        return self.epochs * -(-len(self.data) // self.size)

    def __iter__(self) -> Iterator[Batch]:
        for epoch in range(self.epochs):
            order = np.arange(len(self.data))
            if self.seed is not None:
                order = stream("order", self.seed, epoch).permutation(order)
            for start in range(0, len(order), self.size):
                yield self.data[torch.from_numpy(order[start : start + self.size])]

    def decode(self, batch: Batch) -> Cohort:
        """The stays of a batch, or what a network made like one, in their units."""
        detached = Batch(batch.continuous.detach(), batch.discrete.detach(), batch.lengths)
        return self.codec.decode(detached.cpu())


def batches(
    cohort: Cohort,
    size: int = 64,
    *,
    epochs: int = 1,
    seed: int | None = 0,
    codec: Codec | CodecSettings | None = None,
) -> Batches:
    """Training batches of a cohort: values scaled to [−1, 1] by the codec, missing ones filled in and masked.

    A codec that was fitted to other stays, such as `model.codec`, may be given; otherwise one is fitted to these.
    """
    if size < 1 or epochs < 1:
        raise TimeDiffError(f"batches of {size} stays, {epochs} epochs: expected at least 1 of each.")
    if seed is not None:
        require_seed(seed)
    fitted = codec if isinstance(codec, Codec) else Codec.fit(cohort, codec)
    return Batches(fitted, fitted.encode(cohort), size, epochs, seed)


def _name(channel: Channel) -> str:
    return channel.feature if channel.part == "value" else f"{channel.feature} ({channel.part})"
