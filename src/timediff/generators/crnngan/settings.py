"""Settings of C-RNN-GAN."""

from dataclasses import dataclass, field

from timediff.generators.common.settings import AdversarialSettings, NoiseBaseline
from timediff.settings.checks import fractions


@dataclass(frozen=True)
class FreezingSettings(AdversarialSettings):
    freeze: float = 0.7  # whoever has a loss below this fraction of the other's waits; 0 = nobody does

    def problems(self) -> list[str]:
        return super().problems() + fractions({"adversarial.freeze": self.freeze})


@dataclass(frozen=True)
class CRNNGANSettings(NoiseBaseline):
    adversarial: FreezingSettings = field(default_factory=FreezingSettings)
