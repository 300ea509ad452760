"""Training, held-out and synthetic stays as sets of equal size, for metrics that compare nearest neighbours."""

from collections.abc import Mapping, Sized
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats, Units
from timediff.data.cohort import Cohort
from timediff.data.units import numbered, resampling_units
from timediff.evaluation.inputs.view import View

FEWEST = 20  # stays in each set
RESAMPLES = 1000
SUBSET, BOOTSTRAP = 31, 33  # parts of the evaluation stream

Distances = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class StayRows:
    """Stays as rows (`View.rows`), and the unit of each, with which it is resampled."""

    rows: Array
    units: Units

    @staticmethod
    def of(cohort: Cohort, view: View) -> "StayRows":
        return StayRows(view.rows(cohort), resampling_units(cohort))

    @staticmethod
    def each(rows: "Array | StayRows") -> "StayRows":
        """Rows of which each is a unit of its own, unless it is said otherwise."""
        return rows if isinstance(rows, StayRows) else StayRows(rows, np.arange(len(rows)))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def single(self) -> bool:
        """Whether each is a unit of its own."""
        return bool(self.units.max(initial=-1) + 1 == len(self.units))

    def take(self, index: Array) -> "StayRows":
        return StayRows(self.rows[index], numbered(self.units[index]))


Sets = Mapping[str, StayRows]
Parts = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]  # positions
NO_FLOOR = f"no floor: it needs training stays enough for two parts of {FEWEST} that share no patient and no step."


def subset(stays: StayRows, size: int, rng: np.random.Generator) -> StayRows:
    return stays if len(stays) == size else stays.take(rng.choice(len(stays), size, replace=False))


def members(train: StayRows, part: Array) -> StayRows:
    """The training stays to compare with. Where stays come in units it is only the part of them in which units are
    whole, as they are in the test cohort: a random subset of all would thin them out, and lie further apart."""
    return train if train.single else train.take(part)


def rounded(distances: Floats) -> Distances:
    """To float32: distances that differ in how they were summed up alone are ties."""
    return distances.astype(np.float32)


def too_few(train: Sized, test: Sized, synthetic: Sized) -> str:
    for name, stays in (("training", train), ("held-out", test), ("synthetic", synthetic)):
        if len(stays) < FEWEST:
            return f"needs at least {FEWEST} {name} stays, and there are {len(stays)}."
    return ""
