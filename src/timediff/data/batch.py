"""Batch: encoded stays as tensors. Layout: whose each of their columns is, for every part that computes with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

import torch
from torch import Tensor, nn

Index = Tensor | slice
# What a class says of the feature's value: it is one of many; it is the class's own; it is the one before; it follows
# from other features; there is none.
Meaning = Literal["any", "fixed", "repeat", "derived", "missing"]


@dataclass(frozen=True)
class Channel:
    """One channel: a feature's values, its mask (1 = missing), or how each value is recorded, missing being a class."""

    feature: str
    part: Literal["value", "mask", "recording"]
    classes: int = 0  # K; 0 = continuous
    static: bool = False  # the same at every step
    meanings: tuple[Meaning, ...] = ()  # of the classes of a mask or a recording
    scores: tuple[float, ...] = ()  # of those that are fixed, as the channel of values has them; 0 of all others


@dataclass(frozen=True)
class Layout:
    """The channels of a batch: continuous ones, then discrete ones of K classes each."""

    continuous: tuple[Channel, ...]
    discrete: tuple[Channel, ...]

    @staticmethod
    def of(continuous: int, classes: Sequence[int], static: Sequence[bool] | None = None) -> "Layout":
        """A layout by numbers alone; `static` says which discrete channels are."""
        held = static or (False,) * len(classes)
        return Layout(
            tuple(Channel(f"x{i}", "value") for i in range(continuous)),
            tuple(Channel(f"c{i}", "value", k, one) for i, (k, one) in enumerate(zip(classes, held, strict=True))),
        )

    @property
    def classes(self) -> tuple[int, ...]:
        return tuple(channel.classes for channel in self.discrete)

    @property
    def width(self) -> int:
        """Columns of continuous channels and one-hot classes: P_r + ΣK."""
        return len(self.continuous) + sum(self.classes)

    def discrete_where(self, *, static: bool) -> list[int]:
        """Positions of the static, or of the temporal, among the discrete channels."""
        return [i for i, channel in enumerate(self.discrete) if channel.static is static]


@dataclass(frozen=True)
class Batch:
    """Encoded stays. A static channel repeats its value at every step."""

    continuous: Tensor  # (B, L, P_r)
    discrete: Tensor  # (B, L, P_d), class indices
    lengths: Tensor  # (B,) steps of each stay; all are L for now
    intervals: Tensor | None = None  # (B, L, P_r, 2): all numbers that are decoded as the same value; None = no others

    @staticmethod
    def of(continuous: Tensor, discrete: Tensor, intervals: Tensor | None = None) -> "Batch":
        """Stays of equal length."""
        stays, steps = continuous.shape[:2]
        return Batch(continuous, discrete, torch.full((stays,), steps, device=continuous.device), intervals)

    def __len__(self) -> int:
        return len(self.continuous)

    def __getitem__(self, index: Index) -> "Batch":
        intervals = None if self.intervals is None else self.intervals[index]
        return Batch(self.continuous[index], self.discrete[index], self.lengths[index], intervals)

    @property
    def steps(self) -> int:
        """L, the length of the longest."""
        return self.continuous.shape[1]

    @property
    def device(self) -> torch.device:
        return self.continuous.device

    def to(self, device: torch.device | str) -> "Batch":
        intervals = None if self.intervals is None else self.intervals.to(device)
        return Batch(self.continuous.to(device), self.discrete.to(device), self.lengths.to(device), intervals)

    def cpu(self) -> "Batch":
        """On the CPU, classes as they are stored: half of what there would be to copy from a GPU."""
        return Batch(self.continuous.cpu(), self.discrete.to(torch.int32).cpu(), self.lengths.cpu())


class OneHot(nn.Module):
    """The one-hot columns of several discrete channels: a class index a channel ⇄ a column a class."""

    owner: Tensor  # (ΣK,) the channel of each column
    of_class: Tensor  # (ΣK,) its class

    def __init__(self, classes: Sequence[int]) -> None:
        super().__init__()
        self.classes = tuple(classes)
        self.offsets = [0, *accumulate(classes)]  # the first column of each channel
        sizes = torch.tensor(self.classes, dtype=torch.long)
        self.register_buffer("owner", torch.repeat_interleave(torch.arange(len(sizes)), sizes), persistent=False)
        of_class = torch.cat([torch.arange(k) for k in classes]) if self.classes else torch.zeros(0, dtype=torch.long)
        self.register_buffer("of_class", of_class, persistent=False)

    def forward(self, c: Tensor) -> Tensor:
        """(…, n) class indices → (…, ΣK)."""
        return (c[..., self.owner] == self.of_class).float()
