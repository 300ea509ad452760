"""A denoiser that the paper considers: a neural controlled differential equation (Tian et al., appendix).

Its states follow z_r = ζ(x_1) + ∫ f(z_s) dY_s, where Y is the natural cubic spline of the series and of the time
(Kidger et al. 2020).
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from timediff.networks.embedding import ModulatedNorm, StepEmbedding
from timediff.networks.ode import ODESolver, solve
from timediff.networks.spline import Spline, natural_cubic_spline


def controlled(field: Callable[[Tensor], Tensor], z: Tensor, path: Spline, solver: ODESolver) -> Tensor:
    """z (B, L, H) at every step of dz = f(z) dX, from z (B, H) at the first; f(z) is (B, H, P)."""

    def velocity(t: float, z: Tensor) -> Tensor:
        return (field(z) @ path.derivative(t)[..., None])[..., 0]

    found = [z]
    for i in range(path.values.shape[1] - 1):
        found.append(solve(velocity, found[-1], i, i + 1, solver))
    return torch.stack(found, dim=1)


class VectorField(nn.Module):
    """f: z (B, H) → (B, H, P), each within ±1; by hidden layers of `width` units."""

    def __init__(self, columns: int, hidden: int, layers: int, width: int) -> None:
        super().__init__()
        self.columns = columns
        inputs = [hidden, *[width] * layers]
        self.layers = nn.ModuleList(nn.Linear(before, width) for before in inputs[:-1])
        self.output = nn.Linear(inputs[-1], hidden * columns)

    def forward(self, z: Tensor) -> Tensor:
        shape = (*z.shape, self.columns)
        for layer in self.layers:
            z = torch.relu(layer(z))
        return torch.tanh(self.output(z)).view(shape)


class NeuralCDE(nn.Module):
    """(B, L, inputs) and the noise level (B,) → (B, L, outputs), for any length L.

    The noise level scales and shifts the states, as those of the bidirectional RNN. Of a single step the state is ζ of
    it, and there is no equation to solve.
    """

    def __init__(
        self, inputs: int, outputs: int, hidden: int, solver: ODESolver, *, field_layers: int, field_width: int
    ) -> None:
        super().__init__()
        self.solver = solver
        self.first = nn.Linear(inputs, hidden)  # ζ; the time of the first step is always the same
        self.field = VectorField(inputs + 1, hidden, field_layers, field_width)
        self.norm = ModulatedNorm(hidden)
        self.embedding = StepEmbedding(2 * hidden)
        self.output = nn.Linear(hidden, outputs)

    def forward(self, x: Tensor, t: Tensor) -> Tensor:
        scale, shift = self.embedding(t).chunk(2, dim=1)
        h = self.norm(self.states(x).transpose(0, 1), scale, shift)  # (L, B, hidden)
        output: Tensor = self.output(h)
        return output.transpose(0, 1)

    def states(self, x: Tensor) -> Tensor:
        """z at every step, (B, L, hidden)."""
        steps = torch.arange(x.shape[1], device=x.device, dtype=x.dtype)
        path = natural_cubic_spline(torch.cat([x, steps[None, :, None].expand(len(x), -1, 1)], dim=-1))
        return controlled(self.field, self.first(x[:, 0]).float(), path, self.solver)
