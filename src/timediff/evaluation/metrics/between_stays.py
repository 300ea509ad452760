"""Between stays: how they differ from one another, by the mean, the SD and the slope of each feature within a stay.

A generator that pulls every patient towards the average passes what looks at all values together.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.data.describe import distribution
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature, Schema
from timediff.evaluation.figure_data import FigureData, distributions
from timediff.evaluation.metrics import differences
from timediff.evaluation.metrics.differences import Sample, apart
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.resampling import Observations, Resampled, ratio

distance, difference = partial(differences.distance, "clinical"), partial(differences.difference, "clinical")
KINDS = {"stay_mean": ("mean", 2), "stay_sd": ("SD", 3), "stay_slope": ("slope", 3)}  # in words, and the fewest values
NUMBERS = (*KINDS, "between_sd")


def stay_statistics(known: Observations) -> dict[str, Floats]:
    """Mean, SD and slope by step of the values of each stay, (N,); NaN where a stay has too few."""
    there = known.observed
    count = there.sum(axis=1).astype(np.float64)

    def mean(values: Floats) -> Floats:
        return ratio(np.where(there, values, 0.0).sum(axis=1), count)

    # From each stay's lowest value, so that equal values have the SD 0 and not the rounding of their mean.
    low = np.where(there, known.values, np.inf).min(axis=1)
    above = known.values - low[:, None]
    steps = np.broadcast_to(np.arange(there.shape[1], dtype=np.float64), there.shape)
    value, time = above - mean(above)[:, None], steps - mean(steps)[:, None]
    found = {
        "stay_mean": low + mean(above),
        "stay_sd": np.sqrt(mean(value**2) * ratio(count, count - 1)),
        "stay_slope": ratio(mean(value * time), mean(time**2)),
    }
    # To float32 and back: the same values in another order have the same statistics.
    return {
        what: np.where(count >= fewest, found[what], np.nan).astype(np.float32).astype(np.float64)
        for what, (_, fewest) in KINDS.items()
    }


def scores(feature: Feature, real: Resampled, r: Observations, synthetic: Resampled, s: Observations) -> list[Score]:
    ours, theirs = stay_statistics(r), stay_statistics(s)
    found = []
    for what in NUMBERS:
        _, fewest = KINDS["stay_mean" if what == "between_sd" else what]
        x, y = (_sample(one["stay_mean" if what == "between_sd" else what]) for one in (ours, theirs))
        n = min(len(x.stay), len(y.stay))
        if n < MIN_AGGREGATE:
            why = f"fewer than {MIN_AGGREGATE} stays of a cohort have {fewest} values of it"
            found.append(unavailable("clinical", what, why, feature=feature.name))
        elif what != "between_sd":
            found.append(distance(what, apart(real, x, synthetic, y)[0], n, feature=feature.name))
        elif np.ptp(x.values) == 0:
            why = "its mean is the same in all real stays, so there is no SD to compare with"
            found.append(unavailable("clinical", what, why, feature=feature.name))
        else:
            unit = float(x.values.mean()), float(x.values.std())
            sds = [_sd(one, sample, *unit) for one, sample in ((real, x), (synthetic, y))]
            found.append(difference(what, ratio(sds[1], sds[0]) - 1, n, feature=feature.name))
    return found


def _sample(values: Floats) -> Sample:
    stays = np.flatnonzero(~np.isnan(values))
    return Sample(values[stays], stays)


def _sd(resampled: Resampled, sample: Sample, shift: float, scale: float) -> Floats:
    """The SD of a number of each stay, in units of `scale`: squares of small numbers lose no digits."""
    per_stay = np.zeros((len(resampled.cohort), 3))
    z = (sample.values - shift) / scale
    per_stay[sample.stay] = np.stack([np.ones(len(z)), z, z * z], axis=1)
    count, total, squares = resampled.sums(per_stay).T
    return np.sqrt(np.maximum(ratio(squares, count) - ratio(total, count) ** 2, 0.0))


def figures(feature: Feature, real: Cohort, r: Observations, s: Observations) -> Iterator[FigureData]:
    """Histograms of the mean, the SD and the slope of each stay."""
    ours, theirs = (_as_cohort(feature, real.schema.step, stay_statistics(known)) for known in (r, s))
    for kind in ours.schema.static:
        content = distributions(distribution(ours, kind, MIN_AGGREGATE), theirs)
        yield FigureData("stay-statistics", "stay statistics", f"{feature.name}: {kind.name}", content, feature.name)


def _as_cohort(feature: Feature, step: str, found: dict[str, Floats]) -> Cohort:
    """The statistics as static features, so that what holds for distributions of static features holds for them."""
    each = "h" if step == "1h" else step
    units = {"stay_slope": f"{feature.unit or 'change'} per {each}"}
    static = {
        Feature(f"{word} of a stay", "continuous", "static", unit=units.get(what, feature.unit)): found[what]
        for what, (word, _) in KINDS.items()
    }
    stays = len(found["stay_mean"])
    schema = Schema((Feature("value", "continuous"), *static), 1, step)
    series = {"value": np.full((stays, 1), np.nan)}
    return Cohort(schema, np.arange(stays), series, {f.name: values for f, values in static.items()})
