"""An attack: of how many numbers of a stay one synthetic stay has the same, at the same steps."""

import numpy as np

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.evaluation.attacks.case import AttackCase
from timediff.evaluation.attacks.registry import attack


@attack(
    "example-equal-numbers",
    "cohort",
    title="equal numbers",
    sentence="Calls a stay a training stay if a synthetic stay has many of its numbers, to the last digit.",
)
def equal_numbers(case: AttackCase) -> Floats:
    def numbers(cohort: Cohort) -> Floats:
        """(stays, steps, features)"""
        return np.stack([cohort.series[f.name] for f in cohort.schema.temporal if not f.discrete], axis=-1)

    made = numbers(case.attacked)
    return np.array([(made == stay).sum(axis=(1, 2)).max() for stay in numbers(case.candidates)], dtype=np.float64)
