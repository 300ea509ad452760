"""Groups of stays by a static feature, such as sex or age."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature
from timediff.errors import TimeDiffError

Mask = npt.NDArray[np.bool_]


def groups(cohort: Cohort, feature: str, reference: Cohort) -> list[tuple[str, Mask]]:
    """Which stays of `cohort` have each class of a discrete static feature, or lie in each band of a continuous one.

    Bands go from one quartile of `reference` up to, not including, the next; the outer ones are open, because the
    least and the greatest value are those of single stays. Stays without a value are a group where `reference` has any.
    """
    about = _static(reference, feature)
    values, known = (np.asarray(c.values(feature), np.float64) for c in (cohort, reference))
    if about.discrete:
        found = [(f"{feature} = {name}", values == level) for level, name in enumerate(about.classes)]
    else:
        found = _bands(feature, values, known[~np.isnan(known)])
    return [*found, (f"{feature} missing", np.isnan(values))] if np.isnan(known).any() else found


def _static(cohort: Cohort, feature: str) -> Feature:
    possible = [f.name for f in cohort.schema.static if f.generated]
    if feature not in possible:
        raise TimeDiffError(
            f"groups by {feature!r}: expected a static feature of the cohort. "
            + (f"Choose one of {', '.join(possible)}." if possible else "This cohort has none: leave groups out.")
        )
    return cohort.schema[feature]


def _bands(feature: str, values: Floats, known: Floats) -> list[tuple[str, Mask]]:
    cuts = np.unique(np.quantile(known, [0.25, 0.5, 0.75])) if len(known) else np.empty(0)
    cuts = cuts[cuts > known.min()] if len(known) else cuts  # nothing lies below the least value
    if len(cuts) == 0:
        return [(f"{feature} of any value", ~np.isnan(values))]
    names = [f"{feature} {low:.4g} to {high:.4g}" for low, high in pairwise(cuts)]
    names = [f"{feature} below {cuts[0]:.4g}", *names, f"{feature} {cuts[-1]:.4g} and above"]
    band = np.where(np.isnan(values), -1, np.digitize(values, cuts))
    return [(name, band == i) for i, name in enumerate(names)]
