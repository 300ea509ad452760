"""P-Forcing: teacher forcing, and a discriminator that must not tell forced from free running (Lamb et al. 2016).

It sees the behaviour of the network, its states and predictions. It learns while it is right less often than in 99 % of
all cases, and is listened to while it is right in more than 75 %, as in the paper.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from timediff.codec import Codec
from timediff.generators.adversarial import accuracy, called_fake, called_real
from timediff.generators.columns import Columns
from timediff.generators.learnt import Tensors
from timediff.generators.settings import ForcingModel, PForcingSettings
from timediff.generators.tforcing import Forcing, Predictor
from timediff.networks.recurrent import Recurrent
from timediff.randomness import Noise
from timediff.training.turns import Turn

LISTENED_TO, STRONG_ENOUGH = 0.75, 0.99  # accuracies


class Professor(Predictor):
    def __init__(self, columns: Columns, model: ForcingModel, hidden: int) -> None:
        super().__init__(columns, model, hidden)
        seen = self.rnn.width + columns.width
        self.behaviour = Recurrent(seen, hidden, hidden, model.layers, model.cell, bidirectional=True)
        self.verdict = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def judged(self, forced: Tensors, free: Tensors) -> Tensors:
        """Logits (B, 1) of either behaviour, above 0 where it is taken for that of forced running."""
        both = torch.cat([torch.cat(behaviour, dim=-1) for behaviour in (forced, free)])
        real, fake = self.verdict(self.behaviour(both).mean(dim=1)).chunk(2)
        return real, fake


class PForcing(Forcing[PForcingSettings]):
    name: ClassVar[str] = "pforcing"

    def _build(self, codec: Codec) -> nn.Module:
        return Professor(Columns(codec), self.settings.model, self._width(codec))

    def _turns(self, codec: Codec, device: torch.device) -> tuple[Turn, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial

        def predict(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, Professor)
            x = columns.join(*batch)
            forced, free = network.forced(x), network.free(x[:, 0], x.shape[1])
            # −log p of a Gaussian whose variance is the error's own, so that it weighs about as much as the verdict.
            error = mse_loss(forced[0].float(), x[:, 1:])
            real, fake = network.judged(forced, free)
            heard = accuracy(real, fake) > LISTENED_TO
            return {"total": error.log() / 2 + heard * called_real(fake), "error": error}

        def judge(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, Professor)
            x = columns.join(*batch)
            with torch.no_grad():
                forced, free = network.forced(x), network.free(x[:, 0], x.shape[1])
            real, fake = network.judged(forced, free)
            right = accuracy(real, fake)
            total = called_real(real) + called_fake(fake)
            return {"total": total, "accuracy": right, "skip": (right > STRONG_ENOUGH).float()}

        return (
            Turn(predict, "generator", ("rnn",)),
            Turn(judge, "discriminator", ("behaviour", "verdict"), adversarial.lr, adversarial.rounds),
        )
