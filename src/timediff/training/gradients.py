"""Gradients as one vector, and what is done to it before the optimizer sees it."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

# Changes the gradient (P,) in place, after it is averaged over processes. It runs inside of a CUDA graph: no number of
# it may be read on the host.
GradientTransform = Callable[[Tensor], None]


def clip_norm(max_norm: float) -> GradientTransform:
    """Scales the gradient to a norm of at most `max_norm`."""

    def clip(gradient: Tensor) -> None:
        gradient *= (max_norm / (torch.linalg.vector_norm(gradient) + 1e-6)).clamp(max=1.0)

    return clip


class FlatGradient:
    """The gradients of all parameters as views of one vector, so that sum, norm and clearing are one operation each.

    One more number travels with it over processes: the wish to skip this optimizer step.
    """

    def __init__(self, parameters: Sequence[nn.Parameter]) -> None:
        self._parameters = list(parameters)
        self.with_skip = torch.zeros(sum(one.numel() for one in parameters) + 1, device=parameters[0].device)
        self._views, start = list[Tensor](), 0
        for one in parameters:
            self._views.append(self.with_skip[start : start + one.numel()].view_as(one))
            start += one.numel()

    @property
    def vector(self) -> Tensor:
        return self.with_skip[:-1]

    @property
    def skip(self) -> Tensor:
        return self.with_skip[-1]

    def attach(self, network: nn.Module) -> None:
        """Only these parameters of the network get a gradient, and each its part of the vector."""
        for parameter in network.parameters():
            parameter.requires_grad_(False)
        for parameter, view in zip(self._parameters, self._views, strict=True):
            parameter.requires_grad_(True)
            parameter.grad = view
