"""Objectives: what a training step minimises, by which parameters. A GAN has one for each of its networks."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.runtime.randomness import Noise

# The network, a batch and its noise → losses by name; "total" is the one that is minimised. Where there is a "skip", a
# number from 0 to 1, the parameters stay as they are if it is above a half.
LossFunction = Callable[[nn.Module, Batch, Noise], dict[str, Tensor]]


@dataclass(frozen=True)
class Objective:
    """A loss, and the optimizer steps it gets in every training step from `first` to the one before `end`."""

    loss: LossFunction
    name: str = ""
    modules: tuple[str, ...] = ()  # whose parameters are trained; none = all of the network's
    lr: float = 1.0  # times the learning rate of the training step
    repeats: int = 1  # optimizer steps in a training step, each with a batch of its own
    first: int = 0
    end: int | None = None
    every: int = 1  # of so many training steps the first has it
    optimizer: Literal["adam", "sgd"] | None = None  # none = that of the settings
    validated: bool = False  # it ends, and its modules' weights are chosen, by its own loss of held-out stays
    initialise: Callable[[nn.Module, Batch], None] | None = None  # with all data, before the first training step

    def parameters(self, network: nn.Module) -> list[nn.Parameter]:
        modules = [network.get_submodule(name) for name in self.modules] or [network]
        return [parameter for module in modules for parameter in module.parameters()]

    def active(self, step: int) -> bool:
        return self.first <= step and (self.end is None or step < self.end) and (step - self.first) % self.every == 0
