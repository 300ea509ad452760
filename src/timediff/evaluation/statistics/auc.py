"""The area under the ROC curve: how often a positive row scores higher than a negative one; a tie counts half."""

import numpy as np

from timediff.data.arrays import Array, Floats


class Ranked:
    """Rows in the order of their scores, so that each resample of them costs no more than a few sums."""

    def __init__(self, scores: Array, positive: Array) -> None:
        self.order = np.argsort(scores, kind="stable")
        ordered = scores[self.order]
        self.positive = np.asarray(positive, bool)[self.order]
        self.ties = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])  # where each value begins

    def auc(self, weights: Array | None = None) -> float:
        """Row i counts `weights[i]` times, or once; NaN without a row of either kind."""
        weight = np.ones(len(self.order)) if weights is None else weights[self.order].astype(np.float64)
        above = np.add.reduceat(weight * self.positive, self.ties)
        below = np.add.reduceat(weight * ~self.positive, self.ties)
        pairs = above.sum() * below.sum()
        return float((above * (below.cumsum() - below / 2)).sum() / pairs) if pairs > 0 else np.nan


def auroc(y: Array, scores: Floats, weights: Array) -> Floats:
    """The area for each row of weights (B, N); NaN without two classes.

    `scores` are (N, K). Of two classes the second counts; of more it is the mean of one against the rest.
    """
    chosen = [1] if scores.shape[1] == 2 else range(scores.shape[1])
    ranked = [Ranked(scores[:, k], y == k) for k in chosen]
    areas = np.array([[one.auc(weight) for weight in weights] for one in ranked])
    known = ~np.isnan(areas)
    count = known.sum(axis=0)
    total = np.where(known, areas, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
