"""What a classifier of whole stays gets: eight statistics a series, or every step of every channel, one row a stay."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.evaluation.inputs.view import NULL, Protocol, Single, View
from timediff.evaluation.metrics.marginals import levels

Kind = Literal["flattened", "summary"]
STATISTICS = ("first", "minimum", "maximum", "range", "mean", "standard deviation", "mode", "skewness")


def summaries(cohort: Cohort, least: int = 1) -> tuple[Single, list[str]]:
    """The paper's eight statistics of each series, then the static values, (N, D), and what each column is.

    Those of a series with fewer than `least` values are all NaN.
    """
    temporal = cohort.schema.temporal
    blocks = []
    for feature in temporal:
        values = np.asarray(cohort.series[feature.name], np.float64)
        few = (~np.isnan(values)).sum(axis=1) < least
        blocks.append(np.where(few[:, None], np.nan, statistics(values)))
    names = [f"{feature.name}, {statistic}" for feature in temporal for statistic in STATISTICS]
    static, static_names = static_columns(cohort, cohort.schema)
    return np.concatenate([*blocks, static], axis=1).astype(np.float32), names + static_names


def statistics(values: Floats) -> Floats:
    """STATISTICS over what each row observed, (N, L) to (N, 8).

    Of no value all are NaN. Of one value, or of equal ones, range and standard deviation are 0 and skewness is NaN.
    """
    there = ~np.isnan(values)
    count = there.sum(axis=1)
    some = count > 0
    first = values[np.arange(len(values)), there.argmax(axis=1)]
    low = np.where(some, np.where(there, values, np.inf).min(axis=1), np.nan)
    high = np.where(some, np.where(there, values, -np.inf).max(axis=1), np.nan)
    known = np.maximum(count, 1)
    mean = np.where(some, np.where(there, values, 0.0).sum(axis=1) / known, np.nan)
    mean = np.where(low == high, low, mean)  # rounding must not make a sd of equal values
    away = np.where(there, values - mean[:, None], 0.0)
    square = away * away
    second, third = square.sum(axis=1) / known, (square * away).sum(axis=1) / known
    sd = np.where(some, np.sqrt(second), np.nan)
    # So small a sd is the rounding of the mean: its third moment says nothing.
    uneven = sd > 1e-12 * np.maximum(np.abs(low), np.abs(high))
    skewness = np.divide(third, second**1.5, out=np.full(len(values), np.nan), where=uneven & (second**1.5 > 0))
    return np.stack([first, low, high, high - low, mean, sd, mode(values), skewness], axis=1)


def mode(values: Floats) -> Floats:
    """The most frequent value of each row, of several the smallest; NaN where nothing was observed."""
    ordered = np.sort(values, axis=1)  # NaN last, each a run of its own: it equals nothing
    place = np.arange(values.shape[1])
    begins = np.ones(values.shape, dtype=bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    run = place - np.maximum.accumulate(np.where(begins, place, 0), axis=1)
    most: Floats = np.take_along_axis(ordered, run.argmax(axis=1)[:, None], axis=1)[:, 0]
    return most


def static_columns(cohort: Cohort, schema: Schema) -> tuple[Floats, list[str]]:
    """Static values but the outcomes, (N, D); a class of a categorical feature is a column; NaN = missing."""
    columns, names = [np.empty((len(cohort), 0))], []
    for feature in schema.static:
        if feature.role is not None:
            continue
        values = np.asarray(cohort.static[feature.name], np.float64)
        for level in levels(feature):
            column: Array = values if level is None else np.where(np.isnan(values), np.nan, values == level)
            columns.append(column[:, None])
            names.append(feature.name if level is None else f"{feature.name} = {feature.classes[level]}")
    return np.concatenate(columns, axis=1), names


@dataclass(frozen=True)
class Inputs:
    """Rows for a classifier, the label left out, filled and standardised by what the training stays are like.

    - flattened: every channel of the view at every step, and the static values
    - summary: the eight statistics of each series, and the static values

    In the paper's protocol what is missing is −1, and nothing is scaled: a classifier does that by its training set.
    """

    kind: Kind
    view: View
    mean: Floats  # of the columns that the view does not scale itself
    scale: Floats

    @staticmethod
    def fit(
        train: Cohort, kind: Kind = "flattened", protocol: Protocol = "strict", *, view: View | None = None
    ) -> "Inputs":
        """`view`, where one is fitted already, decides on the protocol."""
        view = (view or View.fit(train, protocol)).unlabelled
        loose = _loose(kind, view, train)
        if view.protocol == "paper":
            return Inputs(kind, view.unscaled, np.zeros(loose.shape[1]), np.ones(loose.shape[1]))
        return Inputs(kind, view, *_moments(loose))

    def of(self, cohort: Cohort) -> Single:
        """(N, D), float32, without NaN."""
        raw = _loose(self.kind, self.view, cohort)
        missing = NULL if self.view.protocol == "paper" else 0.0  # in the strict protocol that is the mean
        loose = np.nan_to_num((raw - self.mean) / self.scale, nan=missing).astype(np.float32)
        return loose if self.kind == "summary" else np.concatenate([self.view.flat(cohort), loose], axis=1)


def _loose(kind: Kind, view: View, cohort: Cohort) -> Array:
    """The columns that the view does not have."""
    if kind == "summary":  # the authors take no statistics of a single value
        return summaries(cohort, least=2 if view.protocol == "paper" else 1)[0].astype(np.float64)
    if view.protocol == "paper":  # static values are channels of it
        return np.empty((len(cohort), 0))
    return static_columns(cohort, view.schema)[0]


def _moments(columns: Array) -> tuple[Floats, Floats]:
    """Mean and standard deviation over what is there; 0 and 1 for a column without values, 1 for a constant one."""
    there = ~np.isnan(columns)
    count = np.maximum(there.sum(axis=0), 1)
    mean = np.where(there, columns, 0.0).sum(axis=0) / count
    scale = np.sqrt((np.where(there, columns - mean, 0.0) ** 2).sum(axis=0) / count)
    return mean, np.where(scale > 1e-6 * np.maximum(1.0, np.abs(mean)), scale, 1.0)
