"""Training and test stays: by patient and stratified, or in time."""

from typing import Literal

import numpy as np

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError


def split(
    cohort: Cohort,
    test: float | None = None,
    *,
    seed: int = 0,
    stratify: str | None = None,
    group: str | None = None,
    by: Literal["random", "time"] | None = None,
) -> tuple[Cohort, Cohort]:
    """Two disjoint cohorts; the second holds about the fraction `test` of the stays."""
    schema, defaults = cohort.schema, cohort.schema.split
    test = defaults.test if test is None else test
    if not 0 < test < 1:
        raise TimeDiffError(f"test is {test}; expected a fraction between 0 and 1, such as 0.25.")
    if (by or defaults.by) == "time":
        parts = _in_time(cohort, test)
    else:
        group = group or defaults.group or (schema.patient.name if schema.patient else None)
        stratify = stratify or defaults.stratify or (schema.label.name if schema.label else None)
        held_out = _held_out(_static(cohort, group, "group"), _static(cohort, stratify, "stratify"), test, seed)
        parts = cohort.take(~held_out), cohort.take(held_out)
    for part, name in zip(parts, ("training", "test"), strict=True):
        if len(part) == 0:
            raise TimeDiffError(f"no stay would be left for {name}: {len(cohort)} stays are too few for test = {test}.")
    return parts


def _static(cohort: Cohort, name: str | None, purpose: str) -> Array:
    """The column that splits by patient or stratum: a stay's own number, or nothing, where none is named."""
    if name is None:
        return np.arange(len(cohort)) if purpose == "group" else np.zeros(len(cohort))
    known = [feature.name for feature in cohort.schema.static]
    if name not in known:
        raise TimeDiffError(
            f"{purpose} names {name!r}; expected a static feature: {', '.join(known) or 'there is none'}."
        )
    if purpose == "stratify" and not cohort.schema[name].stratifies:
        raise TimeDiffError(f"stratify names {name!r}; expected a binary or categorical feature, such as the label.")
    return cohort.static[name]


def _held_out(group: Array, stratum: Array, test: float, seed: int) -> Array:
    """Whole groups, chosen at random in each stratum until it has its part; a group's stratum is its stays' maximum."""
    _, member, size = np.unique(group, return_inverse=True, return_counts=True)
    highest = np.full(len(size), -1.0)
    np.maximum.at(highest, member, np.nan_to_num(stratum.astype(np.float64), nan=-1.0))
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(size), dtype=bool)
    for value in np.unique(highest):
        order = rng.permutation(np.flatnonzero(highest == value))
        stays = np.cumsum(size[order])
        # The cut nearest to the wanted fraction, so that strata of one stay a patient are exact to one stay.
        cut = int(np.argmin(np.abs(np.concatenate([[0], stays]) - test * stays[-1])))
        chosen[order[:cut]] = True
    return np.asarray(chosen[member])


def _in_time(cohort: Cohort, test: float) -> tuple[Cohort, Cohort]:
    """The last windows are the test; those that cross the cut belong to neither."""
    if cohort.schema.order is None:
        raise TimeDiffError("a split in time needs a static feature with role = 'order' in schema.toml.")
    start = cohort.static[cohort.schema.order.name]
    cut = np.sort(start)[min(round((1 - test) * len(start)), len(start) - 1)]
    return cohort.take(start + cohort.lengths <= cut), cohort.take(start >= cut)
