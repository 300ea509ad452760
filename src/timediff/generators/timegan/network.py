"""TimeGAN: a GAN in the latent space of an autoencoder, with a supervisor of its steps (Yoon et al. 2019).

As in the authors' published code: the generator makes a whole latent series of noise, the supervisor goes over it, and
the recovery makes a stay of it. Columns and latent steps lie in [0, 1].
"""

import torch
from torch import Tensor, nn

from timediff.generators.common.columns import Columns
from timediff.generators.timegan.settings import TimeGANSettings
from timediff.networks.recurrent import Recurrent
from timediff.runtime.randomness import Noise


class TimeGANNetwork(nn.Module):
    def __init__(self, columns: Columns, settings: TimeGANSettings, hidden: int) -> None:
        super().__init__()
        model, self.noise = settings.model, settings.model.noise or columns.width

        def block(inputs: int, outputs: int, layers: int = model.layers) -> Recurrent:
            return Recurrent(inputs, outputs, hidden, layers, model.cell)

        self.embedder = block(columns.width, hidden)
        self.recovery = block(hidden, columns.width)
        self.generator = block(self.noise, hidden)
        self.supervisor = block(hidden, hidden, max(1, model.layers - 1))
        self.discriminator = block(hidden, 1)

    def embed(self, x: Tensor) -> Tensor:
        """Latent series H (B, L, hidden) of stays X (B, L, P)."""
        return torch.sigmoid(self.embedder(x).float())

    def recover(self, h: Tensor) -> Tensor:
        return torch.sigmoid(self.recovery(h).float())

    def supervise(self, h: Tensor) -> Tensor:
        """What the supervisor expects after each step of H; of the generator's series it is what is recovered."""
        return torch.sigmoid(self.supervisor(h).float())

    def latent(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """The generator's series Ê, and Ĥ, what the supervisor makes of it."""
        e = torch.sigmoid(self.generator(z).float())
        return e, self.supervise(e)

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return (noise.uniform(length, self.noise),)

    def generate(self, z: Tensor, *, length: int) -> Tensor:
        return 2 * self.recover(self.latent(z)[1]) - 1
