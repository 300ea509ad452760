"""Exact copies: synthetic stays that equal a training stay in every value."""

import hashlib

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array
from timediff.evaluation.case import Measurement
from timediff.evaluation.registry import Meaning, metric
from timediff.evaluation.score import Score, unavailable, with_floors
from timediff.evaluation.statistics.bootstrap import interval
from timediff.evaluation.statistics.neighbour_sets import BOOTSTRAP, RESAMPLES, too_few
from timediff.runtime.seeding import stream


@metric(
    "copies",
    "private",
    title="Exact copies",
    sentence="Whether stays of the training data were simply repeated.",
    numbers={
        "share": Meaning(
            "copies",
            "Fraction of synthetic stays that equal a training stay in every value.",
            "0, or as among unseen stays",
            worst=True,
        )
    },
)
def measure(given: Measurement) -> list[Score]:
    train, test, synthetic = (given.view.flat(one) for one in (given.train, given.test, given.cohort))
    return copied(train, test, synthetic, seed=given.settings.seed)


def copied(train: Array, test: Array, synthetic: Array, *, seed: int = 0) -> list[Score]:
    """The fraction of synthetic stays that equal a training stay; the floor is that of held-out stays."""
    if why := too_few(train, test, synthetic):
        return [unavailable("copies", "share", why)]
    return with_floors([_score(train, synthetic, seed)], [_score(train, test, seed)])


def copies(train: Array, rows: Array) -> float:
    """The fraction of `rows` at distance 0 from a training row."""
    return float(_equal(train, rows).mean())


def _score(train: Array, rows: Array, seed: int) -> Score:
    rate = copies(train, rows)
    # How many copies a resample has is binomial.
    low, high = interval(stream("evaluation", seed, BOOTSTRAP).binomial(len(rows), rate, RESAMPLES) / len(rows))
    return Score("copies", "share", rate, n=len(rows), low=low, high=high)


def _equal(train: Array, rows: Array) -> npt.NDArray[np.bool_]:
    def prints(array: Array) -> list[bytes]:
        plain = np.ascontiguousarray(array, np.result_type(train, rows)) + 0.0  # −0 is 0
        return [hashlib.blake2b(row, digest_size=16).digest() for row in plain]

    known = set(prints(train))
    return np.array([row in known for row in prints(rows)], dtype=bool)
