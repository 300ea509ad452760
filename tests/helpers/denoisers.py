"""Denoisers that are known beforehand, and the noise that tests give to a process."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from timediff.diffusion.process import BuildNetwork
from timediff.runtime.randomness import Noise, sampling_noise

CPU = torch.device("cpu")


class Function(nn.Module):
    """A network without weights: a function of its input and conditioning."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        return self.function(x, t)


def built(function: Callable[[Tensor, Tensor], Tensor]) -> BuildNetwork:
    """What a process is given to build its network with."""
    return lambda inputs, outputs: Function(function)


def no_network(inputs: int, outputs: int) -> nn.Module:
    """For what needs no network."""

    def called(x: Tensor, t: Tensor) -> Tensor:
        raise AssertionError("the network was called")

    return Function(called)


def training_noise(rows: int, key: int = 0) -> Noise:
    return Noise("training", [(key, 0, 0)], [rows], rows, CPU)


def stays_of(stays: int, length: int, seed: int = 0, first_block: int = 0) -> tuple[Noise, Tensor]:
    """What `sample` takes: the noise and lengths of stays of equal length."""
    return sampling_noise(seed, first_block, stays, CPU), torch.full((stays,), length)
