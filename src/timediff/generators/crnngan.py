"""C-RNN-GAN: a generator fed with its own last output, and a discriminator that reads both ways (Mogren 2016).

The generator wants what the discriminator sees in its stays, the states before the answer, to be on average what it
sees in real ones (feature matching); whoever is far ahead of the other waits (freezing).
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from timediff.codec import Codec
from timediff.generators.adversarial import called_fake, called_real, contested
from timediff.generators.columns import Columns
from timediff.generators.learnt import Tensors
from timediff.generators.rival import Rival
from timediff.generators.settings import CRNNGANSettings
from timediff.networks.recurrent import Recurrent
from timediff.randomness import Noise
from timediff.training.turns import Turn


class FeedbackGAN(nn.Module):
    def __init__(self, columns: Columns, settings: CRNNGANSettings, hidden: int) -> None:
        super().__init__()
        model, width = settings.model, columns.width
        self.noise, self.width = model.noise or width, width
        self.generator = Recurrent(self.noise + width, width, hidden, model.layers, model.cell)
        self.discriminator = Recurrent(width, 1, hidden, model.layers, model.cell, bidirectional=True)

    def seeds(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return (3**0.5 * (2 * noise.uniform(length, self.noise) - 1),)  # of mean 0 and variance 1

    def generate(self, z: Tensor, *, length: int) -> Tensor:
        output, state, steps = z.new_zeros(len(z), 1, self.width), None, []
        for step in range(length):
            h, state = self.generator.states(torch.cat([z[:, step : step + 1], output], dim=-1), state)
            output = self.generator.output(h).tanh().to(z.dtype)
            steps.append(output)
        return torch.cat(steps, dim=1)

    def judged(self, real: Tensor, made: Tensor) -> tuple[Tensors, Tensors]:
        """Logits (B, L, 1) of both, and the states that they follow from (B, L, width)."""
        seen, _ = self.discriminator.states(torch.cat([real, made]))
        return _halves(self.discriminator.output(seen)), _halves(seen)


class CRNNGAN(Rival[CRNNGANSettings]):
    name: ClassVar[str] = "crnngan"

    def _build(self, codec: Codec) -> nn.Module:
        return FeedbackGAN(Columns(codec), self.settings, self._width(codec))

    def _turns(self, codec: Codec, device: torch.device) -> tuple[Turn, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial
        ahead = adversarial.freeze

        def drawn(network: nn.Module, x: Tensor, noise: Noise) -> tuple[FeedbackGAN, Tensor]:
            assert isinstance(network, FeedbackGAN)
            return network, network.generate(*network.seeds(noise, x.shape[1]), length=x.shape[1])

        def generate(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, made = drawn(network, batch[0], noise)
            (real, fake), (wanted, got) = gan.judged(columns.join(*batch), made)
            matched = mse_loss(got.float().mean(dim=0), wanted.float().mean(dim=0).detach())
            fooled, told = called_real(fake), called_real(real) + called_fake(fake)
            return {"total": matched, "fooled": fooled, "skip": (fooled < ahead * told).float()}

        def judge(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            with torch.no_grad():
                gan, made = drawn(network, batch[0], noise)
            series = torch.cat([columns.join(*batch), made])
            contest = contested(gan.discriminator, series, noise, adversarial.smooth)
            skip = contest.losses["told"] < ahead * called_real(contest.fake)
            return {**contest.losses, "skip": skip.float()}

        return (
            Turn(judge, "discriminator", ("discriminator",), adversarial.lr, adversarial.rounds),
            Turn(generate, "generator", ("generator",)),
        )


def _halves(both: Tensor) -> Tensors:
    real, made = both.chunk(2)
    return real, made
