"""Fixed steps of an ordinary differential equation, by torchdiffeq."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import torch
from torch import Tensor

from timediff.errors import TimeDiffError

Derivative = Callable[[float, Tensor], Tensor]  # dy/dt, of t and y


class ODESolver(NamedTuple):
    method: str
    step: float  # the largest


def require_torchdiffeq(what: str) -> None:
    if find_spec("torchdiffeq") is None:
        raise TimeDiffError(f"{what} needs torchdiffeq, which is not installed: pip install 'timediff-icu[baselines]'")


def solve(field: Derivative, y: Tensor, start: float, end: float, solver: ODESolver) -> Tensor:
    """y at `end`, from y at `start`, of dy/dt = field(t, y).

    torchdiffeq's solver is called without `odeint` around it: that would move the times to the device of y and compare
    them there, where a CUDA graph could not be captured. Here times stay on the host, and nothing waits for the GPU.
    """
    from torchdiffeq._impl.odeint import SOLVERS

    times = torch.tensor([start, end], dtype=torch.float64, device="cpu")
    solution: Tensor = SOLVERS[solver.method](_Field(field), y, step_size=solver.step, atol=0.0).integrate(times)[-1]
    return solution


class _Field:
    """A derivative as torchdiffeq's solvers call it."""

    def __init__(self, field: Derivative) -> None:
        self._field = field

    def __call__(self, t: Tensor, y: Tensor, **_: Any) -> Tensor:
        return self._field(float(t), y)

    def callback_step(self, *_: Any) -> None:
        pass
