"""Settings of P-Forcing."""

from dataclasses import dataclass, field
from typing import ClassVar

from timediff.generators.common.settings import AdversarialBaseline, AdversarialSettings
from timediff.generators.tforcing.settings import ForcingModelSettings
from timediff.settings.checks import fractions


@dataclass(frozen=True)
class ProfessorSettings(AdversarialSettings):
    listen: float = 0.75  # the generator is trained against the discriminator while that is right more often
    enough: float = 0.99  # the discriminator waits while it is right more often

    def problems(self) -> list[str]:
        return super().problems() + fractions({"adversarial.listen": self.listen, "adversarial.enough": self.enough})


@dataclass(frozen=True)
class PForcingSettings(AdversarialBaseline):
    bounded: ClassVar[bool] = False

    model: ForcingModelSettings = field(default_factory=ForcingModelSettings)
    adversarial: ProfessorSettings = field(default_factory=ProfessorSettings)

    def problems(self) -> list[str]:
        return super().problems() + self.model.problems()
