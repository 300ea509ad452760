"""Recurrent blocks that several networks share."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

Cell = Literal["lstm", "gru"]
State = Any  # of an RNN between two steps: (h, c) of an LSTM, h of a GRU; None at the start


class Recurrent(nn.Module):
    """An RNN and a linear layer over its states, and with `skip` over its inputs: (B, L, inputs) → (B, L, outputs)."""

    def __init__(
        self, inputs: int, outputs: int, hidden: int, layers: int, cell: Cell, *, bidirectional: bool = False,
        skip: bool = False,
    ) -> None:  # fmt: skip
        super().__init__()
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        self.skip = skip
        self.rnn = kind(inputs, hidden, layers, batch_first=True, bidirectional=bidirectional)
        self.width = hidden * (1 + bidirectional)  # of the states
        self.output = nn.Linear(self.width + inputs * skip, outputs)

    def states(self, x: Tensor, before: State = None) -> tuple[Tensor, State]:
        """Those of the last layer, (B, L, width), and the state to go on from."""
        found: tuple[Tensor, State] = self.rnn(x, before)
        return found

    def step(self, x: Tensor, before: State = None) -> tuple[Tensor, State]:
        """The outputs of these steps, and the state to go on from."""
        states, last = self.states(x, before)
        y: Tensor = self.output(torch.cat([states, x.to(states.dtype)], dim=-1) if self.skip else states)
        return y, last

    def forward(self, x: Tensor, before: State = None) -> Tensor:
        return self.step(x, before)[0]
