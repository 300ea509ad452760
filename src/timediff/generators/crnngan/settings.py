"""Settings of C-RNN-GAN."""

from dataclasses import dataclass, field
from typing import Literal

from timediff.generators.common.settings import AdversarialSettings, NoiseBaseline, NoiseSettings
from timediff.settings.checks import fractions


@dataclass(frozen=True)
class CRNNGANModelSettings(NoiseSettings):
    range: Literal["unit", "standard"] = "standard"  # of uniform noise: [0, 1), or of mean 0 and variance 1


@dataclass(frozen=True)
class FreezingSettings(AdversarialSettings):
    freeze: float = 0.7  # whoever has a loss below this fraction of the other's waits; 0 = nobody does
    # What the discriminator sees is matched on average over the batch, or stay by stay, each with another real one.
    matching: Literal["means", "pairs"] = "means"
    verdict: Literal["step", "stay"] = "step"  # its answer: one a step, or the mean of their probabilities

    def problems(self) -> list[str]:
        return super().problems() + fractions({"adversarial.freeze": self.freeze})


@dataclass(frozen=True)
class PretrainingSettings:
    pretraining: float = 0.0  # fraction of the updates in which the generator alone predicts the next step


@dataclass(frozen=True)
class CRNNGANSettings(NoiseBaseline):
    model: CRNNGANModelSettings = field(default_factory=CRNNGANModelSettings)
    adversarial: FreezingSettings = field(default_factory=FreezingSettings)
    phases: PretrainingSettings = field(default_factory=PretrainingSettings)

    def problems(self) -> list[str]:
        return super().problems() + fractions({"phases.pretraining": self.phases.pretraining})
