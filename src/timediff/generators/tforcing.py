"""T-Forcing: an RNN that learns the distribution of the next step of real stays, and then feeds on its own draws.

Williams and Zipser 1989; draws as in Graves 2013, of a Gaussian whose mean and spreads follow from the steps before it.
"""

import math
from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from timediff.codec import Codec
from timediff.generators.columns import Columns
from timediff.generators.first import FIRST, First
from timediff.generators.learnt import Tensors
from timediff.generators.rival import Rival
from timediff.generators.settings import ForcingModel, PForcingSettings, TForcingSettings
from timediff.networks.recurrent import Recurrent, State
from timediff.progress import Say
from timediff.randomness import Noise
from timediff.training.turns import Turn

BLUR = 0.03  # noise on the columns that are learnt from: columns that are equal, or stand still, have a density too
REACH = 4.0  # of a column that is standard normal; others reach from −1 to 1

F = TypeVar("F", TForcingSettings, PForcingSettings)


class NextStep(nn.Module):
    """p(x' | x and those before it), by the draw x' = carry · x + mean + spread · (factor z) with z standard normal.

    Mean and spread are the RNN's, for each column; carry and factor are the same at every step, and begin as the linear
    model of the data: each column's dependence on its own last step, and the correlations of what that leaves.
    """

    def __init__(self, columns: int, model: ForcingModel, hidden: int) -> None:
        super().__init__()
        self.width = columns
        self.rnn = Recurrent(columns, 2 * columns, hidden, model.layers, model.cell)
        self.carry = nn.Parameter(torch.ones(columns))
        self.lower = nn.Parameter(torch.zeros(columns, columns))  # of the factor; its diagonal as logarithms

    @torch.no_grad()
    def begin(self, series: Tensor) -> None:
        """From the training stays, (N, L, columns)."""
        before, after = (part.double().flatten(0, 1) for part in (series[:, :-1], series[:, 1:]))
        before, after = before - before.mean(dim=0), after - after.mean(dim=0)
        carry = (before * after).mean(dim=0) / (before.square().mean(dim=0) + BLUR**2)
        left = after - carry * before
        covariance = left.T @ left / len(left) + BLUR**2 * torch.diag(1 + carry.square())  # of blurred columns
        scale = covariance.diagonal().sqrt()
        factor = torch.linalg.cholesky(covariance / scale / scale[:, None])
        self.carry.copy_(carry)
        self.lower.copy_(factor.tril(-1) + factor.diagonal().log().diag())

    @property
    def factor(self) -> Tensor:
        return self.lower.tril(-1) + self.lower.diagonal().exp().diag()

    def forward(self, x: Tensor, before: State = None) -> tuple[Tensor, Tensor, Tensor, State]:
        """Means and spreads of the steps after x (B, L, P), the RNN's states, and that to go on from."""
        states, last = self.rnn.states(x, before)
        mean, spread = self.rnn.output(states).float().chunk(2, dim=-1)
        return self.carry * x + mean, softplus(spread) + BLUR, states, last

    def surprise(self, mean: Tensor, spread: Tensor, x: Tensor) -> Tensor:
        """−log p(x), a column."""
        left = ((x - mean) / spread).flatten(0, -2)
        z = torch.linalg.solve_triangular(self.factor, left.T, upper=False)
        volume = spread.log().mean() + self.lower.diagonal().mean()
        found: Tensor = z.square().mean() / 2 + volume + math.log(2 * math.pi) / 2
        return found


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

    def blurred(self, x: Tensor, noise: Noise) -> Tensor:
        return x + BLUR * noise.normal(*x.shape[1:])

    def drawn(self, noise: Noise, length: int) -> Tensor:
        return noise.normal(length - 1, self.columns.width)

    def forced(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """How surprising blurred stays (B, L, P) are after their first step, and the states behind it."""
        mean, spread, states, _ = self.next(self.valid(x[:, :-1]))
        return self.next.surprise(mean, spread, x[:, 1:]), states

    def free(self, first: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Steps of stays that begin with `first` (B, P) and go on as drawn, and the states behind them."""
        step, state, factor = first[:, None], None, self.next.factor
        steps, behaviour = [step[:, :0]], [first.new_empty(len(first), 0, self.next.rnn.width)]
        for i in range(z.shape[1]):
            mean, spread, h, state = self.next(step, state)
            step = self.valid(mean + spread * (z[:, i : i + 1] @ factor.T))
            steps.append(step)
            behaviour.append(h)
        return torch.cat(steps, dim=1), torch.cat(behaviour, dim=1)

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
            return {"total": network.forced(network.blurred(columns.join(*batch), noise))[0]}

        return (Turn(objective),)
