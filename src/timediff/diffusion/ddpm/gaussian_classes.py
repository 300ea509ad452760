"""Classes by Gaussian diffusion: what the paper compares multinomial diffusion with (Tian et al., ablation study).

Discrete channels are numbers beside the continuous ones, and what is sampled of them becomes classes again: by rounding
one number a channel, or as the largest of one number a class.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch, Layout, OneHot
from timediff.diffusion.ddpm.groups import ClassGroup, class_groups
from timediff.diffusion.ddpm.process import MixedDiffusion
from timediff.diffusion.process import BuildNetwork, Denoiser, NoiseSource


class Rounding(nn.Module):
    """One number a channel: the class index, −1 for the first class and 1 for the last."""

    last: Tensor  # (P_d,) K − 1

    def __init__(self, classes: Sequence[int]) -> None:
        super().__init__()
        self.width = len(classes)
        self.register_buffer("last", torch.tensor(classes, dtype=torch.float32) - 1, persistent=False)

    def encode(self, c: Tensor) -> Tensor:
        """(…, P_d) class indices → (…, width)."""
        return 2 * c / self.last - 1

    def decode(self, x: Tensor) -> Tensor:
        nearest = ((x + 1) / 2 * self.last).round()
        return nearest.clamp(min=0).minimum(self.last).long()


class Softmax(nn.Module):
    """One number a class: the one-hot columns, 1 for the class and −1 for the others."""

    def __init__(self, classes: Sequence[int]) -> None:
        super().__init__()
        self.one_hot, self.groups = OneHot(classes), class_groups(classes)
        self.channels, self.width = len(classes), sum(classes)

    def encode(self, c: Tensor) -> Tensor:
        """(…, P_d) class indices → (…, width)."""
        hot: Tensor = self.one_hot(c)
        return 2 * hot - 1

    def decode(self, x: Tensor) -> Tensor:
        c = torch.empty(*x.shape[:-1], self.channels, dtype=torch.long, device=x.device)
        for group in self.groups:
            assert isinstance(group, ClassGroup)
            c[..., group.channels] = group.logits(x).softmax(-1).argmax(-1)
        return c


NUMBERS: dict[str, Callable[[Sequence[int]], Rounding | Softmax]] = {"rounding": Rounding, "softmax": Softmax}


class GaussianClasses(MixedDiffusion):
    """Gaussian diffusion of all channels: `MixedDiffusion` of a layout that has the numbers in place of the classes.

    Its loss is the mean over all entries; there is no second one that λ could weigh.
    """

    def __init__(self, layout: Layout, build: BuildNetwork, alpha_bar: Tensor, discrete: str) -> None:
        numbers = NUMBERS[discrete](layout.classes)
        super().__init__(Layout.of(len(layout.continuous) + numbers.width, ()), build, alpha_bar)
        self.numbers, self.values = numbers, len(layout.continuous)

    def encode(self, batch: Batch) -> Batch:
        numbers = self.numbers.encode(batch.discrete).to(batch.continuous.dtype)
        return Batch(torch.cat([batch.continuous, numbers], dim=-1), batch.discrete[..., :0], batch.lengths)

    def decode(self, batch: Batch) -> Batch:
        values, numbers = batch.continuous[..., : self.values], batch.continuous[..., self.values :]
        return Batch(values, self.numbers.decode(numbers), batch.lengths)

    def _of_stays(self, batch: Batch, t: Tensor, noise: NoiseSource) -> tuple[Tensor, Tensor | None]:
        return super()._of_stays(self.encode(batch), t, noise)

    def sample(
        self, noise: NoiseSource, lengths: Tensor, *, sampler: str, steps: int | None = None,
        denoisers: Sequence[Denoiser] | None = None, tick: Callable[[], None] = lambda: None,
    ) -> Batch:  # fmt: skip
        sampled = super().sample(noise, lengths, sampler=sampler, steps=steps, denoisers=denoisers, tick=tick)
        return self.decode(sampled)
