"""Turns: an update is one player's, or that of several who want different things, each with its own weights."""

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor, nn

from timediff.randomness import Noise

# The network, a batch of data and its noise → losses by name; "total" is the one that is minimised. Where there is a
# "skip", a number from 0 to 1, the weights stay as they are if it is above a half.
Objective = Callable[[nn.Module, tuple[Tensor, ...], Noise], dict[str, Tensor]]


@dataclass(frozen=True)
class Turn:
    """A player's part of every update from `first` to the one before `end`: what it minimises, and what it moves."""

    objective: Objective
    name: str = ""
    moves: tuple[str, ...] = ()  # parts of the network; none = all of it
    lr: float = 1.0  # times the learning rate of the update
    times: int = 1  # an update, each with a batch of its own
    first: int = 0
    end: int | None = None
    begin: Callable[[nn.Module, tuple[Tensor, ...]], None] | None = None  # with all data, before the first update

    def weights(self, network: nn.Module) -> list[nn.Parameter]:
        parts = [network.get_submodule(name) for name in self.moves] or [network]
        return [weight for part in parts for weight in part.parameters()]

    def at(self, step: int) -> bool:
        return self.first <= step and (self.end is None or step < self.end)
