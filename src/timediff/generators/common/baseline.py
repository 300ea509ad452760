"""Baseline: a generator to compare with. Its network sees a stay as real columns, and makes it from noise."""

from collections.abc import Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators.common.columns import Columns
from timediff.generators.common.settings import BaselineCompute, BaselineSettings
from timediff.generators.neural import NeuralGenerator
from timediff.generators.sampling import BatchSampler, Compute
from timediff.runtime.cuda_graphs import Captured
from timediff.runtime.devices import CPU_CACHE_STEPS
from timediff.runtime.precision import arithmetic
from timediff.runtime.randomness import Noise

R = TypeVar("R", bound=BaselineSettings)


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

    def __init__(self, network: SamplesColumns, columns: Splits, compute: Compute[BaselineCompute]) -> None:
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


class Baseline(NeuralGenerator[R], Generic[R]):
    min_steps: ClassVar[int] = 1  # that it can be trained on

    def _sized_for(self, cohort: Cohort) -> Codec:
        if cohort.schema.steps < self.min_steps:
            raise TimeDiffError(
                f"the stays have {cohort.schema.steps} step; {self.name} learns how one step follows from another, and "
                f"needs at least {self.min_steps}."
            )
        return super()._sized_for(cohort)

    @property
    def hidden(self) -> int:
        """Units of a layer."""
        assert self.settings.model.hidden is not None
        return self.settings.model.hidden

    def sampler(self, network: nn.Module, codec: Codec, compute: Compute[Any]) -> BatchSampler:
        return ColumnSampler(cast(SamplesColumns, network), Columns(codec), compute)
