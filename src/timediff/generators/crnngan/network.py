"""C-RNN-GAN: a generator fed with its own last output, and a discriminator that reads both ways (Mogren 2016).

The generator wants what the discriminator sees in its stays, the states before the answer, to be on average what it
sees in real ones (feature matching); whoever is far ahead of the other waits (freezing).
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
        model, width = settings.model, columns.width
        self.noise, self.width = model.noise or width, width
        self.generator = Recurrent(self.noise + width, width, hidden, model.layers, model.cell)
        self.discriminator = Recurrent(width, 1, hidden, model.layers, model.cell, bidirectional=True)

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return (3**0.5 * (2 * noise.uniform(length, self.noise) - 1),)  # of mean 0 and variance 1

    def generate(self, z: Tensor, *, length: int) -> Tensor:
        output, state, steps = z.new_zeros(len(z), 1, self.width), None, []
        for step in range(length):
            h, state = self.generator.states(torch.cat([z[:, step : step + 1], output], dim=-1), state)
            output = self.generator.output(h).tanh().to(z.dtype)
            steps.append(output)
        return torch.cat(steps, dim=1)

    def discriminate(self, real: Tensor, made: Tensor) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Logits (B, L, 1) of both, and the states that they follow from (B, L, width)."""
        seen, _ = self.discriminator.states(torch.cat([real, made]))
        return _halves(self.discriminator.output(seen)), _halves(seen)


def _halves(both: Tensor) -> tuple[Tensor, Tensor]:
    real, made = both.chunk(2)
    return real, made
