"""Resampling units: which stays of a cohort are drawn together, because they tell of one another."""

import numpy as np

from timediff.data.arrays import Array, Units
from timediff.data.cohort import Cohort
from timediff.data.overlap import spans

STRETCH = 2  # windows' lengths that a stretch of one long series spans; shorter ones would share most of their steps


def resampling_units(cohort: Cohort) -> Units:
    """The unit of each stay, (N,): its patient; of windows of one long series, the stretch in which it begins; or
    else the stay itself."""
    if cohort.schema.patient is not None:
        return numbered(cohort.static[cohort.schema.patient.name])
    if cohort.schema.order is not None and len(cohort):
        start, _ = spans(cohort)
        return numbered((start - start.min()) // (STRETCH * cohort.schema.steps))
    return np.arange(len(cohort))


def blocks(cohort: Cohort) -> Units:
    """The part of the cohort that each stay belongs to, (N,), such that no two parts share a step of a series.

    Of windows: runs of windows that overlap. Where all of them are one run, and of other stays, as for resampling.
    """
    if cohort.schema.order is not None and len(cohort):
        start, end = spans(cohort)
        order = np.argsort(start, kind="stable")
        run = np.empty(len(cohort), np.int64)
        run[order] = np.concatenate([[0], np.cumsum(start[order][1:] >= np.maximum.accumulate(end[order])[:-1])])
        if run.any():
            return numbered(run)
    return resampling_units(cohort)


def numbered(names: Array) -> Units:
    """Units by number, in the order in which they first appear: stays with units of their own are 0, 1, 2, …"""
    _, first, unit = np.unique(names, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return number[unit]


def side_by_side(*several: Units) -> Units:
    """The units of cohorts one after the other; none is shared."""
    counts = [int(units.max(initial=-1)) + 1 for units in several]
    firsts = np.cumsum([0, *counts[:-1]])
    return np.concatenate([units + first for units, first in zip(several, firsts, strict=True)])
