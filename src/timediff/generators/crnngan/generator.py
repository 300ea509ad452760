"""C-RNN-GAN as a generator: pretraining, both losses, and who waits."""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.adversarial import (
    discriminator_loss,
    discriminator_objective,
    loss_if_fake,
    loss_if_real,
)
from timediff.generators.common.baseline import Baseline
from timediff.generators.common.columns import Columns
from timediff.generators.crnngan.network import FeedbackGAN
from timediff.generators.crnngan.settings import CRNNGANSettings
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective


class CRNNGAN(Baseline[CRNNGANSettings]):
    name: ClassVar[str] = "crnngan"
    Settings = CRNNGANSettings
    preset: ClassVar[str] = "crnngan"

    def build(self, codec: Codec) -> nn.Module:
        return FeedbackGAN(Columns(codec), self.settings, self.hidden)

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial
        ahead, updates = adversarial.freeze, self.settings.training.steps
        start = min(round(updates * self.settings.phases.pretraining), updates - 1)

        def sample(network: nn.Module, x: Tensor, noise: Noise) -> tuple[FeedbackGAN, Tensor]:
            assert isinstance(network, FeedbackGAN)
            return network, network.generate(*network.sample_noise(noise, x.shape[1]), length=x.shape[1])

        def pretrain(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, FeedbackGAN)
            x = columns.of(batch)
            return {"total": mse_loss(network.predict(x, *network.sample_noise(noise, x.shape[1])).float(), x)}

        def generate(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, made = sample(network, batch.continuous, noise)
            (real, fake), (wanted, got) = gan.discriminate(columns.of(batch), made)
            matched = matching(got.float(), wanted.float().detach(), pairs=adversarial.matching == "pairs")
            fooling, entropy = loss_if_real(fake), loss_if_real(real) + loss_if_fake(fake)
            return {"total": matched, "fooling": fooling, "skip": (fooling < ahead * entropy).float()}

        def discriminate(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            with torch.no_grad():
                gan, made = sample(network, batch.continuous, noise)
            series = torch.cat([columns.of(batch), made])
            output = discriminator_loss(gan.logits, series, noise, adversarial.gradient_penalty)
            skip = output.losses["entropy"] < ahead * loss_if_real(output.fake)
            return {**output.losses, "skip": skip.float()}

        pretraining = (Objective(pretrain, "pretraining", ("generator",), end=start),) if start else ()
        return (
            *pretraining,
            discriminator_objective(discriminate, adversarial, first=start),
            Objective(generate, "generator", ("generator",), repeats=adversarial.generator_rounds, first=start),
        )


def matching(got: Tensor, wanted: Tensor, *, pairs: bool) -> Tensor:
    """How far what is seen (B, L, width) in generated stays is from what is seen in real ones.

    Of pairs of stays it is the squared distance, as in the paper; or else the error of the batch's mean.
    """
    if pairs:
        return (got - wanted).square().sum(dim=(1, 2)).mean()
    return mse_loss(got.mean(dim=0), wanted.mean(dim=0))
