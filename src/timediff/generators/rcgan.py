"""RCGAN: a recurrent generator from noise at every step, and a recurrent discriminator (Esteban, Hyland, Rätsch 2017).

Both are told the label, which is drawn by its share of the training stays; without a label it is their RGAN.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from timediff.codec import Codec
from timediff.generators.adversarial import called_real, contested
from timediff.generators.columns import Columns
from timediff.generators.learnt import Tensors
from timediff.generators.rival import Rival
from timediff.generators.settings import RCGANSettings
from timediff.networks.recurrent import Recurrent
from timediff.progress import Say
from timediff.randomness import Noise
from timediff.training.turns import Turn


class ConditionalGAN(nn.Module):
    """`label`: the discrete channel that is a condition, if there is one."""

    rates: Tensor  # (K,) of the label's classes; (1,) without a label

    def __init__(self, columns: Columns, label: int | None, settings: RCGANSettings, hidden: int) -> None:
        super().__init__()
        model, noise = settings.model, settings.model.noise or columns.width
        self.columns, self.label, self.noise, self.held = columns, label, noise, model.held
        known = 0 if label is None else columns.widths[label]
        classes = 1 if label is None else columns.classes[label]
        self.register_buffer("rates", torch.full((classes,), 1 / classes))
        # What changes from step to step need not pass through the states, which keep what lasts. At first it does.
        self.generator = Recurrent(noise + known, columns.width - known, hidden, model.layers, model.cell, skip=True)
        with torch.no_grad():
            self.generator.output.weight[:, hidden:] = 0
        self.discriminator = Recurrent(columns.width, 1, hidden, model.layers, model.cell)

    def seeds(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        edges = self.rates.cumsum(0)
        label = torch.searchsorted(edges, noise.uniform()).clamp(max=len(edges) - 1)
        return holding(noise.normal(length, self.noise), self.held), label

    def generate(self, z: Tensor, label: Tensor, *, length: int) -> Tensor:
        if self.label is None:
            return torch.tanh(self.generator(z))
        hot = 2 * one_hot(label, len(self.rates)).to(z.dtype) - 1
        known = hot[:, 1:] if len(self.rates) == 2 else hot  # its columns
        known = known[:, None].expand(-1, length, -1)
        made = torch.tanh(self.generator(torch.cat([z, known], dim=-1)))
        place = self.columns.of_channel(self.label).start
        return torch.cat([made[..., :place], known.to(made.dtype), made[..., place:]], dim=-1)


class RCGAN(Rival[RCGANSettings]):
    name: ClassVar[str] = "rcgan"

    def _build(self, codec: Codec) -> nn.Module:
        return ConditionalGAN(Columns(codec), _label(codec), self.settings, self._width(codec))

    def _prepared(self, network: nn.Module, data: Tensors, codec: Codec, say: Say) -> None:
        assert isinstance(network, ConditionalGAN)
        if network.label is not None:
            counts = data[1][:, 0, network.label].long().bincount(minlength=len(network.rates))
            network.rates.copy_(counts / counts.sum())

    def _turns(self, codec: Codec, device: torch.device) -> tuple[Turn, ...]:
        columns, adversarial = Columns(codec), self.settings.adversarial

        def drawn(network: nn.Module, x: Tensor, noise: Noise) -> tuple[ConditionalGAN, Tensor]:
            assert isinstance(network, ConditionalGAN)
            return network, network.generate(*network.seeds(noise, x.shape[1]), length=x.shape[1])

        def generate(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            gan, made = drawn(network, batch[0], noise)
            return {"total": called_real(gan.discriminator(made))}

        def judge(network: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            with torch.no_grad():
                gan, made = drawn(network, batch[0], noise)
            series = torch.cat([columns.join(*batch), made])
            return contested(gan.discriminator, series, noise, adversarial.smooth).losses

        return (
            Turn(judge, "discriminator", ("discriminator",), adversarial.lr, adversarial.rounds),
            Turn(generate, "generator", ("generator",)),
        )


def holding(z: Tensor, share: float) -> Tensor:
    """Noise (B, L, n) of which a share is that of the first step throughout: a level, beside what happens."""
    held = round(share * z.shape[-1])
    return torch.cat([z[:, :1, :held].expand(-1, z.shape[1], -1), z[..., held:]], dim=-1)


def _label(codec: Codec) -> int | None:
    """The discrete channel with the label's values; a constant label has none."""
    named = [
        i
        for i, channel in enumerate(codec.discrete)
        if codec.schema[channel.feature].role == "label" and channel.part == "value"
    ]
    return named[0] if named else None
