"""TimeGAN as a generator: its three phases."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.adversarial import discriminator_objective, with_penalty
from timediff.generators.common.baseline import Baseline
from timediff.generators.common.columns import Columns
from timediff.generators.common.stay_losses import by_kind_and_part, by_part
from timediff.generators.timegan.losses import (
    ENOUGH,
    ETA,
    LAMBDA,
    MOMENTS,
    RECOVERY,
    discriminator_entropy,
    fooling_loss,
    moment_loss,
    root,
    supervised_loss,
)
from timediff.generators.timegan.network import TimeGANNetwork
from timediff.generators.timegan.settings import TimeGANSettings
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective


class TimeGAN(Baseline[TimeGANSettings]):
    name: ClassVar[str] = "timegan"
    Settings = TimeGANSettings
    preset: ClassVar[str] = "timegan"
    min_steps: ClassVar[int] = 2

    def build(self, codec: Codec) -> nn.Module:
        return TimeGANNetwork(Columns(codec), self.settings, self.hidden)

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial
        alone, joint = self.settings.phases.ends(self.settings.training.steps)

        def seen(network: nn.Module, batch: Batch) -> tuple[TimeGANNetwork, Tensor]:
            """The network, and the batch in [0, 1]."""
            assert isinstance(network, TimeGANNetwork)
            return network, (columns.of(batch) + 1) / 2

        def embedding(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            error = mse_loss(gan.recover(gan.embed(x)), x)
            return {"total": RECOVERY * root(error), "error": error}

        def supervised(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            with torch.no_grad():
                h = gan.embed(x)
            return {"total": supervised_loss(gan.supervise(h), h)}

        def generator(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            with torch.no_grad():
                h = gan.embed(x)
            e, made = gan.latent(*gan.sample_noise(noise, x.shape[1]))
            fooling = fooling_loss(gan.discriminator(made), gan.discriminator(e))
            expected, moments = supervised_loss(gan.supervise(h), h), moment_loss(gan.recover(made), x)
            total = fooling + ETA * root(expected) + MOMENTS * moments
            return {"total": total, "fooling": fooling, "supervised": expected, "moments": moments}

        def embedder(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            h = gan.embed(x)
            error, expected = mse_loss(gan.recover(h), x), supervised_loss(gan.supervise(h), h)
            return {"total": RECOVERY * root(error) + LAMBDA * expected, "error": error, "supervised": expected}

        def discriminator(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, x = seen(network, batch)
            with torch.no_grad():
                e, made = gan.latent(*gan.sample_noise(noise, x.shape[1]))
                series = torch.cat([gan.embed(x), made, e])
            logits, penalty = with_penalty(gan.discriminator, series, noise, adversarial.gradient_penalty)
            entropy = discriminator_entropy(logits)
            total = entropy + adversarial.gradient_penalty * penalty
            return {"total": total, "entropy": entropy, "penalty": penalty, "skip": (entropy < ENOUGH).float()}

        autoencoder, rounds = ("embedder", "recovery"), adversarial.generator_rounds
        return (
            Objective(embedding, "embedding", autoencoder, end=alone),
            Objective(supervised, "supervised", ("supervisor",), first=alone, end=joint),
            Objective(generator, "generator", ("generator", "supervisor"), repeats=rounds, first=joint),
            Objective(embedder, "embedder", autoencoder, repeats=rounds, first=joint),
            discriminator_objective(discriminator, adversarial, first=joint),
        )

    def losses_of(self, network: nn.Module, batch: Batch, codec: Codec, noise: Noise) -> dict[str, Tensor]:
        """The squared errors of recovery and of the supervisor, which see real stays; a GAN has no likelihood."""
        assert isinstance(network, TimeGANNetwork)
        columns = Columns(codec)
        x = (columns.of(batch) + 1) / 2
        h = network.embed(x)
        expected = (network.supervise(h)[:, :-1] - h[:, 1:]).square().mean(dim=-1)
        return {**by_kind_and_part((network.recover(h) - x).square(), columns), "supervised": by_part(expected)}
