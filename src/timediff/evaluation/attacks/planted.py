"""Planted leaks: what an attack finds where it is known what there is to find."""

from dataclasses import replace

import numpy as np

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort, concatenate

DOSES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1)  # fractions of the training stays that are copied
NOISE = 0.1  # of a feature's standard deviation, added to each copied value
MEMORISED = 50  # stays that a planted model is trained on, to the end


def with_copies(clean: Cohort, train: Cohort, dose: float, rng: np.random.Generator) -> Cohort:
    """A cohort that knows nothing of the training stays, and disturbed copies of a few of them at random places."""
    count = max(1, round(dose * len(train)))
    copies = disturbed(train.take(np.sort(rng.permutation(len(train))[:count])), rng)
    kept = clean.take(np.sort(rng.permutation(len(clean))[: max(1, len(clean) - count)]))
    joined = concatenate([kept, replace(copies, schema=kept.schema, static=_static(copies, kept))])
    return replace(joined, stay_id=np.arange(len(joined)))


def disturbed(cohort: Cohort, rng: np.random.Generator) -> Cohort:
    """Every measured number with noise; what is missing, and classes, as they are."""
    series = dict(cohort.series)
    for feature in cohort.schema.temporal:
        if not feature.discrete:
            values: Floats = np.asarray(series[feature.name], np.float64)
            scale = NOISE * float(np.nanstd(values)) if (~np.isnan(values)).any() else 0.0
            series[feature.name] = values + scale * rng.standard_normal(values.shape)
    return replace(cohort, series=series)


def _static(copies: Cohort, like: Cohort) -> dict[str, Floats]:
    return {name: copies.static[name] for name in like.static}
