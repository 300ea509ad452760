"""The generator: a continuous-time flow process (Deng et al. 2020), of a simple process w to latent series.

At every step the same invertible map is applied to w, which is given the step's time: an ODE, and with `linear` a
linear layer after it. The process is

held  one standard normal vector, the same at every step; its likelihood is that of a random walk with unit steps, as in
      the authors' code, so that what is sampled is not what the likelihood is of;
ou    independent stationary columns: the sum of a number that is held and an Ornstein-Uhlenbeck process. How much is
      held, and the correlation from step to step, are trained.
"""

import math
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from timediff.generators.common.next_step import Factor
from timediff.networks.ode import ODESolver, solve

MOST_PERSISTENT = 0.9999  # fraction that is held, or correlation of a step with the next


class Velocity(nn.Module):
    """f(v, s, τ): v in latent space, s the time in the stay, τ the flow's own."""

    def __init__(self, latent: int, widths: tuple[int, ...]) -> None:
        super().__init__()
        sizes = [latent + 1, *widths, latent]
        self.layers = nn.ModuleList(TimedLinear(a, b) for a, b in pairwise(sizes))
        for parameter in self.layers[-1].parameters():
            nn.init.zeros_(parameter)  # at first the flow changes nothing

    def forward(self, v: Tensor, s: Tensor, tau: float) -> Tensor:
        x = torch.cat([v, s], dim=-1)
        for i, layer in enumerate(self.layers):
            x = layer(softplus(x) if i else x, tau)
        return x

    def with_products(self, v: Tensor, s: Tensor, tau: float, probes: Tensor) -> tuple[Tensor, Tensor]:
        """f, and its Jacobian in v times each of the probes (K, *v.shape), forward through the layers."""
        x, products = torch.cat([v, s], dim=-1), torch.cat([probes, torch.zeros_like(probes[..., :1])], dim=-1)
        for i, layer in enumerate(self.layers):
            assert isinstance(layer, TimedLinear)
            if i:
                x, products = softplus(x), products * torch.sigmoid(x)
            x, products = layer(x, tau), products @ layer.weight.T
        return x, products


class TimedLinear(nn.Linear):
    """A linear layer to which τ is one input more, as in FFJORD."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs)
        self.of_time = nn.Parameter(torch.empty(outputs).uniform_(-1, 1) / math.sqrt(inputs))

    def forward(self, x: Tensor, tau: float) -> Tensor:  # type: ignore[override]
        return super().forward(x) + tau * self.of_time


class Inverted(NamedTuple):
    w: Tensor  # (B, L, latent)
    log_determinant: Tensor  # (B, L) of ∂w/∂v
    kinetic: Tensor  # (B, L): ∫ |f|² / latent


class LinearMap(nn.Module):
    """v = A w + m with A = rotation · lower, of which only the lower triangle is trained."""

    rotation: Tensor

    def __init__(self, latent: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.zeros(latent))
        self.factor = Factor(latent)
        self.register_buffer("rotation", torch.eye(latent))

    @torch.no_grad()
    def initialise(self, mixing: Tensor, mean: Tensor) -> None:
        q, r = torch.linalg.qr(mixing.flip(1))  # from the last column on, so that the triangle is a lower one
        lower, signs = r.flip(0, 1), r.diagonal().flip(0).sign()
        self.mean.copy_(mean)
        self.rotation.copy_(q.flip(1) * signs)
        lower = signs[:, None] * lower
        self.factor.lower.copy_(lower.tril(-1) + lower.diagonal().log().diag())

    def forward(self, w: Tensor) -> Tensor:
        mixing: Tensor = self.rotation @ self.factor()
        return w @ mixing.T + self.mean

    def inverse(self, v: Tensor) -> tuple[Tensor, Tensor]:
        """w, and log |∂w/∂v|."""
        turned = ((v - self.mean) @ self.rotation).flatten(0, -2)
        w = torch.linalg.solve_triangular(self.factor(), turned.T, upper=False).T.reshape(v.shape)
        return w, -self.factor.lower.diagonal().sum()


class Flow(nn.Module):
    def __init__(
        self, latent: int, widths: tuple[int, ...], steps: int, solver: ODESolver, *, held: bool, linear: bool
    ) -> None:
        super().__init__()
        self.latent, self.steps, self.solver = latent, steps, solver
        self.velocity = Velocity(latent, widths)
        self.linear = LinearMap(latent) if linear else None
        self.process_logits = None if held else nn.Parameter(torch.zeros(2, latent))  # see of_process

    def forward(self, w: Tensor) -> Tensor:
        s = self._times(w)
        v = solve(lambda tau, v: self.velocity(v, s, tau), w, 0, 1, self.solver)
        mapped: Tensor = self.linear(v) if self.linear is not None else v
        return mapped

    def inverse(self, v: Tensor, probes: Tensor) -> Inverted:
        """Of v (B, L, latent). The trace of a Jacobian J is the mean of e·Je over probes e (K, B, L, latent).

        It is exact with the unit vectors times √latent, and right on average with random signs (Hutchinson).
        """
        s, log_determinant = self._times(v), torch.zeros((), device=v.device)
        if self.linear is not None:
            v, log_determinant = self.linear.inverse(v)

        def backwards(tau: float, state: Tensor) -> Tensor:
            f, products = self.velocity.with_products(state[..., :-2], s, 1 - tau, probes)
            trace = (products * probes).sum(dim=-1).mean(dim=0)
            return torch.cat([-f, -trace[..., None], f.square().mean(dim=-1, keepdim=True)], dim=-1)

        end = solve(backwards, torch.cat([v, torch.zeros_like(v[..., :1]).repeat(1, 1, 2)], dim=-1), 0, 1, self.solver)
        return Inverted(end[..., :-2], end[..., -2] + log_determinant, end[..., -1])

    def process(self, z: Tensor) -> Tensor:
        """w (B, L, latent) of standard normal numbers (B, 1 + L, latent), of which the first are held."""
        if self.process_logits is None:
            return z[:, :1].expand(-1, z.shape[1] - 1, -1)
        held, correlation = self.of_process(self.process_logits)
        rest, found = (1 - correlation.square()).sqrt(), [z[:, 1]]
        for step in z.unbind(dim=1)[2:]:
            found.append(correlation * found[-1] + rest * step)
        return held.sqrt() * z[:, :1] + (1 - held).sqrt() * torch.stack(found, dim=1)

    def log_density(self, w: Tensor) -> Tensor:
        """(B,): of whole series w, a step.

        What is left of one step given the one before it would be independent, were it not for what is held; that adds
        a matrix of rank one to their covariance.
        """
        steps, constant = w.shape[1], math.log(2 * math.pi)
        if self.process_logits is None:
            walk = torch.cat([w[:, :1], w.diff(dim=1)], dim=1)
            return -(walk.square() + constant).sum(dim=(1, 2)) / (2 * steps)
        held, correlation = self.of_process(self.process_logits)
        std = (1 - correlation.square()).sqrt()
        left = torch.cat([w[:, :1], (w[:, 1:] - correlation * w[:, :-1]) / std], dim=1)
        of_held = torch.cat([torch.ones_like(left[0, :1]), ((1 - correlation) / std).expand(steps - 1, -1)])
        ratio = held / (1 - held)
        raised = 1 + ratio * of_held.square().sum(dim=0)
        squares = left.square().sum(dim=1) - ratio / raised * (of_held * left).sum(dim=1).square()
        volume = 2 * (steps - 1) * std.log() + steps * (1 - held).log() + raised.log()
        return -(squares / (1 - held) + volume + steps * constant).sum(dim=-1) / (2 * steps)

    @staticmethod
    def of_process(logits: Tensor) -> tuple[Tensor, Tensor]:
        """The fraction of the variance that is held, and the correlation of a step with the next in the rest."""
        held, correlation = MOST_PERSISTENT * torch.sigmoid(logits)
        return held, correlation

    @torch.no_grad()
    def initialise(self, v: Tensor, noise: float) -> None:
        """The linear model of latents (B, L, latent): columns that are uncorrelated, now and with the next step.

        Of whitened latents the symmetric covariance with the next step has these columns as its axes (Tong et al.
        1991). How their correlations fall over a stay gives what is held. `noise` is the standard deviation of what is
        added to latents.
        """
        if self.linear is None:
            return
        flat = v.double().flatten(0, 1)
        mean = flat.mean(dim=0)
        least = max(noise, 1e-3) ** 2 * torch.eye(self.latent, dtype=flat.dtype, device=flat.device)
        root = torch.linalg.cholesky(flat.T.cov(correction=0).reshape(self.latent, -1) + least)
        white = torch.linalg.solve_triangular(root, (flat - mean).T, upper=False).T.reshape(v.shape)
        if v.shape[1] > 1 and self.process_logits is not None:
            now, following = white[:, :-1].flatten(0, 1), white[:, 1:].flatten(0, 1)
            lagged = now.T @ following / len(now)
            axes = torch.linalg.eigh((lagged + lagged.T) / 2).eigenvectors
            root, white = root @ axes, white @ axes
            self.process_logits.copy_((_process_of(white) / MOST_PERSISTENT).logit())
        self.linear.initialise(root, mean)

    def _times(self, v: Tensor) -> Tensor:
        """Of each step, in units of a whole stay: (B, L, 1)."""
        times = torch.arange(v.shape[1], device=v.device, dtype=v.dtype) / max(1, self.steps - 1)
        return times[None, :, None].expand(len(v), -1, 1)


def _process_of(white: Tensor) -> Tensor:
    """(2, latent): h and ρ with which correlations at lag k, h + (1 − h) ρᵏ, are right at lags 1, m and 2m."""

    def correlation(lag: int) -> Tensor:
        return (white[:, lag:] * white[:, : white.shape[1] - lag]).mean(dim=(0, 1))

    last = white.shape[1] - 1
    m = max(1, last // 2)
    at_m, at_2m = correlation(m), correlation(min(2 * m, last))
    held = ((at_2m - at_m.square()) / (1 + at_2m - 2 * at_m).clamp(min=1e-6)).clamp(0.01, 0.99)
    return torch.stack([held, ((correlation(1) - held) / (1 - held)).clamp(0.01, 0.999)])
