"""The paper's denoiser: a bidirectional RNN, told the diffusion step by scale and shift of its normalised states."""

from typing import Literal

import torch
from torch import Tensor, nn

from timediff.networks.embedding import StepEmbedding

EARLY = 64  # columns that tell the step at the input


class BidirectionalRNN(nn.Module):
    """(B, L, inputs) and t (B,) → (B, L, outputs), for any length L.

    With `early`, the RNN is told the step at its input too. The defaults are the paper's.
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 2,
        cell: Literal["lstm", "gru"] = "lstm",
        *,
        outputs: int | None = None,
        dropout: float = 0.0,
        early: bool = False,
    ) -> None:
        super().__init__()
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        extra = EARLY if early else 0
        several = Dropped(kind, inputs + extra, hidden, layers, dropout) if dropout else None
        self.rnn = several or kind(inputs + extra, hidden, layers, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * hidden)
        self.embedding = StepEmbedding(4 * hidden + extra)
        self.output = nn.Linear(2 * hidden, inputs if outputs is None else outputs)
        self.dropout = nn.Dropout(dropout)
        self.states = 2 * hidden

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        x, told = self.told(x, t)
        scale, shift = told[:, None, : 2 * self.states].chunk(2, dim=-1)
        h, _ = self.rnn(x)  # (B, L, 2 · hidden)
        out: Tensor = self.output(self.dropout(self.norm(h) * (scale + 1) + shift))
        return out

    def told(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """What the RNN sees, and what the step says (B, …): scale and shift of the states first."""
        told = self.embedding(t)
        start = told[:, None, 2 * self.states :]
        return (torch.cat([x, start.expand(-1, x.shape[1], -1)], dim=-1) if start.shape[-1] else x), told


class Dropped(nn.Module):
    """Layers of a bidirectional RNN with dropout between them, from PyTorch's own stream of random numbers.

    That of cuDNN's dropout cannot be set anew for every update, so that a resumed training would take other steps.
    """

    def __init__(
        self, kind: type[nn.LSTM] | type[nn.GRU], inputs: int, hidden: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        widths = [inputs, *[2 * hidden] * (layers - 1)]
        self.layers = nn.ModuleList(kind(width, hidden, batch_first=True, bidirectional=True) for width in widths)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> tuple[Tensor, None]:
        for number, layer in enumerate(self.layers):
            x, _ = layer(self.dropout(x) if number else x)
        return x, None
