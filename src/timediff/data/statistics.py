"""Statistics of features: what a codec remembers of the training data, how it is found, and what it cannot be."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.data.quantiles import Quantiles
from timediff.data.recording import Recording, derivations
from timediff.data.relations import exact_relations
from timediff.data.schema import Feature, Schema
from timediff.runtime.seeding import stream
from timediff.settings.training import CodecSettings

FINEST = 2**21  # steps of the resolution that [−1, 1] in single precision can tell apart, with a margin
LARGEST, SMALLEST = 1e150, 1e-150  # of values and of their range: squares of others leave double precision


@dataclass(frozen=True)
class Statistics:
    """What is remembered of one feature. `fill` replaces a null: the mean, or the most frequent class."""

    low: float
    high: float
    fill: float
    missing: bool
    constant: bool  # one value only: nothing to learn, given back as it is; NaN when every value was null
    quantiles: Quantiles | None = None
    recording: Recording | None = None


@dataclass(frozen=True)
class StoredStatistics:
    """Statistics as JSON has them: the numbers of a feature that was never observed are null."""

    low: float | None
    high: float | None
    fill: float | None
    missing: bool
    constant: bool
    quantiles: Quantiles | None = None
    recording: Recording | None = None

    def restored(self) -> Statistics:
        low, high, fill = (math.nan if value is None else value for value in (self.low, self.high, self.fill))
        return Statistics(low, high, fill, self.missing, self.constant, self.quantiles, self.recording)


def impossible(feature: Feature, known: StoredStatistics) -> list[str]:
    """What is wrong with stored statistics of a feature."""
    numbers = known.low, known.high, known.fill
    if known.low is None or known.high is None or known.fill is None:
        if known.constant and numbers == (None, None, None):  # never observed
            return []
        return ["low, high and fill are numbers, or all null where no value was ever observed"]
    if known.constant:
        return [] if known.low == known.high == known.fill else ["it is constant, but its numbers are not all the same"]
    if not known.low < known.high:
        return ["low is not below high"]
    if feature.discrete:
        classes = range(len(feature.classes))
        return [] if all(n in classes for n in numbers) else ["low, high and fill are not numbers of its classes"]
    if _range_problem(known.low, known.high) or abs(known.fill) > LARGEST:
        return ["its range is beyond what can be computed with"]
    return known.quantiles.problems() if known.quantiles else []


def not_recorded(feature: Feature, known: StoredStatistics, recordings: Mapping[str, Recording | None]) -> list[str]:
    """What is wrong with how a feature's values are said to be recorded."""
    if known.recording is None:
        return []
    if feature.discrete or feature.scope != "temporal" or known.constant or known.quantiles is None:
        return ["only continuous temporal features with quantiles say how they are recorded"]
    return known.recording.problems(feature.name, recordings)


def _range_problem(low: float, high: float) -> str | None:
    """Why no number of this range can be computed with; magnitudes alone are said."""
    largest = max(abs(low), abs(high))
    if largest > LARGEST:
        return f"has values of about {largest:.0e}, more than the {LARGEST:.0e} that can be computed with"
    if high - low < SMALLEST:
        return f"has a range of about {high - low:.0e}, less than the {SMALLEST:.0e} that can be computed with"
    return None


def unlearnable(feature: Feature, known: Statistics, settings: CodecSettings) -> list[str]:
    """What keeps a continuous feature from coming back as it went in."""
    if problem := _range_problem(known.low, known.high):
        return [f"{feature.name!r} {problem}: mend the values, or give them in another unit"]
    found = []
    if settings.scale == "bounds" and feature.bounds is None:
        found.append(f"codec.scale is 'bounds', but {feature.name!r} has none: give it bounds in schema.toml")
    if feature.resolution and (known.high - known.low) / feature.resolution > FINEST:
        found.append(
            f"{feature.name!r} spans more than {FINEST:,} times its resolution, too fine for single precision: "
            "give it a coarser resolution, or none"
        )
    return found


def statistics_of(feature: Feature, values: Array, settings: CodecSettings) -> Statistics:
    observed = values[~np.isnan(values)]
    missing = len(observed) < values.size
    if len(observed) == 0:
        return Statistics(np.nan, np.nan, np.nan, missing, constant=True)
    low, high = float(observed.min()), float(observed.max())
    if low == high:
        return Statistics(low, high, low, missing, constant=True)
    if feature.discrete:
        fill = float(np.bincount(observed.astype(np.int64)).argmax())
        return Statistics(low, high, fill, missing, constant=False)
    if _range_problem(low, high):  # which `fit` refuses
        return Statistics(low, high, low, missing, constant=False)
    if settings.scale == "bounds" and feature.bounds:
        low, high = feature.bounds
    quantiles = Quantiles.fit(observed.astype(np.float64)) if settings.scale == "quantile" else None
    return Statistics(low, high, float(observed.mean()), missing, constant=False, quantiles=quantiles)


def with_recordings(cohort: Cohort, schema: Schema, statistics: Mapping[str, Statistics]) -> dict[str, Statistics]:
    """Statistics that also say how the values of a continuous temporal feature are recorded."""
    values = {
        feature.name: np.asarray(cohort.values(feature.name), np.float64)
        for feature in schema.temporal
        if not feature.discrete and not statistics[feature.name].constant
    }
    derived = derivations(values, exact_relations(values, stream("codec", 0)))
    return {
        name: replace(statistics[name], recording=Recording.fit(own, derived.get(name))) for name, own in values.items()
    }
