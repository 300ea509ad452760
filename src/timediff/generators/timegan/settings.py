"""Settings of TimeGAN."""

from dataclasses import dataclass, field

from timediff.generators.common.phases import PhaseSettings
from timediff.generators.common.settings import NoiseBaseline


@dataclass(frozen=True)
class TimeGANSettings(NoiseBaseline):
    phases: PhaseSettings = field(default_factory=PhaseSettings)

    def problems(self) -> list[str]:
        return super().problems() + self.phases.problems()
