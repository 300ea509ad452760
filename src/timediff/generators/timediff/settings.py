"""Settings of TimeDiff. The defaults are the paper's; presets and files say what differs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from timediff.diffusion.settings import DDPMSettings, ProcessSettings
from timediff.networks.settings import BRNNSettings, NetworkSettings
from timediff.settings.base import NeuralSettings
from timediff.settings.checks import MOST_STEPS, at_least_one
from timediff.settings.training import ComputeSettings

if TYPE_CHECKING:
    from timediff.data.batch import Layout

LR_TIMES_WIDTH = 0.5  # where training.lr is unset: a narrow network takes larger steps


@dataclass(frozen=True)
class SamplingSettings(ComputeSettings):
    sampler: str = "ancestral"  # one that diffusion.process has
    steps: int | None = None  # network calls; unset = all of diffusion.steps (ddpm), 72 (cascade), or one a step


@dataclass(frozen=True)
class TimeDiffSettings(NeuralSettings):
    recordings: ClassVar[bool] = True
    renamed: ClassVar[Mapping[str, str]] = {
        "model.early": "model.noise_level_input",
        "diffusion.cells": "diffusion.joint",
    }

    model: NetworkSettings = field(default_factory=BRNNSettings)
    diffusion: ProcessSettings = field(default_factory=DDPMSettings)
    sampling: SamplingSettings = field(default_factory=SamplingSettings)

    def problems(self) -> list[str]:
        sampling = self.sampling
        found = super().problems() + self.model.problems()
        found += at_least_one({"sampling.batch": sampling.batch})
        found += at_least_one({"sampling.steps": sampling.steps}, MOST_STEPS)
        found += self.diffusion.problems(sampling.sampler, sampling.steps, self.codec.scale)
        if self.model.causal != self.diffusion.causal:
            wanted = "a causal one" if self.diffusion.causal else "one that is not causal, such as 'brnn'"
            found.append(
                f"model.network is {self.model.network!r}; diffusion.process = {self.diffusion.process!r} has {wanted}"
            )
        return found

    @property
    def intervals(self) -> bool:
        return self.diffusion.intervals

    def for_cohort(self, stays: int, layout: "Layout") -> Self:
        """With the batch, the network's width, and by it the learning rate, where they are unset."""
        trained_on = round(stays * (1 - self.training.validation))
        model = self.model.sized(self.diffusion.default_width(trained_on, layout))
        lr = self.training.lr or LR_TIMES_WIDTH / (model.width or self.diffusion.default_width(trained_on, layout))
        batch = self.training.batch or min(self.training.batch_for(trained_on), self.diffusion.largest_batch())
        training = replace(self.training, batch=batch, lr=lr)
        return replace(self, training=training, model=model)
