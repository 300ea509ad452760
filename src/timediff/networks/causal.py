"""A causal RNN: what it says of a step follows from that step's input and those before it."""

from typing import Any, Literal

import torch
from torch import Tensor, nn


class CausalRNN(nn.Module):
    """(B, L, inputs) and the state before → (B, L, outputs) and the state after; layers but the first add to x."""

    def __init__(
        self, inputs: int, outputs: int, hidden: int, layers: int, cell: Literal["lstm", "gru"], dropout: float
    ) -> None:
        super().__init__()
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        widths = [inputs, *[hidden] * (layers - 1)]
        self.layers = nn.ModuleList(kind(width, hidden, batch_first=True) for width in widths)
        self.dropout = nn.Dropout(dropout)  # PyTorch's own, which a resumed training draws again
        self.output = nn.Linear(hidden + inputs, outputs)

    def forward(self, x: Tensor, before: Any = None) -> tuple[Tensor, list[Any]]:
        states, h = list[Any](), x
        for number, layer in enumerate(self.layers):
            y, state = layer(self.dropout(h) if number else h, None if before is None else before[number])
            h = h + y if number else y
            states.append(state)
        return self.output(torch.cat([self.dropout(h), x.to(h.dtype)], dim=-1)), states
