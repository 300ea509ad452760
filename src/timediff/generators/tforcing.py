"""T-Forcing: an RNN that learns to predict the next step of real stays, and then feeds on its own predictions.

Williams and Zipser 1989; Graves 2013. As in the paper it is deterministic: all that varies is the first vector.
"""

from typing import ClassVar, Generic, TypeVar

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from timediff.codec import Codec
from timediff.generators.columns import Columns
from timediff.generators.first import FIRST, First
from timediff.generators.learnt import Tensors
from timediff.generators.rival import Rival
from timediff.generators.settings import ForcingModel, PForcingSettings, TForcingSettings
from timediff.networks.recurrent import Recurrent
from timediff.progress import Say
from timediff.randomness import Noise
from timediff.training.turns import Turn

F = TypeVar("F", TForcingSettings, PForcingSettings)


class Predictor(nn.Module):
    """The next step from those before it, and from `noise` random numbers a step."""

    first: First

    def __init__(self, columns: Columns, model: ForcingModel, hidden: int, noise: int = 0) -> None:
        super().__init__()
        self.width, self.noise = columns.width, noise
        self.first = FIRST[model.first](columns)
        self.rnn = Recurrent(columns.width + noise, columns.width, hidden, model.layers, model.cell)

    def drawn(self, noise: Noise, length: int) -> Tensor:
        return noise.normal(length - 1, self.noise)

    def forced(self, x: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Predictions of steps 1 … L − 1 of real stays x (B, L, P), and the states behind them."""
        states, _ = self.rnn.states(torch.cat([x[:, :-1], z], dim=-1))
        return self.rnn.output(states), states

    def free(self, first: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """The same of a stay that begins with `first` (B, P) and goes on as predicted."""
        step, state = first[:, None], None
        steps, behaviour = [step[:, :0]], [first.new_empty(len(first), 0, self.rnn.width)]
        for i in range(z.shape[1]):
            h, state = self.rnn.states(torch.cat([step, z[:, i : i + 1]], dim=-1), state)
            step = self.rnn.output(h).clamp(-1, 1).to(first.dtype)
            steps.append(step)
            behaviour.append(h)
        return torch.cat(steps, dim=1), torch.cat(behaviour, dim=1)

    def seeds(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return self.first.draw(noise), self.drawn(noise, length)

    def generate(self, first: Tensor, z: Tensor, *, length: int) -> Tensor:
        return torch.cat([first[:, None], self.free(first, z)[0]], dim=1)


class Forcing(Rival[F], Generic[F]):
    """What both kinds of forcing share: where first vectors come from."""

    fewest_steps: ClassVar[int] = 2

    def _prepared(self, network: nn.Module, data: Tensors, codec: Codec, say: Say) -> None:
        assert isinstance(network, Predictor)
        network.first.fit(Columns(codec).join(*(part[:, 0] for part in data)))
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
            x = columns.join(*batch)
            predictions, _ = network.forced(x, network.drawn(noise, x.shape[1]))
            return {"total": mse_loss(predictions.float(), x[:, 1:])}

        return (Turn(objective),)
