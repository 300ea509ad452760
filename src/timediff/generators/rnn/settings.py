"""Settings of the standard RNN."""

from dataclasses import dataclass, field
from typing import ClassVar

from timediff.generators.common.settings import BaselineSettings
from timediff.generators.tforcing.settings import FreeRunningSettings


@dataclass(frozen=True)
class RNNModelSettings(FreeRunningSettings):
    skip: bool = False  # the output layer sees the step itself too, so that only the change need pass the states


@dataclass(frozen=True)
class RNNSettings(BaselineSettings):
    bounded: ClassVar[bool] = False

    model: RNNModelSettings = field(default_factory=RNNModelSettings)
