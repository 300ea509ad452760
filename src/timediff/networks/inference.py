"""A trained network as samplers call it: recorded on a GPU, a few stays at a time on a CPU, in a stated precision."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from timediff.capture import Captured, first_line, is_full
from timediff.devices import CACHED_CELLS
from timediff.networks.chain import Chain
from timediff.networks.staged import StagedNetwork
from timediff.progress import Say, unheard

Precision = Literal["float32", "tf32", "float16", "bfloat16"]
Denoiser = Callable[[Tensor, Tensor], Tensor]


@dataclass
class Assembled:
    """A StagedNetwork whose RNN is called in another way."""

    rnn: Denoiser
    cells: Chain
    stay: Chain


def fastest(
    network: nn.Module, device: torch.device, length: int, precision: Precision = "float32", say: Say = unheard,
    rows: int | None = None,
) -> Denoiser | Assembled:  # fmt: skip
    """The same function as the network, to rounding, as this device computes it soonest.

    With `rows` a GPU computes so many stays at once: those that its memory holds.
    """
    if isinstance(network, StagedNetwork):
        return Assembled(_denoiser(network.rnn, device, length, precision, say, rows), network.cells, network.stay)
    return _denoiser(network, device, length, precision, say, rows)


def _denoiser(
    network: nn.Module, device: torch.device, length: int, precision: Precision, say: Say, rows: int | None
) -> Denoiser:
    if device.type == "cpu":
        return in_slices(network, max(32, CACHED_CELLS // length))

    def rounded(x: Tensor, t: Tensor) -> Tensor:
        with arithmetic(precision):
            output: Tensor = network(x, t)
            return output

    denoise = _fused(network, rounded, say) if precision == "float16" else rounded
    return in_slices(denoise, rows) if rows else Captured(denoise, device, say=say)


def _fused(network: nn.Module, otherwise: Denoiser, say: Say) -> Denoiser:
    """The network by kernels of our own; `otherwise` where they do not cover it or cannot be built."""
    ways = [otherwise]

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        if len(ways) > 1:
            try:
                with arithmetic("tf32"):
                    return ways[0](x, t)
            except Exception as error:  # a compiler that is missing, a GPU that is too small or too old
                if is_full(error):
                    raise
                say(f"the GPU's products are in TF32, by cuDNN: {first_line(error)}")
            del ways[0]
        return ways[0](x, t)

    try:
        from timediff.networks.fused import FusedRNN  # needs Triton, which comes with PyTorch for CUDA

        ways.insert(0, FusedRNN(network))
    except Exception as error:  # no Triton, an old one, a network that they do not cover
        say(f"the GPU's products are in TF32, by cuDNN: {first_line(error)}")
    return denoise


def in_slices(network: Denoiser, rows: int) -> Denoiser:
    """The network on a few stays at a time: what a CPU's cache holds is done sooner than the whole batch at once."""

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        return torch.cat([network(x[i : i + rows], t[i : i + rows]) for i in range(0, len(x), rows)])

    return denoise


@contextmanager
def arithmetic(precision: Precision) -> Iterator[None]:
    """Of a GPU's products. What is rounded more depends more on the batch, and now and then flips a class."""
    switches: list[Any] = [torch.backends.cudnn, torch.backends.cuda.matmul]
    before = [switch.allow_tf32 for switch in switches]
    for switch in switches:
        switch.allow_tf32 = precision in ("tf32", "float16")  # which keep as many digits
    try:
        with torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16"):
            yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.allow_tf32 = value
