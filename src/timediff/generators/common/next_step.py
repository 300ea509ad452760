"""The next step given those before it: its mean, or its distribution, to sample from and to train by likelihood."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from timediff.generators.common.settings import RecurrentSettings
from timediff.networks.recurrent import Recurrent, State
from timediff.runtime.randomness import Noise

DEQUANTISATION = 0.03  # the least std of a step: columns that are equal, or stand still, have a density too
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
        """−log p of each column of A z, (…, columns), given those before it."""
        z = torch.linalg.solve_triangular(self(), sample.flatten(0, -2).T, upper=False).T.reshape(sample.shape)
        found: Tensor = z.square() / 2 + self.lower.diagonal() + math.log(2 * math.pi) / 2
        return found


class NextMean(nn.Module):
    """The expected next step C x + mean, trained by its squared error.

    The mean is an RNN's; C is the same at every step, and starts as the linear model of the data: the best prediction
    from the last step alone. It is diagonal, or goes `across` columns, or there is none.
    """

    carry: nn.Parameter | None  # C

    def __init__(
        self, columns: int, model: RecurrentSettings, hidden: int, *, across: bool = False, carry: bool = True,
        outputs: int = 1,
    ) -> None:  # fmt: skip
        super().__init__()
        self.across, self.noise = across, 0  # random numbers of a step
        self.rnn = Recurrent(columns, outputs * columns, hidden, model.layers, model.cell)
        first = torch.ones(columns).diag() if across else torch.ones(columns)
        self.register_parameter("carry", nn.Parameter(first) if carry else None)

    def initialise(self, series: Tensor) -> None:
        """From the training stays, (N, L, columns)."""
        self._fit_linear_model(series)

    @torch.no_grad()
    def _fit_linear_model(self, series: Tensor) -> Tensor:
        """Starts C, and returns the covariance of what it leaves."""
        series = series[:: -(-len(series) // INITIAL_STAYS)].double()
        before, after = (part.flatten(0, 1) for part in (series[:, :-1], series[:, 1:]))
        before, after = before - before.mean(dim=0), after - after.mean(dim=0)
        added = DEQUANTISATION**2 * torch.eye(
            before.shape[1], dtype=before.dtype, device=before.device
        )  # of dequantised columns
        own, shared = before.T @ before / len(before) + added, before.T @ after / len(before)
        carry = torch.linalg.solve(own, shared) if self.across else (shared.diagonal() / own.diagonal()).diag()  # Cᵀ
        if self.carry is None:
            carry = torch.zeros_like(carry)
        else:
            self.carry.copy_(carry.T if self.across else carry.diagonal())
        left = after - before @ carry
        covariance: Tensor = left.T @ left / len(left) + added + carry.T @ added @ carry
        return covariance

    def _carried(self, x: Tensor) -> Tensor | float:
        if self.carry is None:
            return 0.0
        return x @ self.carry.T if self.across else self.carry * x

    def forward(self, x: Tensor, before: State = None) -> tuple[Tensor, Tensor, Tensor, State]:
        """Means and stds of the steps after x (B, L, P), the RNN's states, and that to go on from."""
        states, last = self.rnn.states(x, before)
        mean = self._carried(x) + self.rnn.output(states).float()
        return mean, torch.zeros_like(mean), states, last

    def losses(self, mean: Tensor, std: Tensor, x: Tensor) -> Tensor:
        """Of each column of steps x (B, L, P), given what was predicted of them."""
        return (mean - x).square()

    def _correlations(self) -> Tensor | None:
        """A, by which noise becomes that of a step."""
        return None

    def free(
        self, first: Tensor, z: Tensor, valid: Callable[[Tensor], Tensor] = lambda step: step
    ) -> tuple[Tensor, Tensor]:
        """The steps after `first` (B, P) as noise z (B, L − 1, P) makes them, each made valid, and the states."""
        step, state, factor = first[:, None], None, self._correlations()
        steps, behaviour = [step[:, :0]], [first.new_empty(len(first), 0, self.rnn.width)]
        for i in range(z.shape[1]):
            mean, std, h, state = self(step, state)
            step = valid(mean if factor is None else mean + std * (z[:, i : i + 1] @ factor.T))
            steps.append(step)
            behaviour.append(h)
        return torch.cat(steps, dim=1), torch.cat(behaviour, dim=1)


class NextStep(NextMean):
    """p(x' | x and those before it), by the sample x' = C x + mean + std · (A z) with z standard normal.

    Mean and std are an RNN's, for each column; C and A are the same at every step, and start as the linear model of
    the data: the best prediction from the last step alone, and the correlations of what that leaves. C goes `across`
    columns where each is a mixture of what stays and what does not.
    """

    def __init__(
        self, columns: int, model: RecurrentSettings, hidden: int, *, across: bool = False, carry: bool = True
    ) -> None:
        super().__init__(columns, model, hidden, across=across, carry=carry, outputs=2)
        self.noise = columns
        self.factor = Factor(columns)

    def initialise(self, series: Tensor) -> None:
        covariance = self._fit_linear_model(series)
        scale = covariance.diagonal().sqrt()
        self.factor.initialise(covariance / scale / scale[:, None])

    def forward(self, x: Tensor, before: State = None) -> tuple[Tensor, Tensor, Tensor, State]:
        states, last = self.rnn.states(x, before)
        mean, std = self.rnn.output(states).float().chunk(2, dim=-1)
        return self._carried(x) + mean, softplus(std) + DEQUANTISATION, states, last

    def losses(self, mean: Tensor, std: Tensor, x: Tensor) -> Tensor:
        """−log p of each column, given those before it."""
        return self.factor.nll((x - mean) / std) + std.log()

    def _correlations(self) -> Tensor:
        found: Tensor = self.factor()
        return found


def dequantised(x: Tensor, noise: Noise, std: float = DEQUANTISATION) -> Tensor:
    return x + std * noise.normal(*x.shape[1:]) if std else x
