"""P-Forcing: teacher forcing, and a discriminator that must not tell forced from free running (Lamb et al. 2016).

It sees the behaviour of the network: its states, and the steps that follow, real ones or its own. As in the
paper it is trained while its accuracy is below 99 %, and trained against while it is above 75 %.
"""

import torch
from torch import Tensor, nn

from timediff.generators.common.columns import Columns
from timediff.generators.tforcing.network import Predictor
from timediff.generators.tforcing.settings import ForcingModelSettings
from timediff.networks.recurrent import Recurrent
from timediff.runtime.randomness import Noise


class Professor(Predictor):
    def __init__(self, columns: Columns, model: ForcingModelSettings, hidden: int) -> None:
        super().__init__(columns, model, hidden)
        seen = self.next.rnn.width + columns.width
        self.behaviour = Recurrent(seen, hidden, hidden, model.layers, model.cell, bidirectional=True)
        self.verdict = nn.Sequential(nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def both(self, x: Tensor, noise: Noise) -> tuple[Tensor, Tensor]:
        """The loss of stays x, and its behaviour (2 B, L − 1, …): forced by them, then free."""
        x = self.noisy(x, noise)
        known = self.valid(x)
        (losses, forced), (steps, free) = self.forced(x), self.free(known[:, 0], self.step_noise(noise, x.shape[1]))
        behaviour = torch.cat([torch.cat([forced, free]), torch.cat([known[:, 1:], steps]).to(forced.dtype)], dim=-1)
        return losses.mean(), behaviour

    def discriminate(self, behaviour: Tensor) -> Tensor:
        """Logits (B, 1), above 0 where it is taken for that of forced running."""
        logits: Tensor = self.verdict(self.behaviour(behaviour).mean(dim=1))
        return logits
