"""The paper's denoiser: a bidirectional RNN, told the diffusion step by scale and shift of its normalised states."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear, pad

from timediff.capture import first_line
from timediff.networks.embedding import StepEmbedding
from timediff.progress import Say

EARLY = 64  # columns that tell the step at the input
ALIGNED = 8  # columns: a GPU's rounded products of other widths are slow


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
        self.learner: Callable[[Tensor], Tensor] | None = None  # what `rnn` computes, in rounded training

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        rounded = torch.is_autocast_enabled(x.device.type)
        x, told = self.told(x, t)
        h = self.learner(x) if self.learner and rounded else self.rnn(x)[0]
        h = h.transpose(0, 1)  # (L, B, 2 · hidden), as it lies in memory
        h = self.dropout(self._modulated(h, told, torch.get_autocast_dtype(x.device.type) if rounded else h.dtype))
        if not rounded:
            out: Tensor = self.output(h)
        else:
            more = -self.output.out_features % ALIGNED
            out = linear(h, pad(self.output.weight, (0, 0, 0, more)), pad(self.output.bias, (0, more)))
        return out[..., : self.output.out_features].transpose(0, 1)

    def _modulated(self, h: Tensor, told: Tensor, kind: torch.dtype) -> Tensor:
        """norm(h) · (1 + scale) + shift; the norm's own weights join scale and shift, of which there are fewer."""
        scale, shift = told[:, : 2 * self.states].to(self.norm.weight.dtype).chunk(2, dim=-1)
        with torch.autocast(h.device.type, enabled=False):
            weight = (self.norm.weight * (scale + 1)).to(kind)
            bias = (self.norm.bias * (scale + 1) + shift).to(kind)
            return torch.addcmul(bias, layer_norm(h.to(kind), (self.states,), eps=self.norm.eps), weight)

    def told(self, x: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
        """What the RNN sees, and what the step says (B, …): scale and shift of the states first."""
        told = self.embedding(t)
        start = told[:, None, 2 * self.states :]
        return (torch.cat([x, start.expand(-1, x.shape[1], -1)], dim=-1) if start.shape[-1] else x), told

    def learn_by_kernels(self, length: int, say: Say) -> None:
        """Lets its LSTM learn, in rounded training, by kernels of our own, where they can be built."""
        try:
            from timediff.networks.learning import Learner  # needs Triton, which comes with PyTorch for CUDA

            self.learner = Learner(self, length)
        except Exception as error:  # no C compiler, a GPU that is too small or too old, a network they do not cover
            say(f"the RNN learns by cuDNN: {first_line(error)}")


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
