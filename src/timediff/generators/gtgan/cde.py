"""The encoder: a neural controlled differential equation, driven by a spline of the stay (Kidger et al. 2020)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from timediff.generators.gtgan.ode import ODESolver, solve
from timediff.generators.gtgan.spline import Spline


def controlled(field: Callable[[Tensor], Tensor], z: Tensor, path: Spline, solver: ODESolver) -> Tensor:
    """z (B, L, H) at every step of dz = f(z) dX, from z (B, H) at the first; f(z) is (B, H, P)."""

    def velocity(t: float, z: Tensor) -> Tensor:
        return (field(z) @ path.derivative(t)[..., None])[..., 0]

    found = [z]
    for i in range(path.values.shape[1] - 1):
        found.append(solve(velocity, found[-1], i, i + 1, solver))
    return torch.stack(found, dim=1)


class VectorField(nn.Module):
    def __init__(self, columns: int, hidden: int, layers: int) -> None:
        super().__init__()
        self.columns = columns
        self.layers = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(layers))
        self.output = nn.Linear(hidden, hidden * columns)

    def forward(self, z: Tensor) -> Tensor:
        for layer in self.layers:
            z = torch.relu(layer(z))
        return torch.tanh(self.output(z)).view(*z.shape, self.columns)


class Encoder(nn.Module):
    """Latent steps (B, L, latent) of a stay's spline."""

    def __init__(
        self, columns: int, latent: int, hidden: int, layers: int, solver: ODESolver, *, positive: bool, skip: bool
    ) -> None:
        super().__init__()
        self.solver, self.positive, self.skip = solver, positive, skip
        self.first = nn.Linear(columns, hidden)
        self.field = VectorField(columns, hidden, layers)
        self.output = nn.Linear(hidden + columns * skip, latent)

    def forward(self, path: Spline) -> Tensor:
        states = controlled(self.field, self.first(path.values[:, 0]).float(), path, self.solver)
        h: Tensor = self.output(torch.cat([states, path.values], dim=-1) if self.skip else states).float()
        return torch.sigmoid(h) if self.positive else h
