"""Bilateral LSTMs: the generators of both kinds of data, each of which sees the other's last hidden states."""

from collections.abc import Mapping, Sequence
from typing import cast

import torch
from torch import Tensor, nn

INITIAL_STD = 0.1  # of all weights


class BilateralCell(nn.Module):
    """An LSTM cell with gates W x + U h + V h′, where h′ is the other generator's last state at this layer."""

    def __init__(self, inputs: int, hidden: int, *, coupled: bool) -> None:
        super().__init__()
        self.gates = nn.Linear(inputs + hidden * (1 + coupled), 4 * hidden, bias=False)  # W, U and V side by side
        nn.init.normal_(self.gates.weight, std=INITIAL_STD)

    def forward(self, x: Tensor, h: Tensor, c: Tensor, others: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        enter, forget, leave, new = self.gates(torch.cat([x, h, *others], dim=-1)).chunk(4, dim=-1)
        c = forget.sigmoid() * c + enter.sigmoid() * new.tanh()
        return leave.sigmoid() * c.tanh(), c


class BilateralGenerator(nn.Module):
    """Latent steps of one kind of data from noise."""

    def __init__(self, noise: int, outputs: int, hidden: int, layers: int, *, coupled: bool) -> None:
        super().__init__()
        self.hidden = hidden
        self.cells = nn.ModuleList(
            BilateralCell(hidden if i else noise, hidden, coupled=coupled) for i in range(layers)
        )
        self.output = nn.Linear(hidden, outputs)

    def initial(self, z: Tensor) -> list[tuple[Tensor, Tensor]]:
        zeros = z.new_zeros(len(z), self.hidden)
        return [(zeros, zeros)] * len(self.cells)

    def step(
        self, z: Tensor, own: Sequence[tuple[Tensor, Tensor]], others: Sequence[Sequence[tuple[Tensor, Tensor]]]
    ) -> list[tuple[Tensor, Tensor]]:
        """The states (h, c) of each layer after noise (B, n), from its own before and those of other generators."""
        x, states = z, []
        for i, cell in enumerate(self.cells):
            h, c = cell(x, *own[i], [other[i][0] for other in others])
            states.append((h, c))
            x = h
        return states


def coupled_latents(generators: nn.ModuleDict, noise: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Latent series (B, L, latent) of each BilateralGenerator from its noise (B, L, n), step by step together."""
    both = {name: cast(BilateralGenerator, one) for name, one in generators.items()}
    before = {name: one.initial(noise[name]) for name, one in both.items()}
    last: dict[str, list[Tensor]] = {name: [] for name in both}
    for step in range(next(iter(noise.values())).shape[1]):
        after = {}
        for name, one in both.items():
            others = [states for other, states in before.items() if other != name]
            after[name] = one.step(noise[name][:, step], before[name], others)
            last[name].append(after[name][-1][0])
        before = after
    return {name: one.output(torch.stack(last[name], dim=1)) for name, one in both.items()}
