"""Sums over resampled stays, at the price of a matrix product a number.

A number that is a function of sums over stays needs its sums once a stay; then every resample is a row of weights.
"""

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature
from timediff.data.units import resampling_units
from timediff.evaluation.statistics.bootstrap import resamples

BLOCK = 2_000  # stays whose tables are held at a time


class Observations:
    """One feature, (N, L) or, static, (N, 1): its values, which steps are within the stay, and which observed."""

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
    """A cohort, and how often each of its stays counts: in column 0 once each, in the others as it was drawn."""

    def __init__(self, cohort: Cohort, bootstrap: int, rng: np.random.Generator) -> None:
        self.cohort = cohort
        counts = resamples(resampling_units(cohort), bootstrap, rng)
        self.counts = counts.T.astype(np.float64, order="C")  # (N, 1 + bootstrap)

    def sums(self, per_stay: Array) -> Floats:
        """Sums over the stays of each resample: (N, K) to (1 + bootstrap, K)."""
        out: Floats = self.counts.T @ np.asarray(per_stay, np.float64)
        return out

    def tally(self, stay: Array, column: Array, width: int) -> Floats:
        """How many things lie in each column, thing i being in `column[i]` and of `stay[i]`: (1 + bootstrap, width)."""
        out = np.zeros((self.counts.shape[1], width))
        starts = np.arange(0, len(self.counts), BLOCK)
        ends = np.minimum(starts + BLOCK, len(self.counts))
        firsts, lasts = np.searchsorted(stay, starts), np.searchsorted(stay, ends)  # stays are in order
        for start, end, first, last in zip(starts, ends, firsts, lasts, strict=True):
            place = (stay[first:last] - start) * width + column[first:last]
            per_stay = np.bincount(place, minlength=(end - start) * width).reshape(end - start, width)
            out += self.counts[start:end].T @ per_stay.astype(np.float64)
        return out


def fractions(counts: Floats) -> Floats:
    """Each row divided by its sum; NaN where there is nothing."""
    return ratio(counts, counts.sum(axis=1, keepdims=True))


def ratio(above: Floats, below: Floats) -> Floats:
    """above / below, NaN where below is not positive."""
    out: Floats = above / np.where(below > 0, below, np.nan)
    return out


def mean_gap(real: Floats, synthetic: Floats) -> Floats:
    """Mean absolute difference along the last axis. What is undefined in one cohort only counts as 0 there (a
    generator gains nothing by making a feature constant); what is undefined in both is left out."""
    gap = np.abs(np.nan_to_num(real) - np.nan_to_num(synthetic))
    defined = ~(np.isnan(real) & np.isnan(synthetic))
    return ratio(gap.sum(axis=-1), defined.sum(axis=-1).astype(np.float64))
