"""TimeDiff(preset="fast").fit(train, seed=0).sample(20_000, seed=1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.diffusion.process import Denoiser, Process
from timediff.generators.column_sampling import Channels, ColumnSampler, SamplesColumns
from timediff.generators.neural import NeuralGenerator
from timediff.generators.sampling import BatchSampler, Compute
from timediff.generators.timediff.network import build_process
from timediff.generators.timediff.settings import SamplingSettings, TimeDiffSettings
from timediff.networks.settings import NetworkSettings, chosen_network
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective


@dataclass(frozen=True)
class DiffusionSampler:
    """Stays from noise, by one of the samplers of the process."""

    process: Process
    denoisers: Sequence[Denoiser]
    length: int
    settings: SamplingSettings

    @cached_property
    def calls(self) -> int:
        return self.process.calls(self.length, sampler=self.settings.sampler, steps=self.settings.steps)

    def __call__(self, noise: Noise, tick: Callable[[], None]) -> Batch:
        lengths = torch.full((noise.total,), self.length, device=noise.device)
        return self.process.sample(
            noise,
            lengths,
            sampler=self.settings.sampler,
            steps=self.settings.steps,
            denoisers=self.denoisers,
            tick=tick,
        )


class TimeDiff(NeuralGenerator[TimeDiffSettings]):
    """The paper's method, and what we recommend today: see the presets `paper` and `fast`."""

    name: ClassVar[str] = "timediff"
    Settings = TimeDiffSettings
    preset: ClassVar[str] = "fast"
    signed_losses = ("nll of values", "nll of static")  # of values on no lattice the density counts

    def __init__(
        self,
        preset: str | None = None,
        *,
        network: str | NetworkSettings | type[NetworkSettings] | None = None,
        settings: TimeDiffSettings | None = None,
        assignments: Mapping[str, Any] | None = None,
    ) -> None:
        """`network` is the denoiser: a name such as "cde", or settings of one's own with a method `build`."""
        super().__init__(preset, settings=settings, assignments=assignments)
        if network is not None:
            self._set(replace(self.settings, model=chosen_network(network)))

    def build(self, codec: Codec) -> Process:
        return build_process(self.settings, codec.layout)

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        stages = self.settings.diffusion.stages(codec.layout)
        found = tuple(Objective(_StageLoss(name), name, stages[name], validated=True) for name in stages)
        return found or (Objective(_loss),)

    def losses_of(self, network: nn.Module, batch: Batch, codec: Codec, noise: Noise) -> dict[str, Tensor]:
        assert isinstance(network, Process)
        return network.stay_losses(batch, noise)

    def sampler(self, network: nn.Module, codec: Codec, compute: Compute[SamplingSettings]) -> BatchSampler:
        assert isinstance(network, Process)
        if (
            self.settings.diffusion.causal
        ):  # of which there is no denoiser to accelerate: all of it is one piece of work
            if compute.settings.steps is not None:
                compute.say("sampling.steps has no effect: an autoregressive process takes one call for each step")
            return ColumnSampler(cast(SamplesColumns, network), Channels(codec), compute)
        denoisers = [compute.accelerated(one) for one in network.denoisers]
        return DiffusionSampler(network, denoisers, compute.length, compute.settings)


@dataclass(frozen=True)
class _StageLoss:
    stage: str

    def __call__(self, network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
        assert isinstance(network, Process)
        return network.stage_loss(self.stage, batch, noise)._asdict()


def _loss(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
    assert isinstance(network, Process)
    return network.loss(batch, noise)._asdict()
