"""What two cohorts share: patients, steps of one long series, stays. And, from that, how they were split."""

import hashlib

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort

TELLING = 8  # different observed values; a stay with fewer may equal another one by chance
BLOCK = 2_000  # stays whose values are held in one table


def shared_patients(a: Cohort, b: Cohort) -> int:
    """How many patients have stays in both; 0 where one of them names no patients."""
    if a.schema.patient is None or b.schema.patient is None:
        return 0
    return len(set(a.static[a.schema.patient.name].tolist()) & set(b.static[b.schema.patient.name].tolist()))


def spans(cohort: Cohort) -> tuple[Floats, Floats]:
    """Where each window of one long series begins, and the step after its last."""
    assert cohort.schema.order is not None
    start: Floats = np.asarray(cohort.static[cohort.schema.order.name], np.float64)
    return start, start + cohort.lengths


def overlapping_windows(a: Cohort, b: Cohort) -> int:
    """How many windows of `b` have a step in common with a window of `a`.

    0 where they are no windows, or of several patients: then it is the patients that must not be shared.
    """
    if a.schema.order is None or b.schema.order is None or a.schema.patient is not None:
        return 0
    (start, end), (first, last) = spans(a), spans(b)
    order = np.argsort(start, kind="stable")
    reach = np.maximum.accumulate(end[order])  # the furthest step of all windows that begin no later
    before = np.searchsorted(start[order], last)  # windows of `a` that begin before a window of `b` ends
    return int(((before > 0) & (reach[np.maximum(before - 1, 0)] > first)).sum())


def identical_stays(a: Cohort, b: Cohort) -> int:
    """How many stays of `b` equal a stay of `a` in every feature that is generated, missing values included.

    A stay with fewer than TELLING different values counts only if all stays of the two cohorts are the same.
    """
    ours, theirs = _fingerprints(a), _fingerprints(b)
    if sorted(ours) == sorted(theirs):
        return len(b)
    known = set(ours)
    alike = np.flatnonzero([one in known for one in theirs])
    return int(telling(b)[alike].sum())


def telling(cohort: Cohort) -> npt.NDArray[np.bool_]:
    """Which stays have so many different values that none equals another one by chance, (N,)."""
    found = np.zeros(len(cohort), dtype=bool)
    for start in range(0, len(cohort), BLOCK):
        part = np.arange(start, min(start + BLOCK, len(cohort)))
        rows = np.sort(_rows(cohort, part), axis=1)  # NaN last
        new = (rows[:, 1:] != rows[:, :-1]) & ~np.isnan(rows[:, 1:])
        found[part] = (~np.isnan(rows[:, 0])).astype(np.int64) + new.sum(axis=1) >= TELLING
    return found


def how_split(train: Cohort, test: Cohort) -> str:
    """Which kind of split these two cohorts come from, as far as they show it."""
    if train.schema.patient is not None and test.schema.patient is not None:
        return "not by patient: some are in both" if shared_patients(train, test) else "by patient"
    if train.schema.order is None or test.schema.order is None:
        return "random, by stay (no patient is known)"
    if overlapping_windows(train, test):
        return "random windows that overlap"
    (start, end), (first, last) = spans(train), spans(test)
    return "in time" if end.max() <= first.min() or last.max() <= start.min() else "in blocks of the series"


def _fingerprints(cohort: Cohort) -> list[bytes]:
    parts = (np.arange(i, min(i + BLOCK, len(cohort))) for i in range(0, len(cohort), BLOCK))
    return [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for part in parts for row in _rows(cohort, part)]


def _rows(cohort: Cohort, stays: npt.NDArray[np.int64]) -> Floats:
    """The values of some stays, a row each, in the order of the features' names; equal values have equal bytes."""
    names = sorted(feature.name for feature in cohort.schema.features if feature.generated)
    inside = cohort.step_mask[stays]
    columns: list[Array] = []
    for name in names:
        values = np.asarray(cohort.values(name)[stays], np.float64)
        columns.append(np.where(inside, values, np.nan) if values.ndim == 2 else values[:, None])
    rows = np.concatenate(columns, axis=1)
    return np.where(np.isnan(rows), np.nan, rows) + 0.0  # one NaN, and −0 is 0
