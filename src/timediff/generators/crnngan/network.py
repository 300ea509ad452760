"""C-RNN-GAN: a generator fed with its own last output, and a discriminator that reads both ways (Mogren 2016).

The generator wants what the discriminator sees in its stays, the states before the answer, to be what it sees in real
ones (feature matching); whoever is far ahead of the other waits (freezing).
"""

import torch
from torch import Tensor, nn

from timediff.generators.common.columns import Columns
from timediff.generators.crnngan.settings import CRNNGANSettings
from timediff.networks.recurrent import Recurrent
from timediff.runtime.randomness import Noise


class FeedbackGAN(nn.Module):
    def __init__(self, columns: Columns, settings: CRNNGANSettings, hidden: int) -> None:
        super().__init__()
        model, width, verdict = settings.model, columns.width, settings.adversarial.verdict
        self.noise, self.width, self.range, self.verdict = model.noise or width, width, model.range, verdict
        self.generator = Recurrent(self.noise + width, width, hidden, model.layers, model.cell)
        self.discriminator = Recurrent(width, 1, hidden, model.layers, model.cell, bidirectional=True)

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        z = noise.uniform(length, self.noise)
        return (z if self.range == "unit" else 3**0.5 * (2 * z - 1),)

    def generate(self, z: Tensor, *, length: int) -> Tensor:
        output, state, steps = z.new_zeros(len(z), 1, self.width), None, []
        for step in range(length):
            h, state = self.generator.states(torch.cat([z[:, step : step + 1], output], dim=-1), state)
            output = self.generator.output(h).tanh().to(z.dtype)
            steps.append(output)
        return torch.cat(steps, dim=1)

    def predict(self, x: Tensor, z: Tensor) -> Tensor:
        """Every step of real stays (B, L, P) from those before it and from noise, as in pretraining."""
        before = torch.cat([torch.zeros_like(x[:, :1]), x[:, :-1]], dim=1)
        return torch.tanh(self.generator(torch.cat([z, before], dim=-1)))

    def discriminate(self, real: Tensor, made: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Logits of both, and the states that they follow from (B, L, width)."""
        seen, _ = self.discriminator.states(torch.cat([real, made]))
        return _halves(self._answer(seen)), _halves(seen)

    def logits(self, series: Tensor) -> Tensor:
        """(B, L, 1), or (B, 1) where the answer is one a stay."""
        return self._answer(self.discriminator.states(series)[0])

    def _answer(self, states: Tensor) -> Tensor:
        logits: Tensor = self.discriminator.output(states)
        if self.verdict == "step":
            return logits
        return logits.float().sigmoid().mean(dim=1).logit(eps=1e-6)


def _halves(both: Tensor) -> tuple[Tensor, Tensor]:
    real, made = both.chunk(2)
    return real, made
