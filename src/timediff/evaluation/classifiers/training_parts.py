"""Parts of the real training stays: how much an AUROC changes when other real stays are trained on.

Other real stays, as many of them, would be the floor of what synthetic ones lose. There are none: all are trained on.
So classifiers are trained on a few disjoint parts as well, and of two sets of n stays the difference is taken to have
m / n times the variance that it has of two parts of m. AUROCs rise more slowly the more stays there are, so this is
rather too much than too little.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.units import resampling_units
from timediff.runtime.seeding import stream

PARTS = 4
LARGEST = 500  # stays of a part; with more it would take long, and say little more
KEY = 701  # of the stream of random numbers that chooses the parts
NORMAL = 1.96  # standard deviations to either side of the middle 95 %


@dataclass(frozen=True)
class TrainingParts:
    """Positions of disjoint parts of so many real stays; no patient is in two of them."""

    positions: Sequence[Array]
    whole: int

    @staticmethod
    def of(cohort: Cohort, seed: int) -> "TrainingParts":
        """None where a part would lack a class."""
        units = resampling_units(cohort)
        order = stream("evaluation", seed, KEY).permutation(int(units.max(initial=-1)) + 1)
        part = order[units] % PARTS
        positions = [np.flatnonzero(part == number)[:LARGEST] for number in range(PARTS)]
        classes = len(np.unique(cohort.label))
        whole = all(len(np.unique(cohort.label[one])) == classes for one in positions)
        return TrainingParts(positions if whole else (), len(cohort))

    def reach(self, areas: Floats) -> float:
        """How far apart two sets of real stays are in AUROC, in 95 of 100 cases; NaN where there are no parts."""
        if len(areas) < 2:
            return math.nan
        size = float(np.mean([len(one) for one in self.positions]))
        return NORMAL * math.sqrt(2 * float(np.var(areas, ddof=1)) * size / self.whole)
