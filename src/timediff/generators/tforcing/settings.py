"""Settings of T-Forcing."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from timediff.generators.common.settings import BaselineSettings, RecurrentSettings


@dataclass(frozen=True)
class FreeRunningSettings(RecurrentSettings):
    # First steps are sampled from a distribution fitted to those of the training stays, or are theirs ("real", the
    # paper's way): then the run folder holds the first step of every training stay and cannot be shared.
    first: Literal["fitted", "real"] = "fitted"
    feedback: Literal["valid", "raw"] = "valid"  # what is fed back is within reach, and its classes are rounded, or not


@dataclass(frozen=True)
class ForcingModelSettings(FreeRunningSettings):
    # The next step's distribution, trained by likelihood and sampled from; or its mean, trained by the squared error.
    predicts: Literal["distribution", "mean"] = "distribution"
    carry: bool = True  # a part of the last step is added, at first as in the linear model of the data
    dequantisation: float = 0.03  # std of the noise on training columns: those that are equal have a density too

    def problems(self) -> list[str]:
        if self.dequantisation >= 0:
            return []
        return [f"model.dequantisation is {self.dequantisation}; expected a standard deviation of 0 or more"]


@dataclass(frozen=True)
class TForcingSettings(BaselineSettings):
    bounded: ClassVar[bool] = False

    model: ForcingModelSettings = field(default_factory=ForcingModelSettings)

    def problems(self) -> list[str]:
        return super().problems() + self.model.problems()
