"""Settings of TimeGAN."""

from dataclasses import dataclass, field
from typing import ClassVar

from timediff.generators.common.settings import NoiseBaseline
from timediff.settings.checks import above_zero


@dataclass(frozen=True)
class PhaseSettings:
    embedding: float = 0.25  # fraction of the updates in which embedder and recovery are trained alone
    supervised: float = 0.25  # fraction in which the supervisor is trained alone, after that
    together: float = 1.0  # the learning rate once all are trained together, times training.lr


@dataclass(frozen=True)
class TimeGANSettings(NoiseBaseline):
    bounded: ClassVar[bool] = False

    phases: PhaseSettings = field(default_factory=PhaseSettings)

    def problems(self) -> list[str]:
        found, phases = super().problems() + above_zero({"phases.together": self.phases.together}), self.phases
        if min(phases.embedding, phases.supervised) < 0 or phases.embedding + phases.supervised >= 1:
            found.append("phases.embedding and phases.supervised are fractions, and must leave some for joint training")
        return found
