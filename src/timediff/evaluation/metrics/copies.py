"""Exact copies: synthetic stays that equal a training stay in every value."""

import hashlib

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats
from timediff.evaluation.case import Measurement
from timediff.evaluation.registry import Meaning, metric
from timediff.evaluation.score import Score, unavailable, with_floors
from timediff.evaluation.statistics.bootstrap import bootstrap, interval, resample
from timediff.evaluation.statistics.neighbour_sets import BOOTSTRAP, RESAMPLES, StayRows, too_few
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
    train, test, synthetic = (StayRows.of(one, given.view) for one in (given.train, given.test, given.cohort))
    return copied(train, test, synthetic, seed=given.settings.seed)


def copied(
    train: Array | StayRows, test: Array | StayRows, synthetic: Array | StayRows, *, seed: int = 0
) -> list[Score]:
    """The fraction of synthetic stays that equal a training stay; the floor is that of held-out stays."""
    train, test, synthetic = map(StayRows.each, (train, test, synthetic))
    if why := too_few(train, test, synthetic):
        return [unavailable("copies", "share", why)]
    return with_floors([_score(train, synthetic, seed)], [_score(train, test, seed)])


def copies(train: Array, rows: Array) -> float:
    """The fraction of `rows` at distance 0 from a training row."""
    return float(_equal(train, rows).mean())


def _score(train: StayRows, stays: StayRows, seed: int) -> Score:
    copy, rng = _equal(train.rows, stays.rows), stream("evaluation", seed, BOOTSTRAP)
    rate = float(copy.mean())

    def resampled() -> Floats:
        counts = resample(stays.units, rng)
        return np.asarray(counts @ copy / counts.sum())

    # Of stays drawn one by one the number of copies is binomial.
    one_by_one = stays.single
    shares = rng.binomial(len(stays), rate, RESAMPLES) / len(stays) if one_by_one else bootstrap(resampled, RESAMPLES)
    low, high = interval(shares)
    return Score("copies", "share", rate, n=len(stays), low=low, high=high)


def _equal(train: Array, rows: Array) -> npt.NDArray[np.bool_]:
    def prints(array: Array) -> list[bytes]:
        plain = np.ascontiguousarray(array, np.result_type(train, rows)) + 0.0  # −0 is 0
        return [hashlib.blake2b(row, digest_size=16).digest() for row in plain]

    known = set(prints(train))
    return np.array([row in known for row in prints(rows)], dtype=bool)
