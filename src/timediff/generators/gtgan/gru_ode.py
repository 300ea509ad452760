"""GRU-ODE: a GRU between whose steps the states follow an ODE (De Brouwer et al. 2019); decoder and discriminator."""

import torch
from torch import Tensor, nn

from timediff.networks.ode import ODESolver, solve


class GRUODELayer(nn.Module):
    def __init__(self, inputs: int, hidden: int, solver: ODESolver) -> None:
        super().__init__()
        self.hidden, self.solver = hidden, solver
        self.gates = nn.Linear(hidden, 2 * hidden, bias=False)
        self.candidate = nn.Linear(hidden, hidden, bias=False)
        self.jump = nn.GRUCell(inputs, hidden)

    def velocity(self, _: float, h: Tensor) -> Tensor:
        """dh/dt = (1 − z) (u − h) with r, z = σ(W h) and u = tanh(W (r h)): it keeps h within ±1."""
        r, z = torch.sigmoid(self.gates(h)).chunk(2, dim=-1)
        return (1 - z) * (torch.tanh(self.candidate(r * h)) - h)

    def forward(self, x: Tensor) -> Tensor:
        """States (B, L, hidden) right after each jump."""
        h = x.new_zeros(len(x), self.hidden)  # which would stay 0 without a jump
        found: list[Tensor] = []
        for i, step in enumerate(x.unbind(dim=1)):
            if found:
                h = solve(self.velocity, found[-1], i - 1, i, self.solver)
            found.append(self.jump(step, h))
        return torch.stack(found, dim=1)


class GRUODE(nn.Module):
    """(B, L, inputs) → (B, L, outputs); with `skip` the output layer sees the inputs too."""

    def __init__(
        self, inputs: int, outputs: int, hidden: int, layers: int, solver: ODESolver, *, skip: bool = False
    ) -> None:
        super().__init__()
        self.skip = skip
        self.input = nn.Sequential(nn.Linear(inputs, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, hidden))
        self.layers = nn.Sequential(*(GRUODELayer(hidden, hidden, solver) for _ in range(layers)))
        self.output = nn.Linear(hidden + inputs * skip, outputs)

    def forward(self, x: Tensor) -> Tensor:
        states: Tensor = self.layers(self.input(x))
        y: Tensor = self.output(torch.cat([states, x.to(states.dtype)], dim=-1) if self.skip else states)
        return y.float()
