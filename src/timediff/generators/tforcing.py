"""T-Forcing: an RNN that learns the distribution of the next step of real stays, and then feeds on its own draws.

Williams and Zipser 1989; draws as in Graves 2013, of a Gaussian whose mean and spreads follow from the steps before it.
"""

from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn

from timediff.codec import Codec
from timediff.generators.columns import Columns
from timediff.generators.first import FIRST, First
from timediff.generators.learnt import Tensors
from timediff.generators.nextstep import NextStep, blurred
from timediff.generators.rival import Rival
from timediff.generators.settings import ForcingModel, PForcingSettings, TForcingSettings
from timediff.progress import Say
from timediff.randomness import Noise
from timediff.training.turns import Turn

REACH = 4.0  # of a column that is standard normal; others reach from −1 to 1

F = TypeVar("F", TForcingSettings, PForcingSettings)


class Predictor(nn.Module):
    """Stays from a first vector, step by step."""

    first: First

    def __init__(self, columns: Columns, model: ForcingModel, hidden: int) -> None:
        super().__init__()
        self.columns = columns
        self.first = FIRST[model.first](columns)
        self.next = NextStep(columns.width, model, hidden)

    def valid(self, steps: Tensor) -> Tensor:
        """Within reach, and discrete columns as their nearest class; gradients pass as if they were not."""
        reach = REACH if self.columns.normal else 1.0
        steps = steps.clamp(-reach, reach)
        return self.columns.join(*self.columns.split(steps.detach())) + (steps - steps.detach())

    def drawn(self, noise: Noise, length: int) -> Tensor:
        return noise.normal(length - 1, self.columns.width)

    def forced(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """How surprising blurred stays (B, L, P) are after their first step, and the states behind it."""
        mean, spread, states, _ = self.next(self.valid(x[:, :-1]))
        return self.next.surprise(mean, spread, x[:, 1:]), states

    def free(self, first: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Steps of stays that begin with `first` (B, P) and go on as drawn, and the states behind them."""
        return self.next.free(first, z, self.valid)

    def seeds(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return self.first.draw(noise), self.drawn(noise, length)

    def generate(self, first: Tensor, z: Tensor, *, length: int) -> Tensor:
        return torch.cat([first[:, None], self.free(first, z)[0]], dim=1)


class Forcing(Rival[F], Generic[F]):
    """What both kinds of forcing share: where first vectors come from, and the linear model that they begin as."""

    fewest_steps: ClassVar[int] = 2

    def _prepared(self, network: nn.Module, data: Tensors, codec: Codec, say: Say) -> None:
        assert isinstance(network, Predictor)
        series = Columns(codec).join(*data)
        network.first.fit(series[:, 0])
        network.next.begin(series)
        if self.settings.model.first == "real":
            say(
                "model.first is 'real': the run folder holds the first vector of every training stay, and is not for "
                "sharing"
            )


class TForcing(Forcing[TForcingSettings]):
    name: ClassVar[str] = "tforcing"

    def _build(self, codec: Codec) -> nn.Module:
        return Predictor(Columns(codec), self.settings.model, self._width(codec))

    def _turns(self, codec: Codec, device: torch.device) -> tuple[Turn, ...]:
        columns = Columns(codec)

        def objective(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, Predictor)
            return {"total": network.forced(blurred(columns.join(*batch), noise))[0]}

        return (Turn(objective),)
