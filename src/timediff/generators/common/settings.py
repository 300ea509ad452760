"""Settings that baselines share. Their presets say where the numbers come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from timediff.settings.base import NeuralSettings
from timediff.settings.checks import MOST_LAYERS, MOST_UNITS, above_zero, at_least_one
from timediff.settings.training import ComputeSettings

if TYPE_CHECKING:
    from timediff.data.batch import Layout

WIDTH = 4  # times the columns, as in the paper


@dataclass(frozen=True)
class RecurrentSettings:
    cell: Literal["lstm", "gru"] = "lstm"
    hidden: int | None = None  # unset = 4 × the columns, as in the paper
    layers: int = 2


@dataclass(frozen=True)
class NoiseSettings(RecurrentSettings):
    noise: int | None = None  # random numbers a step; unset = as many as there are columns


@dataclass(frozen=True)
class BaselineCompute(ComputeSettings):
    precision: Literal["float32", "tf32", "bfloat16"] = "float32"  # of the network on a GPU


@dataclass(frozen=True)
class AdversarialSettings:
    lr: float = 1.0  # of the discriminator, times training.lr
    optimizer: Literal["adam", "sgd"] | None = None  # of the discriminator; unset = training.optimizer
    rounds: int = 1  # optimizer steps of the discriminator, an update
    generator_rounds: int = 1  # optimizer steps of the generator, an update
    gradient_penalty: float = 0.0  # weight of the discriminator's squared slope in its loss

    def problems(self) -> list[str]:
        found = above_zero({"adversarial.lr": self.lr})
        found += at_least_one({
            "adversarial.rounds": self.rounds, "adversarial.generator_rounds": self.generator_rounds,
        })  # fmt: skip
        if self.gradient_penalty < 0:
            found.append(f"adversarial.gradient_penalty is {self.gradient_penalty}; expected a weight of 0 or more")
        return found


@dataclass(frozen=True)
class BaselineSettings(NeuralSettings):
    bounded: ClassVar[bool] = True  # its columns lie in [−1, 1], whatever the data

    model: RecurrentSettings = field(default_factory=RecurrentSettings)
    sampling: BaselineCompute = field(default_factory=BaselineCompute)

    def problems(self) -> list[str]:
        found = super().problems()
        found += at_least_one({"sampling.batch": self.sampling.batch})
        found += at_least_one({"model.hidden": self.model.hidden}, MOST_UNITS)
        found += at_least_one({"model.layers": self.model.layers}, MOST_LAYERS)
        if self.training.lr is None:
            found.append("training.lr is unset; expected a number above 0")
        if self.codec.scale == "quantile" and self.bounded:
            found.append("codec.scale is 'quantile'; values of this generator lie in a range: training or bounds")
        return found

    def for_cohort(self, stays: int, layout: "Layout") -> Self:
        """With batch, width and numbers of noise, where they are unset."""
        width, model, training = columns_width(layout), self.model, self.training
        model = replace(model, hidden=model.hidden or WIDTH * width)
        if isinstance(model, NoiseSettings):
            model = replace(model, noise=model.noise or width)
        batch = training.batch_for(round(stays * (1 - training.validation)))
        return replace(self, model=model, training=replace(training, batch=batch))


@dataclass(frozen=True)
class AdversarialBaseline(BaselineSettings):
    """The loss of held-out stays says nothing of adversarial training."""

    renamed: ClassVar[Mapping[str, str]] = {"adversarial.smooth": "adversarial.gradient_penalty"}

    adversarial: AdversarialSettings = field(default_factory=AdversarialSettings)

    def problems(self) -> list[str]:
        found = super().problems() + self.adversarial.problems()
        if self.training.validation:
            found.append("training.validation is for generators with one loss; of this one expected 0")
        return found


@dataclass(frozen=True)
class NoiseBaseline(AdversarialBaseline):
    """Adversarial, from noise at every step."""

    model: NoiseSettings = field(default_factory=NoiseSettings)

    def problems(self) -> list[str]:
        return super().problems() + at_least_one({"model.noise": self.model.noise}, MOST_UNITS)


def columns_width(layout: "Layout") -> int:
    """Real columns of a stay: one of a channel of two classes, K of one of K."""
    return len(layout.continuous) + sum(1 if k == 2 else k for k in layout.classes)
