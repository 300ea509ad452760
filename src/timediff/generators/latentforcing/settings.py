"""Settings of latent forcing."""

from dataclasses import dataclass, field
from typing import ClassVar

from timediff.generators.common.phases import PhaseSettings
from timediff.generators.common.settings import NoiseBaseline
from timediff.settings.checks import above_zero


@dataclass(frozen=True)
class LatentPhaseSettings(PhaseSettings):
    together: float = 1.0  # the learning rate once all are trained together, times training.lr


@dataclass(frozen=True)
class LatentForcingSettings(NoiseBaseline):
    bounded: ClassVar[bool] = False

    phases: LatentPhaseSettings = field(default_factory=LatentPhaseSettings)

    def problems(self) -> list[str]:
        found = super().problems() + above_zero({"phases.together": self.phases.together})
        return found + self.phases.problems()
