"""Stochastic processes as noise: their covariance over the times of a series, and its factor (Biloš et al. 2023)."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn


def gaussian_process(gap: Tensor, sigma: float) -> Tensor:
    """exp(−(t − t′)² / σ²), of the gaps between times: a smooth process."""
    return (gap / sigma).square().neg().exp()


def ornstein_uhlenbeck(gap: Tensor, theta: float) -> Tensor:
    """exp(−θ |t − t′|): a continuous, rough process, stationary from the start."""
    return (gap.abs() * -theta).exp()


class NoiseFactor(NamedTuple):
    """Of a covariance L Lᵀ over the steps of a series, (length, length): L, and its inverse."""

    color: Tensor
    whiten: Tensor

    def colored(self, z: Tensor) -> Tensor:
        """L z: series of this covariance from white noise (B, length, P)."""
        return _product(self.color, z)

    def whitened(self, x: Tensor) -> Tensor:
        """L⁻¹ x, its innovations."""
        return _product(self.whiten, x)


def _product(matrix: Tensor, series: Tensor) -> Tensor:
    """In single precision also where a network is trained in half of it: innovations are small differences."""
    with torch.autocast(series.device.type, enabled=False):
        return matrix @ series.float()


class NoiseProcess(nn.Module):
    """Noise of unit variance: the same process for each column, over times 0 … 1 for as many steps as trained on.

    A longer series goes on beyond 1, so that neighbouring steps are as alike as they were in training.
    """

    color: Tensor
    whiten: Tensor

    def __init__(self, correlation: Callable[[Tensor], Tensor], steps: int, jitter: float) -> None:
        super().__init__()
        self._correlation, self._jitter, self.spacing = correlation, jitter, 1 / max(1, steps - 1)
        for name, matrix in self._computed(steps)._asdict().items():
            self.register_buffer(name, matrix, persistent=False)

    def times(self, length: int) -> Tensor:
        return torch.arange(length, dtype=torch.float64) * self.spacing

    def covariance(self, length: int) -> Tensor:
        """(length, length), in double."""
        times = self.times(length)
        return self._correlation(times[:, None] - times) + self._jitter * torch.eye(length, dtype=times.dtype)

    def factor(self, length: int) -> NoiseFactor:
        if length == len(self.color):
            return NoiseFactor(self.color, self.whiten)
        return NoiseFactor(*(matrix.to(self.color.device) for matrix in self._computed(length)))

    def _computed(self, length: int) -> NoiseFactor:
        color = torch.linalg.cholesky(self.covariance(length))
        whiten = torch.linalg.solve_triangular(color, torch.eye(length, dtype=color.dtype), upper=False)
        return NoiseFactor(color.float(), whiten.float())
