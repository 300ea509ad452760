"""Latent forcing: an autoencoder, and a Gaussian autoregression of its latent steps, refined adversarially.

It began as TimeGAN (Yoon et al. 2019), and is trained in its three phases: embedder and recovery; the supervisor, here
by likelihood; and all together. A latent series is sampled step by step, as the supervisor says, from innovations that
the generator makes of noise; the discriminator sees latent series.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from timediff.generators.common.columns import Columns
from timediff.generators.common.next_step import DEQUANTISATION, Factor, NextStep
from timediff.generators.latentforcing.settings import LatentForcingSettings
from timediff.networks.recurrent import Recurrent
from timediff.runtime.randomness import Noise


class Supervisor(NextStep):
    """A latent series, from its first step on."""

    def __init__(self, columns: int, settings: LatentForcingSettings, hidden: int) -> None:
        super().__init__(columns, settings.model, hidden, across=True)
        self.start = nn.Parameter(torch.zeros(columns))
        self.start_factor = Factor(columns)

    @torch.no_grad()
    def initialise(self, series: Tensor) -> None:
        super().initialise(series)
        first = series[:, 0].double()
        self.start.copy_(first.mean(dim=0))
        self.start_factor.initialise(
            first.T.cov(correction=0) + DEQUANTISATION**2 * torch.eye(first.shape[1], device=first.device)
        )

    def series(self, z: Tensor) -> Tensor:
        """From innovations (B, L, P)."""
        first = self.start + z[:, 0] @ self.start_factor().T
        return torch.cat([first[:, None], self.free(first, z[:, 1:])[0]], dim=1)

    def nll(self, h: Tensor) -> Tensor:
        """−log p of each number of latent series (B, L, P), given those before it."""
        mean, std, _, _ = self(h[:, :-1])
        first = self.start_factor.nll(h[:, 0] - self.start)
        return torch.cat([first[:, None], self.losses(mean, std, h[:, 1:])], dim=1)

    def nll_of(self, h: Tensor) -> Tensor:
        """−log p of latent series (B, L, P), a column of a step but the first."""
        steps = h.shape[1]
        return self.nll(h).mean() * steps / (steps - 1)

    def squared_error(self, h: Tensor) -> Tensor:
        """The squared error of what it expects."""
        return mse_loss(self(h[:, :-1])[0], h[:, 1:])


class LatentForcingNetwork(nn.Module):
    """Latent steps have as many columns as a stay, each about standardised."""

    def __init__(self, columns: Columns, settings: LatentForcingSettings, hidden: int) -> None:
        super().__init__()
        model, self.width = settings.model, columns.width
        self.noise = model.noise or self.width

        def block(inputs: int, outputs: int, **more: bool) -> Recurrent:
            return Recurrent(inputs, outputs, hidden, model.layers, model.cell, **more)

        self.embedder = block(self.width, self.width, skip=True)
        self.recovery = block(self.width, self.width, skip=True)
        self.generator = block(self.width + self.noise, self.width)
        nn.init.zeros_(self.generator.output.weight)  # at first the noise itself, which the supervisor was trained with
        nn.init.zeros_(self.generator.output.bias)
        self.supervisor = Supervisor(self.width, settings, hidden)
        self.discriminator = block(self.width, 1, bidirectional=True)

    def latent(self, z: Tensor, held: Tensor) -> Tensor:
        """Latent series from noise: of each step, and of the whole stay."""
        seen = torch.cat([z, held[:, None].expand(-1, z.shape[1], -1)], dim=-1)
        return self.supervisor.series(z + self.generator(seen).float())

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return noise.normal(length, self.width), noise.normal(self.noise)

    def generate(self, z: Tensor, held: Tensor, *, length: int) -> Tensor:
        recovered: Tensor = self.recovery(self.latent(z, held))
        return recovered


def standardisation(h: Tensor) -> Tensor:
    """How far latent columns are from mean 0 and std 1."""
    columns = h.flatten(0, 1)
    std = (columns.var(dim=0, correction=0) + 1e-6).sqrt()
    return (columns.mean(dim=0).square() + (std - 1).square()).mean()
