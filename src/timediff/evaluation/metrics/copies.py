"""Exact copies: synthetic stays that equal a training stay in every value.

A stay in which hardly anything was measured equals others by chance, so only stays with several different values
count. Without copying, held-out and synthetic stays are exchangeable: of the copies among both, the number among the
synthetic ones is hypergeometric. Where no held-out stay is a copy, any is one too many.
"""

import hashlib
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.overlap import TELLING, telling
from timediff.evaluation.case import Measurement
from timediff.evaluation.inputs.view import View
from timediff.evaluation.metrics.near_copies import FALSE_ALARMS, most_by_chance
from timediff.evaluation.registry import Meaning, metric
from timediff.evaluation.score import Score, unavailable, with_floors
from timediff.evaluation.statistics.bootstrap import bootstrap, interval, resample
from timediff.evaluation.statistics.neighbour_sets import BOOTSTRAP, RESAMPLES, StayRows, too_few
from timediff.runtime.seeding import stream

Flags = npt.NDArray[np.bool_]


@metric(
    "copies",
    "private",
    title="Exact copies",
    sentence="Whether stays of the training data were simply repeated.",
    numbers={
        "share": Meaning(
            "copies",
            f"Fraction of synthetic stays that have {TELLING} different values or more and equal a training stay in "
            "every value. Beside it the fraction of unseen stays that do, and how many chance explains at most.",
            "0, or as among unseen stays",
            worst=True,
        )
    },
)
def measure(given: Measurement) -> list[Score]:
    return copies_among(given.train, given.test, given.cohort, given.case.strict_view, seed=given.settings.seed)


def copies_among(train: Cohort, test: Cohort, synthetic: Cohort, view: View, *, seed: int = 0) -> list[Score]:
    """The fraction of copies in a cohort; the floor is that of held-out stays."""
    rows = (StayRows.of(one, view) for one in (train, test, synthetic))
    return copied(*rows, counted=(telling(test), telling(synthetic)), seed=seed)


def copied(
    train: Array | StayRows,
    test: Array | StayRows,
    synthetic: Array | StayRows,
    *,
    counted: tuple[Flags, Flags] | None = None,
    seed: int = 0,
) -> list[Score]:
    """The same of rows; `counted` says which held-out and synthetic rows can be copies, all if it is not given."""
    train, test, synthetic = map(StayRows.each, (train, test, synthetic))
    if why := too_few(train, test, synthetic):
        return [unavailable("copies", "share", why)]
    counts = counted or (np.ones(len(test), dtype=bool), np.ones(len(synthetic), dtype=bool))
    equal = [_equal(train.rows, stays.rows) for stays in (test, synthetic)]
    of_test, of_synthetic = (flags & known for flags, known in zip(equal, counts, strict=True))
    score, floor = _score(of_synthetic, synthetic, seed), _score(of_test, test, seed)
    # A held-out patient with several stays is counted once.
    patients = int(test.units.max(initial=-1)) + 1
    copying = len(np.unique(test.units[of_test]))
    most = most_by_chance(copying + 1, patients, len(synthetic), FALSE_ALARMS) if copying else 0
    (score,) = with_floors([score], [replace(floor, low=0.0, high=most / len(synthetic))])
    left_out = int((equal[1] & ~counts[1]).sum())
    if left_out:
        note = f"{left_out:,} more equal a training stay, but have fewer than {TELLING} different values."
        score = replace(score, note=note)
    return [score]


def copies(train: Array, rows: Array) -> float:
    """The fraction of `rows` at distance 0 from a training row."""
    return float(_equal(train, rows).mean())


def _score(copy: Flags, stays: StayRows, seed: int) -> Score:
    rng, rate = stream("evaluation", seed, BOOTSTRAP), float(copy.mean())

    def resampled() -> Floats:
        counts = resample(stays.units, rng)
        return np.asarray(counts @ copy / counts.sum())

    # Of stays drawn one by one the number of copies is binomial.
    one_by_one = stays.single
    shares = rng.binomial(len(stays), rate, RESAMPLES) / len(stays) if one_by_one else bootstrap(resampled, RESAMPLES)
    low, high = interval(shares)
    return Score("copies", "share", rate, n=len(stays), low=low, high=high)


def _equal(train: Array, rows: Array) -> Flags:
    def prints(array: Array) -> list[bytes]:
        plain = np.ascontiguousarray(array, np.result_type(train, rows)) + 0.0  # −0 is 0
        return [hashlib.blake2b(row, digest_size=16).digest() for row in plain]

    known = set(prints(train))
    return np.array([row in known for row in prints(rows)], dtype=bool)
