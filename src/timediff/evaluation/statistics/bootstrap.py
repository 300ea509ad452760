"""The bootstrap over stays: units of stays are drawn again with replacement.

A unit is what is independent of the others: all stays of a patient, or a stretch of one long series
(`resampling_units`). A resample is how often each stay was drawn.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats, Units

Counts = npt.NDArray[np.int64]


def resample(units: int | Units, rng: np.random.Generator) -> Counts:
    """How often each stay is drawn, (N,): as often as its unit. A number means so many stays, each its own unit."""
    count = int(units.max(initial=-1)) + 1 if isinstance(units, np.ndarray) else units
    drawn = np.bincount(rng.integers(count, size=count), minlength=count)
    return drawn[units] if isinstance(units, np.ndarray) else drawn


def resamples(units: int | Units, count: int, rng: np.random.Generator) -> Counts:
    """How often each stay counts, (1 + count, N): once each in the first row, then in `count` resamples."""
    out = np.ones((1 + count, len(units) if isinstance(units, np.ndarray) else units), np.int64)
    for row in out[1:]:
        row[:] = resample(units, rng)
    return out


def bootstrap(statistics: Callable[[], Floats], count: int) -> Floats:
    """What `statistics`, which draws a resample each time, gives `count` times, (count, K)."""
    return np.stack([statistics() for _ in range(count)])


def interval(statistics: Array, fraction: float = 0.95) -> tuple[float, float]:
    """The middle `fraction` of bootstrap statistics."""
    known = statistics[~np.isnan(statistics)]
    if len(known) == 0:
        return math.nan, math.nan
    low, high = np.quantile(known, [(1 - fraction) / 2, (1 + fraction) / 2])
    return float(low), float(high)


def centred_interval(value: float, statistics: Array, most: float = math.inf) -> tuple[float, float]:
    """The interval of a number that cannot be negative, such as a distance.

    Resampling adds noise, and noise makes every distance larger: so the resamples are moved to the value.
    """
    known = statistics[~np.isnan(statistics)]
    if len(known) == 0:
        return math.nan, math.nan
    low, high = interval(known)
    shift = value - float(known.mean())
    return min(max(0.0, low + shift), most), min(high + shift, most)


def interval_of_greatest(values: Floats, statistics: Floats, fraction: float = 0.95) -> tuple[float, float]:
    """An interval of the greatest of several numbers, (K,), from their common resamples (B, K).

    Every number gets an interval, so wide that all K hold at once in `fraction` of the resamples (the greatest
    deviation in standard errors decides). So the interval also holds of whichever number was chosen.
    """
    known = statistics[~np.isnan(statistics).any(axis=1)]
    if len(known) == 0 or np.isnan(values).any():
        return math.nan, math.nan
    deviations = known - known.mean(axis=0)
    errors = np.maximum(known.std(axis=0), 1e-12)
    reach = float(np.quantile(np.max(np.abs(deviations) / errors, axis=1), fraction))
    return float(np.max(values - reach * errors)), float(np.max(values + reach * errors))
