"""Stays drawn again: what a bootstrap over stays needs, at the price of a matrix product a number.

A number that is a function of sums over stays needs its sums once a stay; then every resample is a row of weights.
"""

import math

import numpy as np

from timediff.cohort import Cohort
from timediff.metrics.record import Score, interval
from timediff.schema import Feature
from timediff.tables import Array, Floats

BLOCK = 2_000  # stays whose tables are held at a time
FEWEST = 10  # no number rests on fewer stays: fewer would describe persons


class Cells:
    """The cells of one feature, (N, L) or, static, (N, 1): their values, which are within the stay, which observed."""

    def __init__(self, cohort: Cohort, feature: Feature) -> None:
        temporal = feature.scope == "temporal"
        self.values: Floats = np.asarray(cohort.values(feature.name), np.float64).reshape(len(cohort), -1)
        steps = np.arange(self.values.shape[1])
        self.inside = steps < cohort.lengths[:, None] if temporal else np.ones(self.values.shape, dtype=bool)
        self.observed = self.inside & ~np.isnan(self.values)
        self.missing = self.inside & ~self.observed
        self.known = self.values[self.observed]  # in one row, stay after stay
        self.stay = np.nonzero(self.observed)[0]  # whose they are
        self.stays = int(self.observed.any(axis=1).sum())

    def standardised(self, shift: float, scale: float) -> Floats:
        """Values in units of `scale` about `shift`; 0 where nothing was observed."""
        return np.where(self.observed, (self.values - shift) / scale, 0.0)


class Resampled:
    """A cohort, and how often each of its stays is drawn: in column 0 once each, in the others by chance."""

    def __init__(self, cohort: Cohort, bootstrap: int, rng: np.random.Generator) -> None:
        stays = len(cohort)
        self.cohort = cohort
        self.counts = np.ones((stays, 1 + bootstrap))
        for column in range(1, 1 + bootstrap):
            self.counts[:, column] = np.bincount(rng.integers(stays, size=stays), minlength=stays)

    def sums(self, per_stay: Array) -> Floats:
        """Sums over the stays drawn: (N, K) to (1 + bootstrap, K)."""
        out: Floats = self.counts.T @ np.asarray(per_stay, np.float64)
        return out

    def tally(self, stay: Array, column: Array, width: int) -> Floats:
        """How many things lie in each column, thing i being in `column[i]` and of `stay[i]`: (1 + bootstrap, width)."""
        out = np.zeros((self.counts.shape[1], width))
        starts = np.arange(0, len(self.counts), BLOCK)
        ends = np.minimum(starts + BLOCK, len(self.counts))
        firsts, lasts = np.searchsorted(stay, starts), np.searchsorted(stay, ends)  # stays are in order
        for start, end, first, last in zip(starts, ends, firsts, lasts, strict=True):
            cell = (stay[first:last] - start) * width + column[first:last]
            per_stay = np.bincount(cell, minlength=(end - start) * width).reshape(end - start, width)
            out += self.counts[start:end].T @ per_stay.astype(np.float64)
        return out


def shares(counts: Floats) -> Floats:
    """Each row divided by its sum; NaN where there is nothing."""
    return ratio(counts, counts.sum(axis=1, keepdims=True))


def ratio(above: Floats, below: Floats) -> Floats:
    """above / below, NaN where below is not positive."""
    out: Floats = above / np.where(below > 0, below, np.nan)
    return out


def distance(what: str, statistics: Floats, n: int, *, value: float | None = None, **about: str) -> Score:
    """A score that cannot be negative. Resampling adds noise, and noise makes every distance larger: so the interval
    is the spread of the resamples about the value, not where they lie."""
    value = float(statistics[0]) if value is None else value
    low, high = interval(statistics[1:])
    drawn = statistics[1:][~np.isnan(statistics[1:])]
    shift = value - float(drawn.mean()) if len(drawn) else math.nan
    low, high = (low if math.isnan(low) else max(0.0, low + shift)), high + shift
    return Score("fidelity", what, value, n=n, low=low, high=high, **about)  # type: ignore[arg-type]


def difference(what: str, statistics: Floats, n: int, **about: str) -> Score:
    """A score with a sign: synthetic minus real."""
    low, high = interval(statistics[1:])
    return Score("fidelity", what, float(statistics[0]), n=n, low=low, high=high, **about)  # type: ignore[arg-type]


def mean_gap(real: Floats, synthetic: Floats) -> Floats:
    """Mean absolute difference along the last axis. What is undefined in one cohort only counts as 0 there (a
    generator gains nothing by making a feature constant); what is undefined in both is left out."""
    gap = np.abs(np.nan_to_num(real) - np.nan_to_num(synthetic))
    defined = ~(np.isnan(real) & np.isnan(synthetic))
    return ratio(gap.sum(axis=-1), defined.sum(axis=-1).astype(np.float64))
