"""Training and test stays: by patient and stratified, in time, or in blocks of one long series."""

from dataclasses import replace

import numpy as np

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.data.overlap import spans
from timediff.data.schema import SplitBy
from timediff.errors import TimeDiffError

BLOCK_WINDOWS = 8  # a block is at least so many windows long, since each of its ends may cost nearly one
MOST_BLOCKS = 50


def split(
    cohort: Cohort,
    test: float | None = None,
    *,
    seed: int = 0,
    stratify: str | None = None,
    group: str | None = None,
    by: SplitBy | None = None,
) -> tuple[Cohort, Cohort]:
    """Two disjoint cohorts; the second holds about the fraction `test` of the stays."""
    schema, defaults = cohort.schema, cohort.schema.split
    test = defaults.test if test is None else test
    if not 0 < test < 1:
        raise TimeDiffError(f"test is {test}; expected a fraction between 0 and 1, such as 0.25.")
    by = by or defaults.by
    if by == "time":
        parts = _in_time(cohort, test)
    elif by == "blocks":
        parts = _in_blocks(cohort, test, seed)
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


def apart(cohort: Cohort, second: float, *, seed: int) -> tuple[Array, Array]:
    """Positions of two parts, the second about that fraction, that share neither a patient nor a step of a series."""
    numbered = replace(cohort, stay_id=np.arange(len(cohort)))
    by: SplitBy = "blocks" if cohort.schema.order is not None and cohort.schema.patient is None else "random"
    parts = split(numbered, second, seed=seed, by=by)
    return parts[0].stay_id, parts[1].stay_id


def _in_time(cohort: Cohort, test: float) -> tuple[Cohort, Cohort]:
    """The last windows are the test; those that cross the cut belong to neither."""
    _require_order(cohort, "in time")
    start, end = spans(cohort)
    cut = np.sort(start)[min(round((1 - test) * len(start)), len(start) - 1)]
    return cohort.take(end <= cut), cohort.take(start >= cut)


def _in_blocks(cohort: Cohort, test: float, seed: int) -> tuple[Cohort, Cohort]:
    """The series in blocks of equal length, of which random ones are the test, so that both cover the same times.

    A window belongs to one side if all blocks that it touches do; what touches both is in neither. Blocks are added
    until the fraction of windows is nearest to the wanted one.
    """
    _require_order(cohort, "in blocks")
    if cohort.schema.patient is not None:
        raise TimeDiffError(
            "a split in blocks is for windows of one long series, and this cohort has patients, who would be on both "
            "sides: split with --by random, which keeps the stays of a patient together."
        )
    start, end = spans(cohort)
    longest, fewest = (end - start).max(), round(1 / min(test, 1 - test))
    blocks = max(min(MOST_BLOCKS, int((end.max() - start.min()) / (BLOCK_WINDOWS * longest))), fewest, 2)
    edges = np.round(np.linspace(start.min(), end.max(), blocks + 1))
    first = np.searchsorted(edges[1:-1], start, side="right")
    last = np.searchsorted(edges[1:-1], end, side="left")  # a window that ends at an edge does not touch what follows
    order = np.random.default_rng(seed).permutation(blocks)

    def sides(count: int) -> tuple[Array, Array]:
        chosen = np.zeros(blocks + 1, np.int64)
        chosen[1 + order[:count]] = 1
        touched = chosen.cumsum()[last + 1] - chosen.cumsum()[first]  # blocks of the test
        return touched == 0, touched == last - first + 1

    def fraction(count: int) -> float:
        training, held_out = (side.sum() for side in sides(count))
        return float(held_out / (training + held_out)) if training and held_out else np.inf

    training, held_out = sides(min(range(1, blocks), key=lambda count: abs(fraction(count) - test)))
    return cohort.take(training), cohort.take(held_out)


def _require_order(cohort: Cohort, how: str) -> None:
    if cohort.schema.order is None:
        raise TimeDiffError(f"a split {how} needs a static feature with role = 'order' in schema.toml.")
