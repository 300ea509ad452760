"""P-Forcing: teacher forcing, and a discriminator that must not tell forced from free running (Lamb et al. 2016).

It sees the behaviour of the network: its states, and the steps that follow, real ones or its own draws. As in the
paper it learns while it is right less often than in 99 % of all cases, and is listened to while it is right in more
than 75 %.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from timediff.codec import Codec
from timediff.generators.adversarial import accuracy, called_real, contested
from timediff.generators.columns import Columns
from timediff.generators.nextstep import blurred
from timediff.generators.settings import ForcingModel, PForcingSettings
from timediff.generators.tforcing import Forcing, Predictor
from timediff.networks.recurrent import Recurrent
from timediff.randomness import Noise
from timediff.training.turns import Turn


class Professor(Predictor):
    def __init__(self, columns: Columns, model: ForcingModel, hidden: int) -> None:
        super().__init__(columns, model, hidden)
        seen = self.next.rnn.width + columns.width
        self.behaviour = Recurrent(seen, hidden, hidden, model.layers, model.cell, bidirectional=True)
        self.verdict = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def both(self, x: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """How surprising stays x are, and its behaviour (2 B, L − 1, …): forced by them, and free from their first."""
        x = blurred(x, noise)
        known = self.valid(x)
        (surprise, forced), (steps, free) = self.forced(x), self.free(known[:, 0], self.drawn(noise, x.shape[1]))
        behaviour = torch.cat([torch.cat([forced, free]), torch.cat([known[:, 1:], steps]).to(forced.dtype)], dim=-1)
        return surprise, behaviour

    def judged(self, behaviour: Tensor) -> Tensor:
        """Logits (B, 1), above 0 where it is taken for that of forced running."""
        logits: Tensor = self.verdict(self.behaviour(behaviour).mean(dim=1))
        return logits


class PForcing(Forcing[PForcingSettings]):
    name: ClassVar[str] = "pforcing"

    def _build(self, codec: Codec) -> nn.Module:
        return Professor(Columns(codec), self.settings.model, self._width(codec))

    def _turns(self, codec: Codec, device: torch.device) -> tuple[Turn, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial

        def predict(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, Professor)
            surprise, behaviour = network.both(columns.join(*batch), noise)
            real, fake = network.judged(behaviour).chunk(2)
            heard = accuracy(real, fake) > adversarial.listen
            fooled = called_real(fake)
            return {"total": surprise + heard * fooled, "surprise": surprise, "fooled": fooled}

        def judge(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, Professor)
            with torch.no_grad():
                _, behaviour = network.both(columns.join(*batch), noise)
            contest = contested(network.judged, behaviour, noise, adversarial.smooth)
            right = accuracy(contest.real, contest.fake)
            return {**contest.losses, "accuracy": right, "skip": (right > adversarial.enough).float()}

        return (
            Turn(predict, "generator", ("next",)),
            Turn(judge, "discriminator", ("behaviour", "verdict"), adversarial.lr, adversarial.rounds),
        )
