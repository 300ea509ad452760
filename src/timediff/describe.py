"""What a cohort holds, a record a feature: the paper's table of data set statistics for your data."""

from dataclasses import dataclass

import numpy as np

from timediff.cohort import Cohort
from timediff.schema import Feature
from timediff.tables import Array


@dataclass(frozen=True)
class Description:
    feature: Feature
    missing: float  # rate among the steps of every stay, or among stays
    low: float
    mean: float
    sd: float
    high: float
    shares: dict[str, float]  # of each class, among what was observed


def describe(cohort: Cohort) -> list[Description]:
    """One record a generated feature, in the schema's order."""
    inside = np.arange(cohort.schema.steps) < cohort.lengths[:, None]
    records = []
    for feature in cohort.schema.features:
        if feature.generated:
            values = cohort.values(feature.name)
            records.append(_described(feature, values[inside] if feature.scope == "temporal" else values))
    return records


def missing_rate(cohort: Cohort) -> float:
    """The share of temporal cells that were not measured."""
    inside = np.arange(cohort.schema.steps) < cohort.lengths[:, None]
    return float(np.mean([np.isnan(cohort.series[f.name][inside]).mean() for f in cohort.schema.temporal]))


def _described(feature: Feature, values: Array) -> Description:
    observed = values[~np.isnan(values)]
    missing = 1 - len(observed) / len(values)
    if len(observed) == 0:
        return Description(feature, missing, np.nan, np.nan, np.nan, np.nan, {})
    counts = [float((observed == i).mean()) for i in range(len(feature.classes))]
    shares = {str(name): share for name, share in zip(feature.classes, counts, strict=True)}
    low, mean, sd, high = (float(f(observed)) for f in (np.min, np.mean, np.std, np.max))
    return Description(feature, missing, low, mean, sd, high, shares)
