"""The encoder: a neural controlled differential equation, driven by a spline of the stay (Kidger et al. 2020)."""

import torch
from torch import Tensor, nn

from timediff.networks.cde import VectorField, controlled
from timediff.networks.ode import ODESolver
from timediff.networks.spline import Spline


class Encoder(nn.Module):
    """Latent steps (B, L, latent) of a stay's spline."""

    def __init__(
        self, columns: int, latent: int, hidden: int, layers: int, solver: ODESolver, *, positive: bool, skip: bool
    ) -> None:
        super().__init__()
        self.solver, self.positive, self.skip = solver, positive, skip
        self.first = nn.Linear(columns, hidden)
        self.field = VectorField(columns, hidden, layers, hidden)
        self.output = nn.Linear(hidden + columns * skip, latent)

    def forward(self, path: Spline) -> Tensor:
        states = controlled(self.field, self.first(path.values[:, 0]).float(), path, self.solver)
        h: Tensor = self.output(torch.cat([states, path.values], dim=-1) if self.skip else states).float()
        return torch.sigmoid(h) if self.positive else h
