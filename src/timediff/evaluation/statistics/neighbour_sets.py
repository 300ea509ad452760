"""Training, held-out and synthetic stays as sets of equal size, for metrics that compare nearest neighbours.

Rows are stays (`View.flat`).
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats
from timediff.runtime.seeding import stream

FEWEST = 20  # stays in each set
RESAMPLES = 1000
SUBSET, HALF, BOOTSTRAP = 31, 32, 33  # parts of the evaluation stream

Distances = npt.NDArray[np.float32]
Sets = Mapping[str, Array]


def subset(rows: Array, size: int, rng: np.random.Generator) -> Array:
    return rows if len(rows) == size else rows[rng.choice(len(rows), size, replace=False)]


def halved(train: Array, test: Array, seed: int, repetition: int) -> Sets:
    """Half of the test stays as if synthetic, the other half as test stays, and as many training stays."""
    rng = stream("evaluation", seed, HALF, repetition)
    order, size = rng.permutation(len(test)), min(len(test) // 2, len(train))
    first, second = order[:size], order[size : 2 * size]
    return {"train": subset(train, size, rng), "test": test[first], "synthetic": test[second]}


def rounded(distances: Floats) -> Distances:
    """To float32: distances that differ in how they were summed up alone are ties."""
    return distances.astype(np.float32)


def too_few(train: Array, test: Array, synthetic: Array) -> str:
    for name, rows in (("training", train), ("held-out", test), ("synthetic", synthetic)):
        if len(rows) < FEWEST:
            return f"needs at least {FEWEST} {name} stays, and there are {len(rows)}."
    return ""


def no_floor(test: Array) -> str:
    """Why held-out stays cannot be halved; empty where they can."""
    if len(test) >= 2 * FEWEST:
        return ""
    return f"no floor: it needs at least {2 * FEWEST} held-out stays, and there are {len(test)}."
