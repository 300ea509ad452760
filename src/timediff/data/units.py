"""Resampling units: which stays of a cohort are drawn together, because they tell of one another."""

import numpy as np

from timediff.data.arrays import Array, Units
from timediff.data.cohort import Cohort
from timediff.data.overlap import spans

PERIODS, FEWEST_PERIODS = 10, 3  # of one long series
FEWEST_INSIDE = 10  # windows of each cohort in a period
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


def periods(one: Cohort, other: Cohort) -> tuple[Units, Units] | None:
    """The period of one long series that each window of two cohorts lies in, numbered alike; −1 of one between two.

    Both cohorts have windows in every period. None where there are too few such periods, and of other stays.
    """
    if one.schema.order is None or other.schema.order is None or min(len(one), len(other)) == 0:
        return None
    both = spans(one), spans(other)
    starts = np.concatenate([start for start, _ in both])
    edges = [starts.min()]
    for edge in np.quantile(starts, np.arange(1, PERIODS) / PERIODS):
        if all(((start >= edges[-1]) & (end <= edge)).sum() >= FEWEST_INSIDE for start, end in both):
            edges.append(edge)
    while len(edges) > 1 and any((start >= edges[-1]).sum() < FEWEST_INSIDE for start, _ in both):
        edges.pop()
    if len(edges) < FEWEST_PERIODS:
        return None
    ends = np.array([*edges[1:], np.inf])
    first, second = (
        np.where(end <= ends[found := np.searchsorted(edges, start, side="right") - 1], found, -1)
        for start, end in both
    )
    return first, second


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
