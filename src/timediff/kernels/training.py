"""Faster training in bfloat16: forward methods of a network's modules are replaced, its parameters stay where they are.

Whatever is replaced computes as before outside of autocast, so that validation and float32 training do not change.
"""

from collections.abc import Callable
from importlib.util import find_spec

import torch
from torch import Tensor, nn
from torch.nn.functional import layer_norm, linear, pad

from timediff.networks.brnn import BidirectionalRNN
from timediff.networks.embedding import ModulatedNorm
from timediff.runtime.cuda_graphs import first_line
from timediff.runtime.progress import Say, unheard

ALIGNED = 8  # columns: a GPU's bfloat16 products of other widths are slow


def accelerate(network: nn.Module, length: int, *, kernels: bool = True, say: Say = unheard) -> None:
    """Makes training in bfloat16 faster, for stays of this length; with `kernels` LSTMs are trained by Triton's."""
    for module in list(network.modules()):
        if type(module) in TRAINING:
            TRAINING[type(module)](module, length, kernels, say)


def accelerate_brnn(network: BidirectionalRNN, length: int, kernels: bool, say: Say) -> None:
    replace_forward(network.norm, LowPrecisionNorm(network.norm))
    replace_forward(network.output, PaddedLinear(network.output))
    if kernels and find_spec("triton") is not None:
        try:
            from timediff.kernels.lstm_training import TrainingLSTM

            replace_forward(network.rnn, TrainingLSTM(network, length))
        except Exception as error:  # no C compiler, a GPU that is too small or too old, a network they do not cover
            say(f"the RNN is trained by cuDNN: {first_line(error)}")


# What is known to be faster, by the type of a module.
TRAINING: dict[type[nn.Module], Callable[..., None]] = {BidirectionalRNN: accelerate_brnn}


def replace_forward(module: nn.Module, forward: Callable[..., object]) -> None:
    module.forward = forward


class LowPrecisionNorm:
    """A ModulatedNorm in the precision of autocast, which would otherwise normalise in float32."""

    def __init__(self, norm: ModulatedNorm) -> None:
        self.norm = norm

    def __call__(self, h: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        if not torch.is_autocast_enabled(h.device.type):
            return ModulatedNorm.forward(self.norm, h, scale, shift)
        dtype = torch.get_autocast_dtype(h.device.type)
        with torch.autocast(h.device.type, enabled=False):
            weight, bias = (part.to(dtype) for part in self.norm.folded(scale, shift))
            normal = layer_norm(h.to(dtype), self.norm.normalized_shape, eps=self.norm.eps)
            return torch.addcmul(bias, normal, weight)


class PaddedLinear:
    """A linear layer whose outputs are padded to a width that is fast."""

    def __init__(self, layer: nn.Linear) -> None:
        self.layer = layer

    def __call__(self, x: Tensor) -> Tensor:
        layer, more = self.layer, -self.layer.out_features % ALIGNED
        if not torch.is_autocast_enabled(x.device.type):
            return linear(x, layer.weight, layer.bias)
        padded = linear(x, pad(layer.weight, (0, 0, 0, more)), pad(layer.bias, (0, more)))
        return padded[..., : layer.out_features]
