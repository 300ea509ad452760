"""RCGAN as a generator: both losses, and the label's rates."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.adversarial import discriminator_loss, discriminator_objective, loss_if_real
from timediff.generators.common.baseline import Baseline
from timediff.generators.common.columns import Columns
from timediff.generators.common.label import label_channel, label_rates
from timediff.generators.rcgan.network import ConditionalGAN
from timediff.generators.rcgan.settings import RCGANSettings
from timediff.runtime.progress import Say
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective


class RCGAN(Baseline[RCGANSettings]):
    name: ClassVar[str] = "rcgan"
    Settings = RCGANSettings
    preset: ClassVar[str] = "rcgan"

    def build(self, codec: Codec) -> nn.Module:
        return ConditionalGAN(Columns(codec), label_channel(codec), self.settings, self.hidden)

    def prepare(self, network: nn.Module, data: Batch, codec: Codec, say: Say) -> None:
        assert isinstance(network, ConditionalGAN)
        if network.label is not None:
            network.rates.copy_(label_rates(data, network.label, len(network.rates)))

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial

        def sample(network: nn.Module, x: Tensor, noise: Noise) -> tuple[ConditionalGAN, Tensor]:
            assert isinstance(network, ConditionalGAN)
            return network, network.generate(*network.sample_noise(noise, x.shape[1]), length=x.shape[1])

        def generate(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            gan, made = sample(network, batch.continuous, noise)
            return {"total": loss_if_real(gan.discriminator(made))}

        def discriminate(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            with torch.no_grad():
                gan, made = sample(network, batch.continuous, noise)
            series = torch.cat([columns.of(batch), made])
            return discriminator_loss(gan.discriminator, series, noise, adversarial.gradient_penalty).losses

        return (
            discriminator_objective(discriminate, adversarial),
            Objective(generate, "generator", ("generator",), repeats=adversarial.generator_rounds),
        )
