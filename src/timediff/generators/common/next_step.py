"""NextStep: the distribution of a step given those before it, to sample from, and to train by likelihood."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from timediff.generators.common.settings import RecurrentSettings
from timediff.networks.recurrent import Recurrent, State
from timediff.runtime.randomness import Noise

DEQUANTISATION = 0.03  # noise on training columns: those that are equal, or stand still, have a density too
INITIAL_STAYS = 20_000  # that the linear model is fitted to, evenly among all


class Factor(nn.Module):
    """A lower triangular A: correlations A Aᵀ of samples A z."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.lower = nn.Parameter(torch.zeros(columns, columns))  # its diagonal as logarithms

    @torch.no_grad()
    def initialise(self, covariance: Tensor) -> None:
        factor = torch.linalg.cholesky(covariance)
        self.lower.copy_(factor.tril(-1) + factor.diagonal().log().diag())

    def forward(self) -> Tensor:
        return self.lower.tril(-1) + self.lower.diagonal().exp().diag()

    def nll(self, sample: Tensor) -> Tensor:
        """−log p of A z, (…, columns), a column."""
        z = torch.linalg.solve_triangular(self(), sample.flatten(0, -2).T, upper=False)
        found: Tensor = z.square().mean() / 2 + self.lower.diagonal().mean() + math.log(2 * math.pi) / 2
        return found


class NextStep(nn.Module):
    """p(x' | x and those before it), by the sample x' = C x + mean + std · (A z) with z standard normal.

    Mean and std are an RNN's, for each column; C and A are the same at every step, and start as the linear model of
    the data: the best prediction from the last step alone, and the correlations of what that leaves. C is diagonal, or
    goes `across` columns, where each is a mixture of what stays and what does not.
    """

    def __init__(self, columns: int, model: RecurrentSettings, hidden: int, *, across: bool = False) -> None:
        super().__init__()
        self.across = across
        self.rnn = Recurrent(columns, 2 * columns, hidden, model.layers, model.cell)
        self.carry = nn.Parameter(torch.ones(columns).diag() if across else torch.ones(columns))  # C
        self.factor = Factor(columns)

    @torch.no_grad()
    def initialise(self, series: Tensor) -> None:
        """From the training stays, (N, L, columns)."""
        series = series[:: -(-len(series) // INITIAL_STAYS)].double()
        before, after = (part.flatten(0, 1) for part in (series[:, :-1], series[:, 1:]))
        before, after = before - before.mean(dim=0), after - after.mean(dim=0)
        added = DEQUANTISATION**2 * torch.eye(
            before.shape[1], dtype=before.dtype, device=before.device
        )  # of dequantised columns
        own, shared = before.T @ before / len(before) + added, before.T @ after / len(before)
        carry = torch.linalg.solve(own, shared) if self.across else (shared.diagonal() / own.diagonal()).diag()  # Cᵀ
        left = after - before @ carry
        covariance = left.T @ left / len(left) + added + carry.T @ added @ carry
        scale = covariance.diagonal().sqrt()
        self.carry.copy_(carry.T if self.across else carry.diagonal())
        self.factor.initialise(covariance / scale / scale[:, None])

    def forward(self, x: Tensor, before: State = None) -> tuple[Tensor, Tensor, Tensor, State]:
        """Means and stds of the steps after x (B, L, P), the RNN's states, and that to go on from."""
        states, last = self.rnn.states(x, before)
        mean, std = self.rnn.output(states).float().chunk(2, dim=-1)
        carried = x @ self.carry.T if self.across else self.carry * x
        return carried + mean, softplus(std) + DEQUANTISATION, states, last

    def nll(self, mean: Tensor, std: Tensor, x: Tensor) -> Tensor:
        """−log p(x), a column."""
        return self.factor.nll((x - mean) / std) + std.log().mean()

    def free(
        self, first: Tensor, z: Tensor, valid: Callable[[Tensor], Tensor] = lambda step: step
    ) -> tuple[Tensor, Tensor]:
        """The steps after `first` (B, P) as noise z (B, L − 1, P) makes them, each made valid, and the states."""
        step, state, factor = first[:, None], None, self.factor()
        steps, behaviour = [step[:, :0]], [first.new_empty(len(first), 0, self.rnn.width)]
        for i in range(z.shape[1]):
            mean, std, h, state = self(step, state)
            step = valid(mean + std * (z[:, i : i + 1] @ factor.T))
            steps.append(step)
            behaviour.append(h)
        return torch.cat(steps, dim=1), torch.cat(behaviour, dim=1)


def dequantised(x: Tensor, noise: Noise) -> Tensor:
    return x + DEQUANTISATION * noise.normal(*x.shape[1:])
