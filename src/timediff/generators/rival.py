"""Rival: the generators we are compared with. Their networks see a stay as real columns, and draw it from noise."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch
from torch import Tensor, nn

from timediff.capture import Captured
from timediff.codec import Codec
from timediff.cohort import Cohort
from timediff.devices import CACHED_CELLS
from timediff.errors import TimeDiffError
from timediff.generators.columns import Columns
from timediff.generators.learnt import Drawer, Learnt, Tensors
from timediff.generators.settings import Drawing, NoisyModel, RivalSettings
from timediff.networks.inference import arithmetic
from timediff.progress import Say
from timediff.randomness import Noise

WIDTH = 4  # times the columns, as in the paper

R = TypeVar("R", bound=RivalSettings)


class Drawn(Protocol):
    """What the network of a rival can do beside learning."""

    def seeds(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        """All that is random about stays of `length` steps; the first dimension of each is the stays'."""

    def generate(self, *seeds: Tensor, length: int) -> Tensor:
        """The stays, (B, length, columns), that follow from it."""


class Unrolled:
    """Stays from a rival's network: recorded on a GPU, a few stays at a time on a CPU."""

    calls = 1

    def __init__(
        self, network: Any, columns: Columns, device: torch.device, length: int, sampling: Drawing, say: Say,
        rows: int | None,
    ) -> None:  # fmt: skip
        self._network: Drawn = network
        self._columns, self._length = columns, length
        self._rows = max(32, CACHED_CELLS // length) if device.type == "cpu" else rows

        def generate(*seeds: Tensor) -> Tensor:
            with arithmetic(sampling.precision if device.type == "cuda" else "float32"):
                return self._network.generate(*seeds, length=length)

        self._generate = Captured(generate, device, enabled=rows is None, say=say)

    def __call__(self, noise: Noise, tick: Callable[[], None]) -> Tensors:
        seeds = self._network.seeds(noise, self._length)
        rows = self._rows or noise.total
        parts = [
            self._generate(*(seed[start : start + rows] for seed in seeds)) for start in range(0, noise.total, rows)
        ]
        tick()
        return self._columns.split(torch.cat(parts).float())


class Rival(Learnt[R], Generic[R]):
    settings: R
    fewest_steps: ClassVar[int] = 1  # that it can learn from

    def _sized(self, cohort: Cohort, codec: Codec) -> R:
        """Batch and width, where they are unset."""
        if cohort.schema.steps < self.fewest_steps:
            raise TimeDiffError(
                f"the stays have {cohort.schema.steps} step; {self.name} learns how one step follows from another, and "
                f"needs at least {self.fewest_steps}."
            )
        training, model, columns = self._given.training, self._given.model, Columns(codec)
        if model.hidden is None:
            model = replace(model, hidden=WIDTH * columns.width)
        if isinstance(model, NoisyModel) and model.noise is None:
            model = replace(model, noise=columns.width)
        stays = round(len(cohort) * (1 - training.validation))
        return replace(self._given, model=model, training=replace(training, batch=training.batch_for(stays)))

    def _width(self, codec: Codec) -> int:
        return self.settings.model.hidden or WIDTH * Columns(codec).width

    def _drawer(
        self, network: nn.Module, codec: Codec, device: torch.device, length: int, sampling: Drawing, say: Say,
        rows: int | None = None,
    ) -> Drawer:  # fmt: skip
        return Unrolled(network, Columns(codec), device, length, sampling, say, rows)
