"""TimeGAN: a GAN in the latent space of an autoencoder, with a supervisor of its steps (Yoon et al. 2019).

Learnt in three phases: embedder and recovery; the supervisor, which learns the next latent step given those before it;
and all together. A latent series is drawn step by step, as the supervisor says, from innovations that the generator
makes of noise; the discriminator sees latent series.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from timediff.codec import Codec
from timediff.generators.adversarial import called_real, contested
from timediff.generators.columns import Columns
from timediff.generators.nextstep import BLUR, Factor, NextStep, blurred
from timediff.generators.rival import Rival
from timediff.generators.settings import TimeGANSettings
from timediff.networks.recurrent import Recurrent
from timediff.randomness import Noise
from timediff.training.turns import Turn

ETA, LAMBDA = 10.0, 0.1  # of the supervised loss, for generator and supervisor and for the embedder
RECOVERED = 10.0  # of √MSE, beside the loss that keeps latent columns standardised
ENOUGH = 0.15  # a discriminator with a lower loss waits
MOST, AT_ONCE = 5000, 64  # stays that the supervisor's beginning is measured on, and that are embedded together


class Supervisor(NextStep):
    """A latent series, from its first step on."""

    def __init__(self, columns: int, settings: TimeGANSettings, hidden: int) -> None:
        super().__init__(columns, settings.model, hidden, across=True)
        self.start = nn.Parameter(torch.zeros(columns))
        self.start_factor = Factor(columns)

    @torch.no_grad()
    def begin(self, series: Tensor) -> None:
        super().begin(series)
        first = series[:, 0].double()
        self.start.copy_(first.mean(dim=0))
        self.start_factor.begin(first.T.cov(correction=0) + BLUR**2 * torch.eye(first.shape[1], device=first.device))

    def series(self, z: Tensor) -> Tensor:
        """From innovations (B, L, P)."""
        first = self.start + z[:, 0] @ self.start_factor().T
        return torch.cat([first[:, None], self.free(first, z[:, 1:])[0]], dim=1)

    def surprised(self, h: Tensor) -> Tensor:
        """−log p of latent series (B, L, P), a column of a step but the first."""
        mean, spread, _, _ = self(h[:, :-1])
        first = self.start_factor.surprise(h[:, 0] - self.start)
        return self.surprise(mean, spread, h[:, 1:]) + first / (h.shape[1] - 1)

    def unexpected(self, h: Tensor) -> Tensor:
        """The squared error of what it expects."""
        return mse_loss(self(h[:, :-1])[0], h[:, 1:])


class TimeGANNetwork(nn.Module):
    """Latent steps have as many columns as a stay, each about standardised."""

    def __init__(self, columns: Columns, settings: TimeGANSettings, hidden: int) -> None:
        super().__init__()
        model, self.width = settings.model, columns.width
        self.noise = model.noise or self.width

        def block(inputs: int, outputs: int, **more: bool) -> Recurrent:
            return Recurrent(inputs, outputs, hidden, model.layers, model.cell, **more)

        self.embedder = block(self.width, self.width, skip=True)
        self.recovery = block(self.width, self.width, skip=True)
        self.generator = block(self.width + self.noise, self.width)
        nn.init.zeros_(self.generator.output.weight)  # at first the noise itself, for which the supervisor has learnt
        nn.init.zeros_(self.generator.output.bias)
        self.supervisor = Supervisor(self.width, settings, hidden)
        self.discriminator = block(self.width, 1, bidirectional=True)

    def latent(self, z: Tensor, held: Tensor) -> Tensor:
        """Latent series from noise: of each step, and of the whole stay."""
        seen = torch.cat([z, held[:, None].expand(-1, z.shape[1], -1)], dim=-1)
        return self.supervisor.series(z + self.generator(seen).float())

    def seeds(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return noise.normal(length, self.width), noise.normal(self.noise)

    def generate(self, z: Tensor, held: Tensor, *, length: int) -> Tensor:
        recovered: Tensor = self.recovery(self.latent(z, held))
        return recovered


class TimeGAN(Rival[TimeGANSettings]):
    name: ClassVar[str] = "timegan"
    fewest_steps: ClassVar[int] = 2

    def _build(self, codec: Codec) -> nn.Module:
        return TimeGANNetwork(Columns(codec), self.settings, self._width(codec))

    def _turns(self, codec: Codec, device: torch.device) -> tuple[Turn, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial
        updates, phases = self.settings.training.steps, self.settings.phases
        joint = min(round(updates * (phases.embedding + phases.supervised)), updates - 1)
        alone = min(round(updates * phases.embedding), joint)

        def seen(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> tuple[TimeGANNetwork, Tensor]:
            """The network, and the batch as it sees it in latent space, with nothing to learn from there."""
            assert isinstance(network, TimeGANNetwork)
            with torch.no_grad():
                return network, blurred(network.embedder(columns.join(*batch)).float(), noise)

        def coded(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> tuple[Tensor, dict[str, Tensor]]:
            """Latent series, and the losses of embedder and recovery."""
            assert isinstance(network, TimeGANNetwork)
            x = columns.join(*batch)
            h = network.embedder(x).float()
            error = mse_loss(network.recovery(blurred(h, noise)).float(), x)
            return h, {"total": RECOVERED * (error + 1e-12).sqrt() + _standardised(h), "error": error}

        def embedding(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            return coded(network, batch, noise)[1]

        def begin(network: nn.Module, data: tuple[Tensor, ...]) -> None:
            assert isinstance(network, TimeGANNetwork)
            few = tuple(part[:: -(-len(part) // MOST)] for part in data)
            with torch.no_grad():
                latent = [network.embedder(part).float() for part in torch.split(columns.join(*few), AT_ONCE)]
                network.supervisor.begin(torch.cat(latent))

        def supervised(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, h = seen(network, batch, noise)
            return {"total": gan.supervisor.surprised(h)}

        def generator(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, h = seen(network, batch, noise)
            fooled = called_real(gan.discriminator(gan.latent(*gan.seeds(noise, h.shape[1]))))
            surprise = gan.supervisor.surprised(h)
            return {"total": fooled + ETA * surprise, "fooled": fooled, "surprise": surprise}

        def embedder(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, TimeGANNetwork)
            h, losses = coded(network, batch, noise)
            return {**losses, "total": losses["total"] + LAMBDA * network.supervisor.unexpected(h)}

        def discriminator(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, h = seen(network, batch, noise)
            with torch.no_grad():
                made = gan.latent(*gan.seeds(noise, h.shape[1]))
            losses = contested(gan.discriminator, torch.cat([h, made]), noise, adversarial.smooth).losses
            return {**losses, "skip": (losses["told"] < ENOUGH).float()}

        coding, unbegun = ("embedder", "recovery"), begin if alone == joint else None
        judging, rounds = phases.together * adversarial.lr, adversarial.rounds
        return (
            Turn(embedding, "embedding", coding, end=alone),
            Turn(supervised, "supervised", ("supervisor",), first=alone, end=joint, begin=begin),
            Turn(generator, "generator", ("generator", "supervisor"), phases.together, first=joint, begin=unbegun),
            Turn(embedder, "embedder", coding, phases.together, first=joint),
            Turn(discriminator, "discriminator", ("discriminator",), judging, rounds, first=joint),
        )


def _standardised(h: Tensor) -> Tensor:
    """How far latent columns are from mean 0 and spread 1."""
    columns = h.flatten(0, 1)
    spread = (columns.var(dim=0, correction=0) + 1e-6).sqrt()
    return (columns.mean(dim=0).square() + (spread - 1).square()).mean()
