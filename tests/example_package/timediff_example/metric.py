"""A metric: of all continuous features, the largest gap between the means of real and synthetic stays."""

from collections.abc import Sequence

import numpy as np

from timediff.evaluation.case import Measurement
from timediff.evaluation.registry import Meaning, metric
from timediff.evaluation.score import Score


@metric(
    "example-mean-gap",
    "looks real",
    title="Means",
    numbers={"gap": Meaning("largest gap between means", "In standard deviations of the real values.", "0")},
    floored=True,
)
def mean_gap(measurement: Measurement) -> Sequence[Score]:
    gaps = []
    for feature in measurement.test.schema.generated().features:
        if not feature.discrete:
            real, made = (cohort.values(feature.name) for cohort in (measurement.test, measurement.cohort))
            gaps.append(abs(np.nanmean(made) - np.nanmean(real)) / np.nanstd(real))
    return [Score("example-mean-gap", "gap", float(max(gaps)), n=len(measurement.cohort))]
