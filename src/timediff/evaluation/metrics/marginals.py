"""Marginals: each feature by itself, real against synthetic. The first thing to look at, and never enough alone."""

import math
from dataclasses import dataclass

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature, Kind, Schema, Scope
from timediff.errors import TimeDiffError


@dataclass(frozen=True)
class Marginal:
    """A continuous feature, or one class of a discrete one: then a mean is the class's fraction of its values."""

    feature: str
    unit: str | None
    kind: Kind
    scope: Scope
    level: str | None  # the class; None = continuous
    real_mean: float
    synthetic_mean: float
    real_sd: float
    synthetic_sd: float
    shift: float  # (synthetic mean − real mean) / real SD
    real_missing: float  # fraction of steps within the stays, NaN without any
    synthetic_missing: float
    real_stays: int  # with at least one observed value
    synthetic_stays: int
    real_fewest: int  # of a class: the real stays that have it, or those that have another, whichever are fewer

    @property
    def real_shown(self) -> bool:
        """Whether enough real stays say it; as `is_rare`."""
        rare = self.level is not None and 0 < self.real_fewest < MIN_AGGREGATE
        return self.real_stays >= MIN_AGGREGATE and not rare


def marginals(real: Cohort, synthetic: Cohort) -> list[Marginal]:
    """One record a continuous or binary feature and one a class of a categorical one, over observed values."""
    require_same_features(real.schema, synthetic.schema)
    return [
        _marginal(feature, level, _Observed(real, feature), _Observed(synthetic, feature))
        for feature in real.schema.features
        if feature.generated
        for level in levels(feature)
    ]


def require_same_features(real: Schema, synthetic: Schema, named: str = "the real and the synthetic cohort") -> None:
    """Only cohorts whose generated columns mean the same can be compared."""

    def meaning(schema: Schema) -> dict[str, object]:
        return {f.name: (f.kind, f.scope, f.unit, f.classes) for f in schema.features if f.generated}

    ours, theirs = meaning(real), meaning(synthetic)
    if differing := sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)):
        raise TimeDiffError(
            f"{named} differ in what they hold: {', '.join(differing)}. "
            "Compare cohorts whose schemas give these features the same kind, scope, unit and classes."
        )
    if real.step != synthetic.step:
        raise TimeDiffError(
            f"{named} differ in their grids, {real.step!r} and {synthetic.step!r}: compare cohorts on the same grid."
        )


class _Observed:
    """What was observed of one feature: its values in one row, its missing rate, and in how many stays it occurs."""

    def __init__(self, cohort: Cohort, feature: Feature) -> None:
        values: Floats = cohort.values(feature.name).astype(np.float64)
        values = values.reshape(len(cohort), cohort.schema.steps if feature.scope == "temporal" else 1)
        inside = np.ones(values.shape, dtype=bool)
        if feature.scope == "temporal":  # after a stay's end nothing can be missing
            inside = np.arange(values.shape[1]) < cohort.lengths[:, None]
        observed = inside & ~np.isnan(values)
        self.values = values[observed]
        self.missing = 1 - len(self.values) / int(inside.sum()) if inside.any() else math.nan
        self.stays = int(observed.any(axis=1).sum())
        self._table, self._observed = values, observed

    def fewest(self, level: int | None) -> int:
        """Of the stays that ever have a class and those that ever have another, the fewer."""
        if level is None:
            return self.stays
        has = self._table == level
        return min(int((which & self._observed).any(axis=1).sum()) for which in (has, ~has))

    def moments(self, level: int | None) -> tuple[float, float]:
        values: Array = self.values if level is None else (self.values == level).astype(np.float64)
        if values.size == 0:
            return math.nan, math.nan
        if values.min() == values.max():  # exactly constant: rounding must not make an SD of it
            return float(values[0]), 0.0
        return float(values.mean()), float(values.std())


def is_rare(cohort: Cohort, feature: Feature, level: int) -> bool:
    """Whether a few stays alone ever have a class, or ever have another; that nobody does is nobody's secret."""
    return 0 < _Observed(cohort, feature).fewest(level) < MIN_AGGREGATE


def levels(feature: Feature) -> list[int | None]:
    """The classes to look at one by one; of two classes, the second says it all. None = the value itself."""
    if feature.kind == "continuous":
        return [None]
    return [1] if feature.kind == "binary" else list(range(len(feature.classes)))


def _marginal(feature: Feature, level: int | None, real: _Observed, synthetic: _Observed) -> Marginal:
    real_mean, real_sd = real.moments(level)
    synthetic_mean, synthetic_sd = synthetic.moments(level)
    return Marginal(
        feature=feature.name,
        unit=feature.unit,
        kind=feature.kind,
        scope=feature.scope,
        level=None if level is None else str(feature.classes[level]),
        real_mean=real_mean,
        synthetic_mean=synthetic_mean,
        real_sd=real_sd,
        synthetic_sd=synthetic_sd,
        shift=_shift(synthetic_mean - real_mean, real_sd),
        real_missing=real.missing,
        synthetic_missing=synthetic.missing,
        real_stays=real.stays,
        synthetic_stays=synthetic.stays,
        real_fewest=real.fewest(level),
    )


def _shift(difference: float, sd: float) -> float:
    if difference == 0:
        return 0.0
    if sd == 0 and not math.isnan(difference):
        return math.copysign(math.inf, difference)
    return difference / sd if sd != 0 else math.nan
