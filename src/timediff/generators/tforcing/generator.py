"""T-Forcing as a generator: the loss of the next step."""

from typing import ClassVar, Generic, TypeVar

from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.baseline import Baseline
from timediff.generators.common.columns import Columns
from timediff.generators.pforcing.settings import PForcingSettings
from timediff.generators.rnn.settings import RNNSettings
from timediff.generators.tforcing.network import FreeRunning, Predictor
from timediff.generators.tforcing.settings import TForcingSettings
from timediff.runtime.progress import Say
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective

F = TypeVar("F", TForcingSettings, PForcingSettings)
S = TypeVar("S", TForcingSettings, PForcingSettings, RNNSettings)


class FromFirstSteps(Baseline[S], Generic[S]):
    """A generator whose network goes on from first steps: where those come from."""

    min_steps: ClassVar[int] = 2
    signed_losses = ("nll of values", "nll of classes")

    def prepare(self, network: nn.Module, data: Batch, codec: Codec, say: Say) -> None:
        assert isinstance(network, FreeRunning)
        network.first.fit(Columns(codec).of(data)[:, 0])
        if self.settings.model.first == "real":
            say(
                "model.first is 'real': the run folder holds the first step of every training stay, and is not for "
                "sharing"
            )

    def losses_of(self, network: nn.Module, batch: Batch, codec: Codec, noise: Noise) -> dict[str, Tensor]:
        """−log p or the squared error of each step, given those before it."""
        assert isinstance(network, FreeRunning)
        return network.stay_losses(Columns(codec).of(batch))


class Forcing(FromFirstSteps[F], Generic[F]):
    """What both kinds of forcing share: they start as a linear model."""

    def prepare(self, network: nn.Module, data: Batch, codec: Codec, say: Say) -> None:
        super().prepare(network, data, codec, say)
        assert isinstance(network, Predictor)
        network.next.initialise(Columns(codec).of(data))


class TForcing(Forcing[TForcingSettings]):
    name: ClassVar[str] = "tforcing"
    Settings = TForcingSettings
    preset: ClassVar[str] = "tforcing"

    def build(self, codec: Codec) -> nn.Module:
        return Predictor(Columns(codec), self.settings.model, self.hidden)

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        columns = Columns(codec)

        def objective(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, Predictor)
            return {"total": network.losses(network.noisy(columns.of(batch), noise)).mean()}

        return (Objective(objective),)
