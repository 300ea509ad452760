"""Streams of random numbers by key: what a number is drawn for, the seed, and which part of the work it is."""

from typing import TYPE_CHECKING

from timediff.errors import TimeDiffError

if TYPE_CHECKING:
    import numpy as np

PURPOSES = ("order", "training", "sampling", "weights", "simulation", "evaluation", "validation", "codec")
MAX_SEED = 2**63 - 1  # what a machine's whole number, TOML and PyTorch's generators hold


def require_seed(seed: int) -> None:
    """To be asked before anything is written."""
    if not 0 <= seed <= MAX_SEED:
        raise TimeDiffError(f"{seed} cannot be a seed: expected a whole number from 0 to 2⁶³ − 1.")


def sequence(purpose: str, *key: int) -> "np.random.SeedSequence":
    """The root of one stream; different purposes and keys have different ones."""
    import numpy as np  # here, since the command line knows seeds without it

    words = [PURPOSES.index(purpose)]
    for number in key:
        if not 0 <= number < 2**64:
            raise TimeDiffError(f"{number} cannot be a seed: expected a whole number from 0 to 2⁶⁴ − 1.")
        # Two words each, whatever their size: otherwise (5 + 3 · 2³², 0) would be the key (5, 3) again.
        words += [number & 0xFFFFFFFF, number >> 32]
    return np.random.SeedSequence(words)


def stream(purpose: str, *key: int) -> "np.random.Generator":
    import numpy as np

    return np.random.default_rng(sequence(purpose, *key))
