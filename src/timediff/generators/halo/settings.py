"""Settings of HALO."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from timediff.generators.common.settings import BaselineCompute
from timediff.settings.base import NeuralSettings
from timediff.settings.checks import MOST_LAYERS, MOST_UNITS, at_least_one
from timediff.settings.typed import shown

if TYPE_CHECKING:
    from timediff.data.batch import Layout

MOST_BINS = 10_000


@dataclass(frozen=True)
class HALOModelSettings:
    hidden: int = 128  # of a visit's embedding, and of the coarse module's states
    layers: int = 4
    heads: int = 4
    dropout: float = 0.0
    bins: int = 100  # of a continuous value, by its training quantiles
    # How the codes of a variable, of which a visit has at most one, are chosen: each by a probability of its own, one
    # after the other, or all at once.
    codes: Literal["bernoulli", "softmax"] = "bernoulli"


@dataclass(frozen=True)
class HALOSettings(NeuralSettings):
    renamed: ClassVar[Mapping[str, str]] = {}

    model: HALOModelSettings = field(default_factory=HALOModelSettings)
    sampling: BaselineCompute = field(default_factory=BaselineCompute)

    def problems(self) -> list[str]:
        found, model = super().problems(), self.model
        found += at_least_one({"sampling.batch": self.sampling.batch})
        found += at_least_one({"model.hidden": model.hidden, "model.heads": model.heads}, MOST_UNITS)
        found += at_least_one({"model.layers": model.layers}, MOST_LAYERS)
        if not found and model.hidden % model.heads:
            found.append(f"model.hidden is {model.hidden}; expected a multiple of model.heads, {model.heads}")
        if not 0 <= model.dropout < 1:
            found.append(f"model.dropout is {model.dropout}; expected 0 up to but not including 1")
        if not 2 <= model.bins <= MOST_BINS:
            found.append(f"model.bins is {shown(model.bins)}; expected 2 to {MOST_BINS:,}")
        if self.training.lr is None:
            found.append("training.lr is unset; expected a number above 0")
        if self.codec.scale == "quantile":
            found.append(
                "codec.scale is 'quantile'; this generator's bins go by quantiles of the values: expected training or "
                "bounds"
            )
        return found

    def for_cohort(self, stays: int, layout: "Layout") -> Self:
        """With the batch, where it is unset."""
        batch = self.training.batch_for(round(stays * (1 - self.training.validation)))
        return replace(self, training=replace(self.training, batch=batch))
