"""Streams of random numbers by key: what a number is drawn for, the seed, and which part of the work it is."""

import numpy as np

from timediff.errors import TimeDiffError

PURPOSES = ("order", "training", "sampling", "weights", "simulation", "evaluation", "validation")


def sequence(purpose: str, *key: int) -> np.random.SeedSequence:
    """The root of one stream; different purposes and keys have different ones."""
    words = [PURPOSES.index(purpose)]
    for number in key:
        if not 0 <= number < 2**64:
            raise TimeDiffError(f"{number} cannot be a seed: expected a whole number from 0 to 2⁶⁴ − 1.")
        # Two words each, whatever their size: otherwise (5 + 3 · 2³², 0) would be the key (5, 3) again.
        words += [number & 0xFFFFFFFF, number >> 32]
    return np.random.SeedSequence(words)


def stream(purpose: str, *key: int) -> np.random.Generator:
    return np.random.default_rng(sequence(purpose, *key))
