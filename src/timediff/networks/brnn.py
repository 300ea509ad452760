"""The paper's denoiser: a bidirectional RNN, conditioned on the noise level by scale and shift of its states."""

from typing import Literal

import torch
from torch import Tensor, nn

from timediff.networks.embedding import ModulatedNorm, StepEmbedding

INPUT_COLUMNS = 64  # of the embedding, where the noise level conditions the input


class BidirectionalRNN(nn.Module):
    """(B, L, inputs) and the noise level (B,) → (B, L, outputs), for any length L. The defaults are the paper's."""

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int = 2,
        cell: Literal["lstm", "gru"] = "lstm",
        *,
        outputs: int | None = None,
        dropout: float = 0.0,
        noise_level_input: bool = False,
    ) -> None:
        super().__init__()
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        extra = INPUT_COLUMNS if noise_level_input else 0
        stack = DropoutRNN(kind, inputs + extra, hidden, layers, dropout) if dropout else None
        self.rnn = stack or kind(inputs + extra, hidden, layers, batch_first=True, bidirectional=True)
        self.norm = ModulatedNorm(2 * hidden)
        self.embedding = StepEmbedding(4 * hidden + extra)
        self.output = nn.Linear(2 * hidden, inputs if outputs is None else outputs)
        self.dropout = nn.Dropout(dropout)
        self.states = 2 * hidden

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        x, scale, shift = self.condition(x, t)
        h = self.rnn(x)[0].transpose(0, 1)  # (L, B, 2 · hidden), as it lies in memory
        output: Tensor = self.output(self.dropout(self.norm(h, scale, shift)))
        return output.transpose(0, 1)

    def condition(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The RNN's input, and scale and shift of its states (B, 2 · hidden)."""
        embedded = self.embedding(t)
        scale, shift, rest = embedded.split([self.states, self.states, embedded.shape[1] - 2 * self.states], dim=1)
        if rest.shape[1]:
            x = torch.cat([x, rest[:, None].expand(-1, x.shape[1], -1)], dim=-1)
        return x, scale, shift


class DropoutRNN(nn.Module):
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
