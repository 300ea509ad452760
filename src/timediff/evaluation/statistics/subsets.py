"""Random parts of a set of stays that are to be trained on, as the paper's authors draw them."""

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array

Index = npt.NDArray[np.int64]


def stratified(classes: Array, size: int, rng: np.random.Generator) -> Index:
    """Positions of `size` stays, or of all, each class as frequent as in the whole, and none of them left out."""
    size = min(size, len(classes))
    _, index, counts = np.unique(classes, return_inverse=True, return_counts=True)
    wanted = counts * size / max(len(classes), 1)
    taken = np.maximum(np.floor(wanted).astype(np.int64), 1)
    while taken.sum() < size:  # the largest remainders are rounded up
        taken[np.argmax(np.where(taken < counts, wanted - taken, -np.inf))] += 1
    while taken.sum() > size and (taken > 1).any():
        taken[np.argmax(np.where(taken > 1, taken - wanted, -np.inf))] -= 1
    chosen = [rng.permutation(np.flatnonzero(index == k))[:count] for k, count in enumerate(taken)]
    found: Index = rng.permutation(np.concatenate(chosen)) if chosen else np.empty(0, np.int64)
    return found
