"""Faults that can be planted in a cohort of records, such as PhysioNet 2012: what a generator may get wrong."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from timediff import Cohort
from timediff.data.arrays import Floats

Fault = Callable[[Cohort, np.random.Generator], Cohort]


def with_series(cohort: Cohort, **series: Floats) -> Cohort:
    return replace(cohort, series={**cohort.series, **series})


def off_the_lattice(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """Heart rates with decimals."""
    return with_series(cohort, HR=cohort.series["HR"] + rng.uniform(-0.4, 0.4, cohort.series["HR"].shape))


def repeats_removed(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """No heart rate equals the last one measured: it is one more or one less."""
    rates = cohort.series["HR"].copy()
    last = np.full(len(rates), np.nan)
    for column in rates.T:
        same = column == last
        column[same] += rng.choice([-1.0, 1.0], int(same.sum()))
        last = np.where(np.isnan(column), last, column)
    return with_series(cohort, HR=rates)


def relation_broken(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """In a tenth of the rows mean pressure is measured apart from the others."""
    pressure = cohort.series["MAP"]
    apart = np.round(pressure + rng.normal(0, 3, pressure.shape))
    return with_series(cohort, MAP=np.where(rng.random(pressure.shape) < 0.1, apart, pressure))


def between_stays_shrunk(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """Stays' levels vary less, by a tenth of their variance.

    Each is moved by a whole number, all pressures by the same one, so that no lattice or relation tells of it.
    """
    series: dict[str, Floats] = {}
    for level, moved in (("HR", ("HR",)), ("MAP", ("SBP", "DBP", "MAP"))):
        values = cohort.series[level]
        measured = ~np.isnan(values)
        mean = np.where(measured, values, 0).sum(axis=1) / np.maximum(measured.sum(axis=1), 1)
        away = np.where(measured.any(axis=1), mean - mean[measured.any(axis=1)].mean(), 0)
        shift = np.round((1 - np.sqrt(0.9)) * away + rng.uniform(-0.5, 0.5, len(away)))
        series |= {name: cohort.series[name] - shift[:, None] for name in moved}
    return with_series(cohort, **series)


def subgroup_dropped(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """Nobody of 85 years or more, an eighth of all."""
    return cohort.take(~(cohort.static["Age"] >= 85))


FAULTS: Mapping[str, Fault] = {
    "values off their lattice": off_the_lattice,
    "repeats removed": repeats_removed,
    "a relation broken in a tenth of the rows": relation_broken,
    "between-stay variance shrunk by a tenth": between_stays_shrunk,
    "a subgroup dropped": subgroup_dropped,
}
