"""T-Forcing: an RNN that is trained on the next step of real stays, and then feeds on its own (Williams, Zipser 1989).

Its own steps are samples as in Graves 2013, of a Gaussian whose mean and stds follow from the steps before it; or they
are means, as in Tian et al.
"""

import torch
from torch import Tensor, nn

from timediff.generators.common.columns import Columns
from timediff.generators.common.first_steps import FIRST_STEPS, FirstSteps
from timediff.generators.common.next_step import NextMean, NextStep, dequantised
from timediff.generators.tforcing.settings import ForcingModelSettings, FreeRunningSettings
from timediff.runtime.randomness import Noise

REACH = 4.0  # of a column that is standard normal; others reach from −1 to 1


class FreeRunning(nn.Module):
    """Goes on from a first step, fed with steps of its own that are made valid."""

    first: FirstSteps

    def __init__(self, columns: Columns, model: FreeRunningSettings) -> None:
        super().__init__()
        self.columns = columns
        self.first = FIRST_STEPS[model.first](columns)
        self.raw = model.feedback == "raw"

    def valid(self, steps: Tensor) -> Tensor:
        """Within reach, and discrete columns as their nearest class; gradients pass as if they were not.

        Raw steps stay as they are.
        """
        if self.raw:
            return steps
        reach = REACH if self.columns.normal else 1.0
        steps = steps.clamp(-reach, reach)
        return self.columns.join(*self.columns.split(steps.detach())) + (steps - steps.detach())


class Predictor(FreeRunning):
    """Stays from a first step, step by step."""

    def __init__(self, columns: Columns, model: ForcingModelSettings, hidden: int) -> None:
        super().__init__(columns, model)
        self.dequantisation = model.dequantisation
        kind = NextMean if model.predicts == "mean" else NextStep
        self.next: NextMean = kind(columns.width, model, hidden, carry=model.carry)

    def step_noise(self, noise: Noise, length: int) -> Tensor:
        return noise.normal(length - 1, self.next.noise)

    def noisy(self, x: Tensor, noise: Noise) -> Tensor:
        return dequantised(x, noise, self.dequantisation)

    def forced(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of training stays (B, L, P) after their first step, and the states."""
        mean, std, states, _ = self.next(self.valid(x[:, :-1]))
        return self.next.loss(mean, std, x[:, 1:]), states

    def free(self, first: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Steps of stays that begin with `first` (B, P) and go on by noise z, and the states behind them."""
        return self.next.free(first, z, self.valid)

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return self.first.sample(noise), self.step_noise(noise, length)

    def generate(self, first: Tensor, z: Tensor, *, length: int) -> Tensor:
        return torch.cat([first[:, None], self.free(first, z)[0]], dim=1)
