"""P-Forcing as a generator: the loss of the next step, and a discriminator of its behaviour."""

from typing import ClassVar

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.adversarial import (
    accuracy,
    discriminator_loss,
    discriminator_objective,
    loss_if_real,
)
from timediff.generators.common.columns import Columns
from timediff.generators.pforcing.network import Professor
from timediff.generators.pforcing.settings import PForcingSettings
from timediff.generators.tforcing.generator import Forcing
from timediff.runtime.randomness import Noise
from timediff.training.objective import Objective


class PForcing(Forcing[PForcingSettings]):
    name: ClassVar[str] = "pforcing"
    Settings = PForcingSettings
    preset: ClassVar[str] = "pforcing"

    def build(self, codec: Codec) -> nn.Module:
        return Professor(Columns(codec), self.settings.model, self.hidden)

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial

        def predict(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, Professor)
            forced, behaviour = network.both(columns.of(batch), noise)
            real, fake = network.discriminate(behaviour).chunk(2)
            heard = accuracy(real, fake) > adversarial.listen
            fooling = loss_if_real(fake)
            return {"total": forced + heard * fooling, "forced": forced, "fooling": fooling}

        def discriminate(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
            assert isinstance(network, Professor)
            with torch.no_grad():
                _, behaviour = network.both(columns.of(batch), noise)
            output = discriminator_loss(network.discriminate, behaviour, noise, adversarial.gradient_penalty)
            right = accuracy(output.real, output.fake)
            return {**output.losses, "accuracy": right, "skip": (right > adversarial.enough).float()}

        return (
            Objective(predict, "generator", ("next",), repeats=adversarial.generator_rounds),
            discriminator_objective(discriminate, adversarial, ("behaviour", "verdict")),
        )
