"""The network of staged diffusion: a bidirectional RNN, and chains of classes for its steps and for the whole stay."""

from typing import NamedTuple

from torch import Tensor, nn

from timediff.networks.brnn import BidirectionalRNN
from timediff.networks.chain import Chain


class Answers(NamedTuple):
    values: Tensor  # (B, L, P_r)
    cells: Tensor  # (B, L, n): −log p of the classes of each step
    stay: Tensor  # (B, m): −log p of the classes of the whole stay


class StagedNetwork(nn.Module):
    """`rnn` gives (B, L, continuous + cells.width): the values, and where the chain of each step starts."""

    def __init__(self, rnn: BidirectionalRNN, cells: Chain, stay: Chain) -> None:
        super().__init__()
        self.rnn, self.cells, self.stay = rnn, cells, stay

    def forward(self, x: Tensor, t: Tensor, c: Tensor, hot: Tensor, whole: Tensor, whole_hot: Tensor) -> Answers:
        """For input x at noise level t; c and `whole` are the classes to be explained, beside their one-hot columns."""
        output = self.rnn(x, t)
        values, start = output.split([output.shape[-1] - self.cells.width, self.cells.width], dim=-1)
        return Answers(values.float(), self.cells(start, c, hot), self.stay(start.new_zeros(1), whole, whole_hot))
