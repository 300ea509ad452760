"""R networks as one: `(L, B, R · C)` → `(L or 1, B, R, outputs)`, where none sees what another one does."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import conv1d, relu

KERNEL = 5  # steps that a convolution sees at once


@dataclass(frozen=True)
class Recipe:
    """What a network is, and how it is trained."""

    hidden: int
    layers: int = 1
    reads: Literal["last", "summary", "every step"] = "last"  # what the linear head sees
    iterations: int = 2000
    batch: int = 128  # stays from each pool
    rate: float = 1e-3
    patience: int | None = None  # looks at the validation stays without a lower loss before it stops; None = never
    network: Literal["gru", "convolution"] = "gru"


class Parallel(nn.Module, ABC):
    """What all of them share: each network's own part of every parameter, and its own initial weights."""

    def __init__(self, recipe: Recipe, count: int) -> None:
        super().__init__()
        self.recipe, self.count = recipe, count

    @abstractmethod
    def blocks(self, name: str, values: Tensor) -> list[Tensor]:
        """Each network's own part of a parameter (or of a tensor of its shape), as views."""

    def draw(self, rngs: Sequence[np.random.Generator], inputs: Callable[[str], int]) -> None:
        """Initial weights, each network's from its own stream, by how many inputs the parameter sums up."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                bound = inputs(name) ** -0.5
                parameter.zero_()
                for block, rng in zip(self.blocks(name, parameter), rngs, strict=True):
                    block.copy_(torch.from_numpy(rng.uniform(-bound, bound, tuple(block.shape))))


class ParallelGRUs(Parallel):
    """GRUs side by side as one of R · H units, whose weight matrices are block-diagonal."""

    def __init__(self, recipe: Recipe, inputs: int, outputs: int, rngs: Sequence[np.random.Generator]) -> None:
        super().__init__(recipe, len(rngs))
        R, H = self.count, recipe.hidden
        features = 2 * H + 2 * inputs if recipe.reads == "summary" else H
        # Without PyTorch's own initial weights, which would come from its global state.
        self.gru = nn.GRU(R * inputs, R * H, recipe.layers, device="meta").to_empty(device="cpu")
        self.head = nn.Parameter(torch.empty(R, features, outputs))
        self.bias = nn.Parameter(torch.empty(R, outputs))
        self.draw(rngs, lambda name: features if name in ("head", "bias") else H)
        for name, parameter in self.named_parameters():
            if "weight" in name and R > 1:
                self._keep_apart(name, parameter)

    def blocks(self, name: str, values: Tensor) -> list[Tensor]:
        R, H = self.count, self.recipe.hidden
        if name in ("head", "bias"):
            return list(values)
        if "bias" in name:
            return list(values.view(3, R, H).unbind(1))
        whole = values.view(3, R, H, R, -1)  # gates, networks, units, networks, inputs
        return [whole[:, r, :, r] for r in range(R)]

    def _keep_apart(self, name: str, weight: nn.Parameter) -> None:
        """Entries between networks start at zero and have no gradient, so Adam leaves them at zero."""
        mask = torch.zeros_like(weight)
        for block in self.blocks(name, mask):
            block.fill_(1.0)
        self.register_buffer(name.replace(".", "_") + "_mask", mask, persistent=False)
        weight.register_hook(  # type: ignore[no-untyped-call]
            lambda gradient: gradient * getattr(self, name.replace(".", "_") + "_mask")
        )

    def forward(self, series: Tensor) -> Tensor:
        states, _ = self.gru(series)
        states = states.view(*states.shape[:2], self.count, -1)  # (L, B, R, H)
        if self.recipe.reads == "last":
            states = states[-1:]
        elif self.recipe.reads == "summary":
            # Means of |Δx| and |Δ²x|: how rough a series is shows in few stays, and a GRU needs many to find it.
            own = series.view(*series.shape[:2], self.count, -1)  # (L, B, R, C)
            rough = [own.diff(n, dim=0).abs().sum(dim=0, keepdim=True) / len(own) for n in (1, 2)]
            states = torch.cat([states.mean(dim=0, keepdim=True), states[-1:], *rough], dim=3)
        return torch.einsum("lbrf,rft->lbrt", states, self.head) + self.bias


class ParallelConvolutions(Parallel):
    """Convolutions over time, the first of the channels and the others residual with growing dilation.

    The head reads the mean and the maximum over time. Networks are groups of the same convolution.
    """

    def __init__(self, recipe: Recipe, inputs: int, outputs: int, rngs: Sequence[np.random.Generator]) -> None:
        super().__init__(recipe, len(rngs))
        R, H = self.count, recipe.hidden
        self.first = nn.Parameter(torch.empty(R * H, inputs, KERNEL))
        self.others = nn.ParameterList(torch.empty(R * H, H, KERNEL) for _ in range(recipe.layers - 1))
        self.shifts = nn.ParameterList(torch.empty(R * H) for _ in range(recipe.layers))
        self.head = nn.Parameter(torch.empty(R, 2 * H, outputs))
        self.bias = nn.Parameter(torch.empty(R, outputs))
        summed = {"first": inputs * KERNEL, "others": H * KERNEL, "shifts": H * KERNEL}
        self.draw(rngs, lambda name: summed.get(name.split(".")[0], 2 * H))

    def blocks(self, name: str, values: Tensor) -> list[Tensor]:
        return list(values) if name in ("head", "bias") else list(values.view(self.count, -1, *values.shape[1:]))

    def forward(self, series: Tensor) -> Tensor:
        x = series.permute(1, 2, 0)  # (B, R · C, L)
        x = relu(conv1d(x, self.first, self.shifts[0], padding="same", groups=self.count))  # (B, R · H, L)
        for i, (weight, shift) in enumerate(zip(self.others, self.shifts[1:], strict=True)):
            x = x + relu(conv1d(x, weight, shift, padding="same", dilation=2 ** (i + 1), groups=self.count))
        read = torch.cat([own.view(len(x), self.count, -1) for own in (x.mean(dim=2), x.amax(dim=2))], dim=2)
        return (torch.einsum("brf,rft->brt", read, self.head) + self.bias)[None]


NETWORKS: dict[str, type[ParallelGRUs] | type[ParallelConvolutions]] = {
    "gru": ParallelGRUs,
    "convolution": ParallelConvolutions,
}


def parallel(recipe: Recipe, inputs: int, outputs: int, rngs: Sequence[np.random.Generator]) -> Parallel:
    """As many networks as there are streams."""
    return NETWORKS[recipe.network](recipe, inputs, outputs, rngs)
