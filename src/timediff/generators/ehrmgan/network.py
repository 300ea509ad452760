"""EHR-M-GAN: a dual VAE, and in its latent space a pair of coupled GANs, for continuous and discrete data.

Generators make latent series from noise, the VAEs' decoders make data of them, and the discriminators see data.
With a label all but the discriminators are conditioned on it (EHR-M-GAN_cond), and it is sampled at its training rate.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from timediff.generators.common.held_noise import holding
from timediff.generators.common.label import label_columns, sampled_label
from timediff.generators.ehrmgan.bilateral import BilateralGenerator, coupled_latents
from timediff.generators.ehrmgan.settings import EHRMGANSettings
from timediff.generators.ehrmgan.sides import CONTINUOUS, DISCRETE, Sides
from timediff.generators.ehrmgan.vae import DualVAE
from timediff.networks.recurrent import Cell
from timediff.runtime.randomness import Noise

START_STD = 0.02  # of a discriminator's first states, which are trained


class Discriminator(nn.Module):
    """A logit of a whole series (B, L, P), and the states behind it, (B, L, hidden)."""

    def __init__(self, width: int, steps: int, hidden: int, layers: int, cell: Cell, rate: float) -> None:
        super().__init__()
        kind, states = {"lstm": (nn.LSTM, 2), "gru": (nn.GRU, 1)}[cell]
        self.rate = rate
        self.rnn = kind(width, hidden, layers, batch_first=True, dropout=rate if layers > 1 else 0.0)
        self.start = nn.Parameter(START_STD * torch.randn(states, layers, 1, hidden))
        self.output = nn.Linear(steps * hidden, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        start = tuple(one.expand(-1, len(x), -1).contiguous() for one in self.start)
        h, _ = self.rnn(x, start if len(start) == 2 else start[0])
        h = dropout(h, self.rate, self.training)
        return self.output(h.flatten(1)), h


class CoupledGAN(nn.Module):
    rates: Tensor  # (K,) of the label's classes; (1,) without a label

    def __init__(self, sides: Sides, steps: int, settings: EHRMGANSettings, hidden: int) -> None:
        super().__init__()
        model, adversarial, known = settings.model, settings.adversarial, sides.known
        self.sides, self.held = sides, model.held
        self.noise = {side: model.noise or max(1, width // 2) for side, width in sides.widths.items()}
        self.register_buffer("rates", torch.full((sides.classes,), 1 / sides.classes))
        self.vae = DualVAE(
            sides.widths, known, sides.classes, steps=steps, latent=model.latent, cell=model.cell,
            hidden=settings.vae.hidden or hidden, settings=settings.vae,
        )  # fmt: skip
        coupled = len(sides.widths) > 1
        self.generators = nn.ModuleDict({
            side: BilateralGenerator(noise + known, model.latent, hidden, model.layers, coupled=coupled)
            for side, noise in self.noise.items()
        })  # fmt: skip
        rates = {CONTINUOUS: adversarial.dropout, DISCRETE: adversarial.dropout_discrete}
        units = adversarial.hidden or hidden
        self.discriminators = nn.ModuleDict({
            side: Discriminator(width, steps, units, adversarial.layers, model.cell, rates[side])
            for side, width in sides.widths.items()
        })  # fmt: skip

    def noise_of(self, noise: Noise, length: int) -> Tensor:
        """Uniform in [0, 1), (B, L, n) of all generators side by side."""
        return torch.cat([holding(noise.uniform(length, n), self.held) for n in self.noise.values()], dim=-1)

    def latents(self, z: Tensor, known: Tensor) -> dict[str, Tensor]:
        """Latent series of each side, from noise and the label's columns (B, L, …)."""
        own = torch.split(z, list(self.noise.values()), dim=-1)
        noise = {side: torch.cat([one, known], dim=-1) for side, one in zip(self.noise, own, strict=True)}
        return coupled_latents(self.generators, noise)

    def made(self, side: str, z: Tensor, known: Tensor) -> Tensor:
        """Data of one side, (B, L, P)."""
        return self.vae.decode(side, self.latents(z, known)[side], known)[0]

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return self.noise_of(noise, length), sampled_label(self.rates, noise)

    def generate(self, z: Tensor, label: Tensor, *, length: int) -> Tensor:
        known = (label_columns(label, self.sides.classes, length)[..., : self.sides.known].to(z.dtype) + 1) / 2
        made = {side: self.vae.decode(side, one, known)[0] for side, one in self.latents(z, known).items()}
        return self.sides.join(made, known)
