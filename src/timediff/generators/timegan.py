"""TimeGAN: a GAN in the latent space of an autoencoder, with a supervisor of its steps (Yoon et al. 2019).

Learnt in three phases: embedder and recovery; the supervisor, which predicts the next latent step; and all together.
The discriminator sees latent series. Beside the paper's losses the generator is told mean and spread of every column,
and the losses are weighted, as in the authors' published implementation.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from timediff.codec import Codec
from timediff.generators.adversarial import called_fake, called_real, examined, holding
from timediff.generators.columns import Columns
from timediff.generators.rival import Rival
from timediff.generators.settings import TimeGANSettings
from timediff.networks.recurrent import Recurrent
from timediff.randomness import Noise
from timediff.training.turns import Turn

RECOVERED, SUPERVISED, MOMENTS = 10.0, 100.0, 100.0  # weights of √MSE, √MSE and of means and spreads
LAMBDA = 0.1  # of the supervised loss for the embedder
ENOUGH = 0.15  # a discriminator with a lower loss waits


class TimeGANNetwork(nn.Module):
    """Values and latent steps lie in [0, 1]."""

    def __init__(self, columns: Columns, settings: TimeGANSettings, hidden: int) -> None:
        super().__init__()
        model, width = settings.model, columns.width
        self.noise, self.held = model.noise or width, model.held

        def block(inputs: int, outputs: int, layers: int, **more: bool) -> Recurrent:
            return Recurrent(inputs, outputs, hidden, layers, model.cell, **more)

        self.embedder = block(width, hidden, model.layers)
        self.recovery = block(hidden, width, model.layers)
        self.generator = block(self.noise, hidden, model.layers)
        self.supervisor = block(hidden, hidden, max(1, model.layers - 1))
        self.discriminator = block(hidden, 1, model.layers, bidirectional=True)

    def embedded(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.embedder(x))

    def recovered(self, h: Tensor) -> Tensor:
        return torch.sigmoid(self.recovery(h))

    def supervised(self, h: Tensor) -> Tensor:
        """Each step's successor."""
        return torch.sigmoid(self.supervisor(h))

    def latent(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Latent series from noise, before and after the supervisor."""
        made = torch.sigmoid(self.generator(z))
        return made, self.supervised(made)

    def seeds(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return (holding(noise.uniform(length, self.noise), self.held),)

    def generate(self, z: Tensor, *, length: int) -> Tensor:
        return 2 * self.recovered(self.latent(z)[1]) - 1


class TimeGAN(Rival[TimeGANSettings]):
    name: ClassVar[str] = "timegan"
    fewest_steps: ClassVar[int] = 2

    def _build(self, codec: Codec) -> nn.Module:
        return TimeGANNetwork(Columns(codec), self.settings, self._width(codec))

    def _turns(self, codec: Codec, device: torch.device) -> tuple[Turn, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial
        updates, phases = self.settings.training.steps, self.settings.phases
        alone, together = round(updates * phases.embedding), round(updates * (phases.embedding + phases.supervised))

        def seen(network: nn.Module, batch: tuple[Tensor, ...]) -> tuple[TimeGANNetwork, Tensor]:
            assert isinstance(network, TimeGANNetwork)
            return network, (columns.join(*batch) + 1) / 2

        def embedding(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            error = mse_loss(gan.recovered(gan.embedded(x)).float(), x)
            return {"total": RECOVERED * _root(error), "error": error}

        def supervised(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            with torch.no_grad():
                h = gan.embedded(x)
            return {"total": _next_step(gan, h)}

        def generator(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            made, likely = gan.latent(*gan.seeds(noise, x.shape[1]))
            with torch.no_grad():
                h = gan.embedded(x)
            fooled = called_real(gan.discriminator(likely)) + called_real(gan.discriminator(made))
            step, moments = _next_step(gan, h), _moments(gan.recovered(likely).float(), x)
            total = fooled + SUPERVISED * _root(step) + MOMENTS * moments
            return {"total": total, "fooled": fooled, "supervised": step, "moments": moments}

        def embedder(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            h = gan.embedded(x)
            error = mse_loss(gan.recovered(h).float(), x)
            return {"total": RECOVERED * _root(error) + LAMBDA * _next_step(gan, h), "error": error}

        def discriminator(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            with torch.no_grad():
                h, (made, likely) = gan.embedded(x), gan.latent(*gan.seeds(noise, x.shape[1]))
            series = torch.cat([h, likely, made])
            logits, rough = examined(gan.discriminator, series, noise, adversarial.smooth)
            real, *fake = logits.chunk(3)
            told = called_real(real) + called_fake(fake[0]) + called_fake(fake[1])
            total = told + adversarial.smooth * rough
            return {"total": total, "told": told, "rough": rough, "skip": (told < ENOUGH).float()}

        coding = ("embedder", "recovery")
        return (
            Turn(embedding, "embedding", coding, end=alone),
            Turn(supervised, "supervised", ("supervisor",), first=alone, end=together),
            Turn(generator, "generator", ("generator", "supervisor"), times=2, first=together),
            Turn(embedder, "embedder", coding, times=2, first=together),
            Turn(
                discriminator, "discriminator", ("discriminator",), adversarial.lr, adversarial.rounds, first=together
            ),
        )


def _next_step(gan: TimeGANNetwork, h: Tensor) -> Tensor:
    return mse_loss(gan.supervised(h)[:, :-1].float(), h[:, 1:].float())


def _moments(made: Tensor, real: Tensor) -> Tensor:
    """How far means and spreads of the columns at each step are from those of the batch."""
    spreads = [(one.var(dim=0, correction=0) + 1e-6).sqrt() for one in (made, real)]
    means = [one.mean(dim=0) for one in (made, real)]
    return (spreads[0] - spreads[1]).abs().mean() + (means[0] - means[1]).abs().mean()


def _root(error: Tensor) -> Tensor:
    return (error + 1e-12).sqrt()
