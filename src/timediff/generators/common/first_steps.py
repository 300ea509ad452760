"""First steps, from which a network runs freely: of a fitted distribution, or those of the training stays."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.generators.common.columns import Columns
from timediff.runtime.randomness import Noise

MAX_KNOTS = 1000  # a column


class FirstSteps(nn.Module):
    """(B, columns) of valid first steps; what it knows of the training data is in its buffers."""

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self.columns = columns

    @abstractmethod
    def fit(self, vectors: Tensor) -> None:
        """Fits to those of the training stays, (N, columns)."""

    @abstractmethod
    def sample(self, noise: Noise) -> Tensor: ...

    def losses(self, vectors: Tensor) -> Tensor | None:
        """How ill first steps (B, columns) are known, (B,); None where no single one is."""
        return None

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        for name, value in self.named_buffers():  # their sizes follow from the number of training stays
            setattr(self, name, value.new_empty(state_dict.get(f"{prefix}{name}", value).shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)


class Copula(FirstSteps):
    """Each channel's distribution, and the channels' rank correlations.

    It keeps quantiles of a continuous channel, each the mean of at least ten stays, or of all where there are fewer,
    and of a discrete one the rates of its classes.
    """

    knots: Tensor  # (continuous, Q), ascending
    edges: Tensor  # (discrete, K) of the largest K: the fraction of classes up to each
    factor: Tensor  # (channels, channels): A with A Aᵀ the correlation of normal scores

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        continuous, classes = columns.continuous, columns.classes
        self.register_buffer("knots", torch.zeros(continuous, 1))
        self.register_buffer("edges", torch.ones(len(classes), max(classes, default=1)))
        self.register_buffer("factor", torch.eye(continuous + len(classes)))

    def fit(self, vectors: Tensor) -> None:
        x, c = self.columns.split(vectors)
        groups = x.double().sort(dim=0).values.tensor_split(max(1, min(MAX_KNOTS, len(x) // MIN_AGGREGATE)))
        self.knots = torch.stack([group.mean(dim=0) for group in groups], dim=1).float()
        rates = [own.bincount(minlength=self.edges.shape[1]) / len(c) for own in c.T]
        self.edges = torch.stack([one.double().cumsum(0) for one in rates]).float() if rates else self.edges
        scores = torch.special.ndtri((_ranks(torch.cat([x.double(), c.double()], dim=1)) + 0.5) / len(x))
        scores = (scores - scores.mean(dim=0)) / scores.std(dim=0, correction=0).clamp(min=1e-6)
        values, axes = torch.linalg.eigh(scores.T @ scores / len(x))
        self.factor = (axes * values.clamp(min=0).sqrt()).float()

    def sample(self, noise: Noise) -> Tensor:
        quantile = torch.special.ndtr(noise.normal(len(self.factor)) @ self.factor.T)
        u, v = torch.split(quantile, [len(self.knots), len(self.edges)], dim=1)
        c = (v[..., None] > self.edges[:, :-1]).sum(dim=-1)
        last = self.knots.shape[1] - 1
        place = (u * (last + 1) - 0.5).clamp(0, last)  # among the knots
        below = place.floor().long().clamp(max=max(0, last - 1))
        low, high = (self.knots.T.gather(0, at) for at in (below, (below + 1).clamp(max=last)))
        return self.columns.join(low + (high - low) * (place - below), c)


class Remembered(FirstSteps):
    """The training stays' own, as in the paper: whoever has them has a part of every training stay."""

    vectors: Tensor  # (N, columns)

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.register_buffer("vectors", torch.zeros(1, columns.width))

    def fit(self, vectors: Tensor) -> None:
        self.vectors = vectors.clone()

    def sample(self, noise: Noise) -> Tensor:
        return self.vectors[noise.integers(len(self.vectors))]

    def losses(self, vectors: Tensor) -> Tensor:
        """The squared distance to the nearest, a column: 0 of a training stay's."""
        # By differences: from a product of matrices, as for many rows by default, no copy would be at distance 0.
        distance = torch.cdist(vectors, self.vectors, compute_mode="donot_use_mm_for_euclid_dist")
        return distance.amin(dim=1).square() / self.columns.width


FIRST_STEPS: dict[str, Callable[[Columns], FirstSteps]] = {"fitted": Copula, "real": Remembered}


def _ranks(vectors: Tensor) -> Tensor:
    """Of each column's values, 0 … N − 1; equal ones share the middle of theirs."""
    ranks = torch.empty(vectors.shape, dtype=torch.float64)
    for i, column in enumerate(vectors.T):
        _, group, counts = column.unique(return_inverse=True, return_counts=True)
        ends = counts.cumsum(0)
        ranks[:, i] = (ends - (counts + 1) / 2)[group]
    return ranks
