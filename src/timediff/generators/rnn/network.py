"""A standard RNN: it predicts the next step, and is unrolled from a first one (the GRU and LSTM of Tian et al.).

All that is random about a stay is its first step.
"""

import torch
from torch import Tensor

from timediff.generators.common.columns import Columns
from timediff.generators.rnn.settings import RNNModelSettings
from timediff.generators.tforcing.network import FreeRunning
from timediff.networks.recurrent import Recurrent
from timediff.runtime.randomness import Noise


class StandardRNN(FreeRunning):
    def __init__(self, columns: Columns, model: RNNModelSettings, hidden: int) -> None:
        super().__init__(columns, model)
        self.rnn = Recurrent(columns.width, columns.width, hidden, model.layers, model.cell, skip=model.skip)

    def losses(self, x: Tensor) -> Tensor:
        """Squared errors."""
        predicted: Tensor = self.rnn(x[:, :-1]).float()
        return (predicted - x[:, 1:]).square()

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return (self.first.sample(noise),)

    def generate(self, first: Tensor, *, length: int) -> Tensor:
        step, state = first[:, None], None
        steps = [step]
        for _ in range(length - 1):
            predicted, state = self.rnn.step(step, state)
            step = self.valid(predicted.float())
            steps.append(step)
        return torch.cat(steps, dim=1)
