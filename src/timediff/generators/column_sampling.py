"""Sampling by a network that makes whole stays from noise, as columns: one piece of work on a GPU."""

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.sampling import Compute
from timediff.runtime.cuda_graphs import Captured
from timediff.runtime.devices import CPU_CACHE_STEPS
from timediff.runtime.precision import arithmetic
from timediff.runtime.randomness import Noise


class SamplesColumns(Protocol):
    """What the network of a baseline can do beside training."""

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        """All that is random about stays of `length` steps; the first dimension of each is the stays'."""

    def generate(self, *noise: Tensor, length: int) -> Tensor:
        """The stays, (B, length, columns), that follow from it."""


class Splits(Protocol):
    """What knows which of a network's columns are whose."""

    def split(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        """Columns (…, width) → continuous channels (…, P_r) and classes (…, P_d)."""


class ColumnSampler:
    """Stays from a baseline's network: a CUDA graph on a GPU, a few stays at a time on a CPU."""

    calls = 1

    def __init__(self, network: SamplesColumns, columns: Splits, compute: Compute[Any]) -> None:
        device, length = compute.device, compute.length
        self._network, self._columns, self._length = network, columns, length
        self._rows = max(32, CPU_CACHE_STEPS // length) if device.type == "cpu" else compute.rows

        def generate(*noise: Tensor) -> Tensor:
            with arithmetic(compute.settings.precision if device.type == "cuda" else "float32"):
                return network.generate(*noise, length=length)

        self._generate = Captured(generate, device, enabled=compute.rows is None, say=compute.say)

    def __call__(self, noise: Noise, tick: Callable[[], None]) -> Batch:
        given = self._network.sample_noise(noise, self._length)
        rows = self._rows or noise.total
        parts = [self._generate(*(one[start : start + rows] for one in given)) for start in range(0, noise.total, rows)]
        tick()
        return Batch.of(*self._columns.split(torch.cat(parts).float()))


class Channels:
    """Channels side by side, continuous ones first: how the network gives them."""

    def __init__(self, codec: Codec) -> None:
        self.continuous = len(codec.layout.continuous)

    def split(self, columns: Tensor) -> tuple[Tensor, Tensor]:
        return columns[..., : self.continuous], columns[..., self.continuous :].long()
