"""RCGAN: a recurrent generator from noise at every step, and a recurrent discriminator (Esteban, Hyland, Rätsch 2017).

Both are conditioned on the label, which is sampled by its rate in the training stays; without a label it is their RGAN.
"""

import torch
from torch import Tensor, nn

from timediff.generators.common.columns import Columns
from timediff.generators.common.held_noise import holding
from timediff.generators.common.label import label_columns, sampled_label
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
        return holding(noise.normal(length, self.noise), self.held), sampled_label(self.rates, noise)

    def generate(self, z: Tensor, label: Tensor, *, length: int) -> Tensor:
        if self.label is None:
            return torch.tanh(self.generator(z))
        known = label_columns(label, len(self.rates), length).to(z.dtype)
        made = torch.tanh(self.generator(torch.cat([z, known], dim=-1)))
        place = self.columns.of_channel(self.label).start
        return torch.cat([made[..., :place], known.to(made.dtype), made[..., place:]], dim=-1)
