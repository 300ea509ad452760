"""Settings of T-Forcing."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from timediff.generators.common.settings import BaselineSettings, RecurrentSettings


@dataclass(frozen=True)
class ForcingModelSettings(RecurrentSettings):
    # First steps are sampled from a distribution fitted to those of the training stays, or are theirs ("real", the
    # paper's way): then the run folder holds the first step of every training stay and cannot be shared.
    first: Literal["fitted", "real"] = "fitted"


@dataclass(frozen=True)
class TForcingSettings(BaselineSettings):
    bounded: ClassVar[bool] = False

    model: ForcingModelSettings = field(default_factory=ForcingModelSettings)
