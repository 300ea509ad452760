"""How far two cohorts are apart in one number, as scores with intervals: what several metrics measure by.

Statistics are arrays (1 + bootstrap,): of the cohorts themselves first, then of each of their resamples.
"""

from typing import NamedTuple

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.evaluation.score import Score
from timediff.evaluation.statistics.bootstrap import centred_interval, interval
from timediff.evaluation.statistics.resampling import Observations, Resampled, fractions

GRID = 512  # points at which resampled distributions are compared


class Sample(NamedTuple):
    """Values of a cohort in one row, stay after stay, and whose each is."""

    values: Array
    stay: Array


def distance(metric: str, what: str, statistics: Floats, n: int, *, feature: str | None) -> Score:
    """A score that cannot be negative."""
    value = float(statistics[0])
    low, high = centred_interval(value, statistics[1:])
    return Score(metric, what, value, feature=feature, n=n, low=low, high=high)


def difference(metric: str, what: str, statistics: Floats, n: int, *, feature: str | None) -> Score:
    """A score with a sign: synthetic minus real."""
    low, high = interval(statistics[1:])
    return Score(metric, what, float(statistics[0]), feature=feature, n=n, low=low, high=high)


def total_variation(real: Floats, synthetic: Floats) -> Floats:
    """Half the sum of absolute differences of fractions, row by row."""
    out: Floats = np.abs(real - synthetic).sum(axis=1) / 2
    return out


def apart(real: Resampled, r: Sample, synthetic: Resampled, s: Sample) -> tuple[Floats, Floats]:
    """Kolmogorov–Smirnov and Wasserstein distance of two samples.

    The first of each is exact; resamples are compared at 512 quantiles where there are more different values.
    """
    pooled = np.concatenate([r.values, s.values])
    every, points = np.unique(pooled), quantiles(pooled)
    ours, theirs = (
        np.cumsum(fractions(resampled.tally(known.stay, np.searchsorted(points, known.values), len(points))), axis=1)
        for resampled, known in ((real, r), (synthetic, s))
    )
    exact = _apart(_cumulative(r.values, every), _cumulative(s.values, every), every)
    resampled = _apart(ours[1:], theirs[1:], points)
    ks, wasserstein = (np.concatenate(pair) for pair in zip(exact, resampled, strict=True))
    return ks, wasserstein


def quantiles(pooled: Floats) -> Floats:
    """The different values, or of too many of them 512 quantiles, the lowest and the highest among them."""
    every = np.unique(pooled)
    if len(every) <= GRID:
        return every
    out: Floats = np.unique(np.sort(pooled)[np.linspace(0, len(pooled) - 1, GRID).astype(np.int64)])
    return out


def too_few(real: Observations, synthetic: Observations) -> str:
    """Why a feature cannot be compared: too few stays have a value of it."""
    for name, known in (("real", real), ("synthetic", synthetic)):
        if known.stays == 0:
            return f"all of its values are missing in the {name} cohort; {MIN_AGGREGATE} stays with a value are needed"
        if known.stays < MIN_AGGREGATE:
            return (
                f"fewer than {MIN_AGGREGATE} stays have a value of it in the {name} cohort; {MIN_AGGREGATE} are needed"
            )
    return ""


def _cumulative(values: Floats, points: Floats) -> Floats:
    """Fraction of values up to each point, (1, points)."""
    return np.searchsorted(np.sort(values), points, side="right")[None] / len(values)


def _apart(real: Floats, synthetic: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Both distances of distribution functions that step at `points`, row by row."""
    gap = np.abs(real - synthetic)
    return gap.max(axis=1), (gap[:, :-1] * np.diff(points)).sum(axis=1)
