"""EHR-M-GAN as a generator: the VAEs are pretrained, and then all networks are trained together."""

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.generators.common.baseline import Baseline
from timediff.generators.common.columns import Columns
from timediff.generators.common.label import label_channel, label_rates
from timediff.generators.ehrmgan.network import CoupledGAN
from timediff.generators.ehrmgan.objectives import discriminator_loss, generator_loss, stay_losses, vae_loss
from timediff.generators.ehrmgan.settings import EHRMGANSettings
from timediff.generators.ehrmgan.sides import Sides
from timediff.runtime.progress import Say
from timediff.runtime.randomness import Noise
from timediff.training.objective import LossFunction, Objective


class EHRMGAN(Baseline[EHRMGANSettings]):
    name: ClassVar[str] = "ehrmgan"
    Settings = EHRMGANSettings
    preset: ClassVar[str] = "ehrmgan"

    def build(self, codec: Codec) -> nn.Module:
        return CoupledGAN(_sides(codec), codec.schema.steps, self.settings, self.hidden)

    def prepare(self, network: nn.Module, data: Batch, codec: Codec, say: Say) -> None:
        assert isinstance(network, CoupledGAN)
        if network.sides.label is not None:
            network.rates.copy_(label_rates(data, network.sides.label, network.sides.classes))

    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        columns, sides = Columns(codec), list(_sides(codec).widths)
        vae, adversarial, phases = self.settings.vae, self.settings.adversarial, self.settings.phases
        updates = self.settings.training.steps
        joint = min(round(updates * phases.pretraining), updates - 1)

        def of(loss: Callable[..., dict[str, Tensor]], side: str, settings: object) -> LossFunction:
            def objective(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
                return loss(side, network, columns.of(batch), noise, settings)

            return objective

        def modules(side: str) -> tuple[str, ...]:
            return f"vae.sides.{side}", "vae.shared"

        before = [
            Objective(of(vae_loss, one, vae), f"{one}-pretraining", modules(one), phases.pretraining_lr, end=joint)
            for one in sides
        ]
        turns = sides[::-1]  # once all are trained together, the discrete side is first
        discriminating = [
            Objective(
                of(discriminator_loss, one, adversarial), f"{one}-discriminator", (f"discriminators.{one}",),
                adversarial.lr, adversarial.rounds, first=joint,
            )
            for one in turns
        ]  # fmt: skip
        generating = [
            Objective(
                of(generator_loss, one, adversarial), f"{one}-generator", (f"generators.{one}",),
                repeats=adversarial.generator_rounds, first=joint,
            )
            for one in turns
        ]  # fmt: skip
        after = [
            Objective(of(vae_loss, one, vae), f"{one}-vae", modules(one), phases.vae_lr, first=joint) for one in turns
        ]
        return (*before, *discriminating, *generating, *after)

    def losses_of(self, network: nn.Module, batch: Batch, codec: Codec, noise: Noise) -> dict[str, Tensor]:
        """Those of the VAEs, which see real stays; what generators and discriminators minimise is of no single stay."""
        assert isinstance(network, CoupledGAN)
        return stay_losses(network, Columns(codec).of(batch))


def _sides(codec: Codec) -> Sides:
    return Sides(Columns(codec), label_channel(codec))
