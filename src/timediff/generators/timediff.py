"""TimeDiff: mixed diffusion of vital signs, missingness, static values and outcome together, by a bidirectional RNN."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from timediff.codec import Codec
from timediff.cohort import Cohort
from timediff.config import SamplingSettings, Settings
from timediff.diffusion.mixed import MixedDiffusion
from timediff.diffusion.samplers import SAMPLERS
from timediff.diffusion.schedules import SCHEDULES
from timediff.diffusion.staged import Plan, StagedDiffusion
from timediff.generators.learnt import Learnt, Tensors
from timediff.networks.brnn import BidirectionalRNN
from timediff.networks.chain import Chain
from timediff.networks.inference import Assembled, Denoiser, fastest
from timediff.networks.staged import StagedNetwork
from timediff.progress import Say
from timediff.randomness import Noise
from timediff.training.turns import Turn

WIDTHS = ((2000, 256), (0, 64))  # from so many stays to learn from: the width of each direction, where it is unset
LEARNING = 0.5  # learning rate × width, where training.lr is unset: a narrow network takes larger steps

Process = MixedDiffusion | StagedDiffusion


@dataclass(frozen=True)
class Denoising:
    """Stays from noise, by one of the samplers."""

    sampler: Callable[..., Tensors]
    process: Process
    denoise: Denoiser | Assembled
    length: int
    steps: list[int] | Plan

    @property
    def calls(self) -> int:
        return len(self.steps)

    def __call__(self, noise: Noise, tick: Callable[[], None]) -> Tensors:
        return self.sampler(self.process, self.denoise, noise, self.length, self.steps, tick=tick)


class TimeDiff(Learnt[Settings]):
    """TimeDiff(preset="fast").fit(train, seed=0).sample(20_000, seed=1)."""

    name: ClassVar[str] = "timediff"

    def _turns(self, codec: Codec, device: torch.device) -> tuple[Turn, ...]:
        process = self._process(codec, device)

        def objective(denoise: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            x0, c0 = batch
            losses = process.loss(denoise, x0, c0.long(), process.times(noise), noise)
            return losses._asdict()

        return (Turn(objective),)

    def _drawer(
        self, network: nn.Module, codec: Codec, device: torch.device, length: int, sampling: SamplingSettings, say: Say,
        rows: int | None = None,
    ) -> Denoising:  # fmt: skip
        process = self._process(codec, device)
        denoise = fastest(network, device, length, sampling.precision, say, rows)
        sampler = SAMPLERS[self.settings.diffusion.process][sampling.sampler]
        return Denoising(sampler, process, denoise, length, process.schedule(sampling.steps, length))

    def _sized(self, cohort: Cohort, codec: Codec) -> Settings:
        """The given settings with what the cohort decides: batch, width (of `edm`), and by it the learning rate."""
        training, model = self._given.training, self._given.model
        stays = round(len(cohort) * (1 - training.validation))
        if self.settings.diffusion.process == "edm" and model.hidden is None:
            model = replace(model, hidden=next(width for least, width in WIDTHS if stays >= least))
        lr = LEARNING / (model.hidden or self._width(codec)) if training.lr is None else training.lr
        training = replace(training, batch=training.batch_for(stays), lr=lr)
        return replace(self._given, training=training, model=model)

    def _width(self, codec: Codec) -> int:
        width = len(codec.continuous) + sum(codec.classes)
        return self.settings.model.hidden or 4 * width

    def _build(self, codec: Codec) -> nn.Module:
        model, process = self.settings.model, self._process(codec, "cpu")
        build = partial(
            BidirectionalRNN, hidden=self._width(codec), layers=model.layers, cell=model.cell,
            dropout=model.dropout, early=model.early,
        )  # fmt: skip
        if isinstance(process, MixedDiffusion):
            return build(process.width)
        cells = Chain(process.cells, joint=self.settings.diffusion.cells == "joint")
        rnn = build(process.inputs, outputs=max(1, process.continuous + cells.width))
        return StagedNetwork(rnn, cells, Chain(process.stay))

    def _process(self, codec: Codec, device: torch.device | str) -> Process:
        diffusion, continuous = self.settings.diffusion, len(codec.continuous)
        if diffusion.process == "edm":
            whole = tuple(codec.schema[channel.feature].scope == "static" for channel in codec.discrete)
            return StagedDiffusion(continuous, codec.classes, whole, diffusion.lambda_, device)
        alpha_bar = SCHEDULES[diffusion.schedule](diffusion.steps)
        return MixedDiffusion(continuous, codec.classes, alpha_bar, diffusion.lambda_, device)
