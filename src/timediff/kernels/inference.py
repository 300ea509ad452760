"""A trained denoiser as a sampler calls it: a CUDA graph on a GPU, a few stays at a time on a CPU."""

from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor, nn

from timediff.kernels.training import accelerate
from timediff.runtime.cuda_graphs import Captured, first_line, is_out_of_memory
from timediff.runtime.devices import CPU_CACHE_STEPS
from timediff.runtime.precision import Precision, arithmetic
from timediff.runtime.progress import Say, unheard

Denoiser = Callable[[Tensor, Tensor], Tensor]


def accelerated(
    network: nn.Module, device: torch.device, length: int, precision: Precision = "float32", say: Say = unheard,
    rows: int | None = None,
) -> Denoiser:  # fmt: skip
    """The same function as the network, to rounding, as this device computes it soonest.

    With `rows` a GPU computes so many stays at once: those that its memory holds.
    """
    if device.type == "cpu":
        return in_slices(network, max(32, CPU_CACHE_STEPS // length))

    if precision == "bfloat16":
        accelerate(network, length, kernels=False)

    def rounded(x: Tensor, t: Tensor) -> Tensor:
        with arithmetic(precision):
            output: Tensor = network(x, t)
            return output

    denoise = _with_kernels(network, rounded, say) if precision == "float16" else rounded
    return in_slices(denoise, rows) if rows else Captured(denoise, device, say=say)


def _with_kernels(network: nn.Module, otherwise: Denoiser, say: Say) -> Denoiser:
    """The network by Triton kernels; `otherwise` where there are none for it, or they cannot be built."""
    if find_spec("triton") is None:
        return otherwise
    ways = [otherwise]

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        if len(ways) > 1:
            try:
                with arithmetic("tf32"):
                    return ways[0](x, t)
            except Exception as error:  # a compiler that is missing, a GPU that is too small or too old
                if is_out_of_memory(error):
                    raise
                say(f"the GPU's products are in TF32, by cuDNN: {first_line(error)}")
            del ways[0]
        return ways[0](x, t)

    try:
        from timediff.kernels.lstm_inference import fused

        ways.insert(0, fused(network))
    except Exception as error:  # an old Triton, a network that they do not cover
        say(f"the GPU's products are in TF32, by cuDNN: {first_line(error)}")
    return denoise


def in_slices(network: Denoiser, rows: int) -> Denoiser:
    """The network on a few stays at a time: what a CPU's cache holds is done sooner than the whole batch at once."""

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        return torch.cat([network(x[i : i + rows], t[i : i + rows]) for i in range(0, len(x), rows)])

    return denoise
