"""T-Forcing: an RNN that is trained on the next step of real stays, and then feeds on its own (Williams, Zipser 1989).

Its own steps are samples as in Graves 2013, of a Gaussian whose mean and stds follow from the steps before it; or they
are means, as in Tian et al.
"""

from abc import abstractmethod

import torch
from torch import Tensor, nn

from timediff.generators.common.columns import Columns
from timediff.generators.common.first_steps import FIRST_STEPS, FirstSteps
from timediff.generators.common.next_step import NextMean, NextStep, dequantised
from timediff.generators.common.stay_losses import by_kind_and_part
from timediff.generators.tforcing.settings import ForcingModelSettings, FreeRunningSettings
from timediff.runtime.randomness import Noise

REACH = 4.0  # of a column that is standard normal; others reach from −1 to 1


class FreeRunning(nn.Module):
    """Goes on from a first step, fed with steps of its own that are made valid."""

    first: FirstSteps
    density = False  # whether its losses are −log p, and not squared errors

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

    @abstractmethod
    def losses(self, x: Tensor) -> Tensor:
        """Of each column of stays' steps (B, L, P) after the first, given the real ones before, (B, L − 1, P)."""

    def stay_losses(self, x: Tensor) -> dict[str, Tensor]:
        """Of each part of stays (B, L, P) as they are, without noise on them; and of first steps that it remembers."""
        named = {
            f"nll of {kind}" if self.density else kind: losses
            for kind, losses in by_kind_and_part(self.losses(x), self.columns).items()
        }
        of_first = self.first.losses(x[:, 0])
        return named if of_first is None else {"first step": of_first[:, None], **named}


class Predictor(FreeRunning):
    """Stays from a first step, step by step."""

    def __init__(self, columns: Columns, model: ForcingModelSettings, hidden: int) -> None:
        super().__init__(columns, model)
        self.dequantisation, self.density = model.dequantisation, model.predicts == "distribution"
        kind = NextMean if model.predicts == "mean" else NextStep
        self.next: NextMean = kind(columns.width, model, hidden, carry=model.carry)

    def step_noise(self, noise: Noise, length: int) -> Tensor:
        return noise.normal(length - 1, self.next.noise)

    def noisy(self, x: Tensor, noise: Noise) -> Tensor:
        return dequantised(x, noise, self.dequantisation)

    def forced(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The losses of stays (B, L, P) after their first step, and the states."""
        mean, std, states, _ = self.next(self.valid(x[:, :-1]))
        return self.next.losses(mean, std, x[:, 1:]), states

    def losses(self, x: Tensor) -> Tensor:
        return self.forced(x)[0]

    def free(self, first: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
        """Steps of stays that begin with `first` (B, P) and go on by noise z, and the states behind them."""
        return self.next.free(first, z, self.valid)

    def sample_noise(self, noise: Noise, length: int) -> tuple[Tensor, ...]:
        return self.first.sample(noise), self.step_noise(noise, length)

    def generate(self, first: Tensor, z: Tensor, *, length: int) -> Tensor:
        return torch.cat([first[:, None], self.free(first, z)[0]], dim=1)
