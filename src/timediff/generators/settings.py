"""Settings of the rivals: what all have, and what only one has. Their presets say where the numbers come from."""

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from timediff.config import AnySettings, CodecSettings, TrainingSettings, above_zero, at_least_one


@dataclass(frozen=True)
class RecurrentSettings:
    cell: Literal["lstm", "gru"] = "lstm"
    hidden: int | None = None  # unset = 4 × the columns, as in the paper
    layers: int = 2


@dataclass(frozen=True)
class ForcingModel(RecurrentSettings):
    # First vectors are drawn from a distribution fitted to those of the training stays, or are theirs ("real", the
    # paper's way): then the run folder holds the first vector of every training stay and cannot be shared.
    first: Literal["fitted", "real"] = "fitted"


@dataclass(frozen=True)
class NoisyModel(RecurrentSettings):
    noise: int | None = None  # random numbers a step; unset = as many as there are columns


@dataclass(frozen=True)
class RCGANModel(NoisyModel):
    held: float = 0.0  # share of them that is drawn once, and the same at every step


@dataclass(frozen=True)
class Drawing:
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"  # of the network on a GPU
    batch: int | None = None  # stays computed at once, rounded up to whole blocks of 500; unset = by device


def shares(values: dict[str, float]) -> list[str]:
    return [f"{path} is {value}; expected a share from 0 to 1" for path, value in values.items() if not 0 <= value <= 1]


@dataclass(frozen=True)
class AdversarialSettings:
    lr: float = 1.0  # of the discriminator, times training.lr
    rounds: int = 1  # of the discriminator, an update
    smooth: float = 0.0  # weight of the discriminator's squared slope in its loss

    def problems(self) -> list[str]:
        wrong = [f"adversarial.smooth is {self.smooth}; expected a weight of 0 or more"] if self.smooth < 0 else []
        return above_zero({"adversarial.lr": self.lr}) + at_least_one({"adversarial.rounds": self.rounds}) + wrong


@dataclass(frozen=True)
class RivalSettings(AnySettings):
    ranged: ClassVar[bool] = True  # its columns lie in [−1, 1], whatever the data

    model: RecurrentSettings = field(default_factory=RecurrentSettings)
    training: TrainingSettings = field(default_factory=TrainingSettings)
    sampling: Drawing = field(default_factory=Drawing)
    codec: CodecSettings = field(default_factory=CodecSettings)

    def problems(self) -> list[str]:
        found = super().problems()
        found += at_least_one({
            "model.hidden": self.model.hidden, "model.layers": self.model.layers, "sampling.batch": self.sampling.batch,
        })  # fmt: skip
        if self.training.lr is None:
            found.append("training.lr is unset; expected a number above 0")
        if self.codec.scale == "quantile" and self.ranged:
            found.append("codec.scale is 'quantile'; values of this generator lie in a range: training or bounds")
        return found


@dataclass(frozen=True)
class TForcingSettings(RivalSettings):
    ranged: ClassVar[bool] = False

    model: ForcingModel = field(default_factory=ForcingModel)


@dataclass(frozen=True)
class AdversarialRival(RivalSettings):
    """A loss of held-out stays says nothing of a game between players."""

    adversarial: AdversarialSettings = field(default_factory=AdversarialSettings)

    def problems(self) -> list[str]:
        found = super().problems() + self.adversarial.problems()
        if self.training.validation:
            found.append("training.validation is for generators with one loss; of this one expected 0")
        return found


@dataclass(frozen=True)
class NoisyRival(AdversarialRival):
    model: NoisyModel = field(default_factory=NoisyModel)

    def problems(self) -> list[str]:
        return super().problems() + at_least_one({"model.noise": self.model.noise})


@dataclass(frozen=True)
class RCGANSettings(NoisyRival):
    model: RCGANModel = field(default_factory=RCGANModel)

    def problems(self) -> list[str]:
        return super().problems() + shares({"model.held": self.model.held})


@dataclass(frozen=True)
class ListeningSettings(AdversarialSettings):
    listen: float = 0.75  # the generator hears the discriminator while it is right more often
    enough: float = 0.99  # the discriminator waits while it is right more often

    def problems(self) -> list[str]:
        return super().problems() + shares({"adversarial.listen": self.listen, "adversarial.enough": self.enough})


@dataclass(frozen=True)
class PForcingSettings(AdversarialRival):
    ranged: ClassVar[bool] = False

    model: ForcingModel = field(default_factory=ForcingModel)
    adversarial: ListeningSettings = field(default_factory=ListeningSettings)


@dataclass(frozen=True)
class FreezingSettings(AdversarialSettings):
    freeze: float = 0.7  # a player whose loss is below this share of the other's waits; 0 = none does

    def problems(self) -> list[str]:
        return super().problems() + shares({"adversarial.freeze": self.freeze})


@dataclass(frozen=True)
class CRNNGANSettings(NoisyRival):
    adversarial: FreezingSettings = field(default_factory=FreezingSettings)


@dataclass(frozen=True)
class PhaseSettings:
    embedding: float = 0.25  # share of the updates in which embedder and recovery learn alone
    supervised: float = 0.25  # share in which the supervisor learns alone, after that
    together: float = 1.0  # the learning rate once all learn together, times training.lr


@dataclass(frozen=True)
class TimeGANSettings(NoisyRival):
    ranged: ClassVar[bool] = False

    phases: PhaseSettings = field(default_factory=PhaseSettings)

    def problems(self) -> list[str]:
        found, phases = super().problems() + above_zero({"phases.together": self.phases.together}), self.phases
        if min(phases.embedding, phases.supervised) < 0 or phases.embedding + phases.supervised >= 1:
            found.append("phases.embedding and phases.supervised are shares, and must leave some for joint training")
        return found
