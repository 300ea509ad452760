"""The paper's denoiser: a bidirectional RNN, told the diffusion step by scale and shift of its normalised states."""

from typing import Literal

from torch import Tensor, nn

from timediff.networks.embedding import StepEmbedding


class BidirectionalRNN(nn.Module):
    """(B, L, channels) and t (B,) → (B, L, channels), for any length L."""

    def __init__(self, channels: int, hidden: int, layers: int = 2, cell: Literal["lstm", "gru"] = "lstm") -> None:
        super().__init__()
        kind = {"lstm": nn.LSTM, "gru": nn.GRU}[cell]
        self.rnn = kind(channels, hidden, layers, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * hidden)
        self.embedding = StepEmbedding(4 * hidden)
        self.output = nn.Linear(2 * hidden, channels)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        h, _ = self.rnn(x)  # (B, L, 2 · hidden)
        scale, shift = self.embedding(t)[:, None].chunk(2, dim=-1)  # (B, 1, 2 · hidden) each
        out: Tensor = self.output(self.norm(h) * (scale + 1) + shift)
        return out
