"""Settings of RCGAN."""

from dataclasses import dataclass, field

from timediff.generators.common.settings import NoiseBaseline, NoiseSettings
from timediff.settings.checks import fractions


@dataclass(frozen=True)
class RCGANModelSettings(NoiseSettings):
    held: float = 0.0  # fraction of the noise that is the same at every step
    skip: bool = True  # the generator's output layer sees the noise too


@dataclass(frozen=True)
class RCGANSettings(NoiseBaseline):
    model: RCGANModelSettings = field(default_factory=RCGANModelSettings)

    def problems(self) -> list[str]:
        return super().problems() + fractions({"model.held": self.model.held})
