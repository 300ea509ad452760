"""The standard RNN as a generator: the squared error of the next step."""

from typing import ClassVar

from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.columns import Columns
from timediff.generators.rnn.network import StandardRNN
from timediff.generators.rnn.settings import RNNSettings
from timediff.generators.tforcing.generator import FromFirstSteps
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective


class RNN(FromFirstSteps[RNNSettings]):
    name: ClassVar[str] = "rnn"
    Settings = RNNSettings
    preset: ClassVar[str] = "rnn"

    def build(self, codec: Codec) -> nn.Module:
        return StandardRNN(Columns(codec), self.settings.model, self.hidden)

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        columns = Columns(codec)

        def objective(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, StandardRNN)
            return {"total": network.losses(columns.of(batch)).mean()}

        return (Objective(objective),)
