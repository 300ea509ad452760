"""What is known of a stay so far: the last value of each feature, and what its values were like.

A network could learn to keep all of this. Given it, fewer stays are enough to learn how one stay differs from another.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from timediff.diffusion.autoregressive.head import StepHead

LONG_AGO = 24.0  # steps: as long as that a value counts that was never known
RECENT = 9  # steps ago that have a column each: values are measured every four hours, or every eight


class SoFar(NamedTuple):
    """Of each stay, after some steps. Of values (…, P), of one-hot classes (…, ΣK)."""

    values: Tensor  # the last known one; 0 before there is one
    age: Tensor  # steps since then
    change: Tensor  # from the one before it
    number: Tensor  # how many were known,
    total: Tensor  # their sum,
    changes: Tensor  # and that of their changes, up or down
    surprise: Tensor  # by how much the last known one was not what was expected of it,
    surprises: Tensor  # and the sum of that, up or down
    classes: Tensor  # the last that is not missing
    frequency: Tensor  # how often each class was
    steps: Tensor  # (…, 1)


class Memory(nn.Module):
    def __init__(self, head: StepHead) -> None:
        super().__init__()
        self.one_hot, self.meanings, self.values = head.one_hot, head.meanings, head.values
        self.columns = (8 + RECENT) * self.values + 2 * len(self.one_hot.owner)

    def start(self, like: Tensor) -> SoFar:
        """Of as many stays as `like` has rows."""
        values = like.new_zeros((len(like), self.values))
        hot = like.new_zeros((len(like), len(self.one_hot.owner)))
        numbers = dict.fromkeys(("values", "change", "number", "total", "changes", "surprise", "surprises"), values)
        return SoFar(**numbers, age=values + LONG_AGO, classes=hot, frequency=hot, steps=values.new_zeros(len(like), 1))

    def after(self, before: SoFar, c: Tensor, x: Tensor, known: Tensor, expected: Tensor) -> SoFar:
        """After one more step with classes (B, D) and values (B, P), of which others were `expected`."""
        first, there = before.number == 0, c != self.meanings.missing
        change = torch.where(known & ~first, x - before.values, before.change)
        hot = self.one_hot(c).to(x.dtype)
        return SoFar(
            torch.where(known, x, before.values),
            torch.where(known, 0.0, torch.where(first, LONG_AGO, before.age + 1)),
            change,
            before.number + known,
            before.total + x * known,
            before.changes + change.abs() * (known & ~first),
            torch.where(known, x - expected, before.surprise),
            before.surprises + (x - expected).abs() * known,
            torch.where(there[..., self.one_hot.owner], hot, before.classes),
            before.frequency + hot,
            before.steps + 1,
        )

    def forward(self, c: Tensor, x: Tensor, known: Tensor, expected: Tensor) -> Tensor:
        """What is shown after each step (B, L, columns), of all steps at once."""
        steps = torch.arange(x.shape[1], device=x.device)[:, None]
        values, place = last(x, known)
        ever = place >= 0
        before = torch.cat([torch.zeros_like(values[:, :1]), values[:, :-1]], dim=1)
        earlier = torch.cat([torch.zeros_like(ever[:, :1]), ever[:, :-1]], dim=1)
        changed = known & earlier
        change = torch.where(changed, x - before, 0.0)
        count = known.cumsum(dim=1)
        hot = self.one_hot(c).to(x.dtype)
        there = (c != self.meanings.missing)[..., self.one_hot.owner]
        return self.shown(
            SoFar(
                values,
                torch.where(ever, (steps - place).to(x.dtype), LONG_AGO),
                last(change, changed)[0],
                count,
                (x * known).cumsum(dim=1),
                change.abs().cumsum(dim=1),
                last(x - expected, known)[0],
                ((x - expected).abs() * known).cumsum(dim=1),
                last(hot, there)[0],
                hot.cumsum(dim=1),
                (steps + 1).to(x.dtype),
            )
        )

    def shown(self, known: SoFar) -> Tensor:
        """As columns for the network; the last known values come first."""
        ever = (known.number > 0).to(known.values.dtype)
        ages = torch.arange(RECENT, device=ever.device, dtype=ever.dtype)
        recent = (known.age[..., None] == ages).to(ever.dtype).flatten(-2)
        means = [total / (known.number + 1) for total in (known.total, known.changes, known.surprises)]
        columns = [known.values, known.age.log1p() / 2, ever, known.change, known.surprise, *means]
        columns += [known.classes, known.frequency / known.steps.clamp(min=1), recent]
        return torch.cat(columns, dim=-1)


def last(x: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
    """The last x (B, L, n) up to each step that is there, 0 where none is; and its step, −1 of none."""
    steps = torch.arange(x.shape[1], device=x.device)[:, None]
    place = torch.where(there, steps, -1).cummax(dim=1).values
    return torch.where(place >= 0, x.gather(1, place.clamp(min=0)), torch.zeros_like(x)), place
