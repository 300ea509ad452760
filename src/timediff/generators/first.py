"""First vectors, from which a network runs freely: drawn from a fitted distribution, or those of the training stays."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from timediff.generators.columns import Columns
from timediff.randomness import Noise

FEWEST = 10  # training stays that a knot is the mean of, so that it is nobody's value
MOST = 1000  # knots a column


class First(nn.Module):
    """(B, columns) of valid first vectors; what it knows of the training data is in its buffers."""

    def __init__(self, columns: Columns) -> None:
        super().__init__()
        self.columns = columns

    @abstractmethod
    def fit(self, vectors: Tensor) -> None:
        """Learns from those of the training stays, (N, columns)."""

    @abstractmethod
    def draw(self, noise: Noise) -> Tensor: ...

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        for name, value in self.named_buffers():  # their sizes follow from the number of training stays
            setattr(self, name, value.new_empty(state_dict.get(f"{prefix}{name}", value).shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)


class Fitted(First):
    """A Gaussian copula: each column's quantiles, as means of at least ten stays, and their rank correlations."""

    knots: Tensor  # (columns, Q), ascending
    factor: Tensor  # (columns, columns): A with A Aᵀ the correlation of normal scores

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.register_buffer("knots", torch.zeros(columns.width, 1))
        self.register_buffer("factor", torch.eye(columns.width))

    def fit(self, vectors: Tensor) -> None:
        n = len(vectors)
        ordered = vectors.double().sort(dim=0).values
        groups = ordered.tensor_split(max(1, min(MOST, n // FEWEST)))
        self.knots = torch.stack([group.mean(dim=0) for group in groups], dim=1).float()
        scores = torch.special.ndtri((_ranks(vectors) + 0.5) / n)
        scores = (scores - scores.mean(dim=0)) / scores.std(dim=0).clamp(min=1e-6)
        values, axes = torch.linalg.eigh(scores.T @ scores / n)
        self.factor = (axes * values.clamp(min=0).sqrt()).float()

    def draw(self, noise: Noise) -> Tensor:
        scores = noise.normal(self.columns.width) @ self.factor.T
        knots = self.knots.shape[1]
        place = (torch.special.ndtr(scores) * knots - 0.5).clamp(0, knots - 1)  # among the knots
        below = place.floor().long().clamp(max=max(0, knots - 2))
        above = (below + 1).clamp(max=knots - 1)
        low, high = (self.knots.T.gather(0, at) for at in (below, above))
        vector = low + (high - low) * (place - below)
        return self.columns.join(*self.columns.split(vector))  # its classes are valid ones


class Real(First):
    """The training stays' own, as in the paper: whoever has them has a part of every training stay."""

    vectors: Tensor  # (N, columns)

    def __init__(self, columns: Columns) -> None:
        super().__init__(columns)
        self.register_buffer("vectors", torch.zeros(1, columns.width))

    def fit(self, vectors: Tensor) -> None:
        self.vectors = vectors.clone()

    def draw(self, noise: Noise) -> Tensor:
        return self.vectors[noise.integers(len(self.vectors))]


FIRST: dict[str, Callable[[Columns], First]] = {"fitted": Fitted, "real": Real}


def _ranks(vectors: Tensor) -> Tensor:
    """Of each column's values, 0 … N − 1; equal ones share the middle of theirs."""
    ranks = torch.empty(vectors.shape, dtype=torch.float64)
    for i, column in enumerate(vectors.T):
        _, group, counts = column.unique(return_inverse=True, return_counts=True)
        ends = counts.cumsum(0)
        ranks[:, i] = (ends - (counts + 1) / 2)[group]
    return ranks
