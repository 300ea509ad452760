"""Faults of the outcome that can be planted in a cohort: what makes synthetic stays useless to learn it from."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from timediff import Cohort

Fault = Callable[[Cohort, np.random.Generator], Cohort]


def outcomes_shuffled(cohort: Cohort, rng: np.random.Generator, *, fraction: float) -> Cohort:
    """So many stays have one another's outcome: the rate stays, and what it follows from is lost."""
    label = cohort.schema.label
    if label is None:
        return cohort
    outcomes = np.array(cohort.static[label.name])
    chosen = np.flatnonzero(rng.random(len(outcomes)) < fraction)
    outcomes[chosen] = outcomes[rng.permutation(chosen)]
    return replace(cohort, static={**cohort.static, label.name: outcomes})


OUTCOME_FAULTS: Mapping[str, Fault] = {
    "outcomes of a quarter of the stays shuffled": partial(outcomes_shuffled, fraction=0.25),
    "outcomes of half of the stays shuffled": partial(outcomes_shuffled, fraction=0.5),
    "all outcomes shuffled": partial(outcomes_shuffled, fraction=1),
}
