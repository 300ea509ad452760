"""RCGAN: a recurrent generator from noise at every step, and a recurrent discriminator (Esteban, Hyland, Rätsch 2017).

Both are conditioned on the label, which is sampled by its rate in the training stays; without a label it is their RGAN.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from timediff.generators.common.columns import Columns
from timediff.generators.rcgan.settings import RCGANSettings
from timediff.networks.recurrent import Recurrent
from timediff.runtime.randomness import Noise


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
        self.generator = Recurrent(
            noise + known, columns.width - known, hidden, model.layers, model.cell, skip=model.skip
        )
        with torch.no_grad():
            self.generator.output.weight[:, hidden:] = 0
        self.discriminator = Recurrent(columns.width, 1, hidden, model.layers, model.cell)

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
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


def holding(z: Tensor, fraction: float) -> Tensor:
    """Noise (B, L, n) of which a fraction is that of the first step throughout: a level, beside what happens."""
    held = round(fraction * z.shape[-1])
    return torch.cat([z[:, :1, :held].expand(-1, z.shape[1], -1), z[..., held:]], dim=-1)
