"""Extremes: the lowest and the highest values of a feature, by quantiles that no single stay decides.

Clinicians look at the worst values of a stay. A generator that draws all values towards the middle loses them, and one
that overshoots writes what no patient has.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from timediff.data.arrays import Floats
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature
from timediff.evaluation.figure_data import ExtremeValues, FigureData, plain
from timediff.evaluation.metrics import differences
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.resampling import Observations, Resampled

difference = partial(differences.difference, "clinical")
EXTREMES = {"lowest_0.1": 0.001, "lowest_1": 0.01, "highest_1": 0.99, "highest_0.1": 0.999}
TAIL = 128  # values on either side of a quantile among which the quantile of a resample is looked for


def scores(
    feature: Feature, real: Resampled, r: Observations, synthetic: Resampled, s: Observations
) -> Iterator[Score]:
    """Shifts of the quantiles, in real standard deviations."""
    sd = float(r.known.std()) if np.ptp(r.known) > 0 else 0.0
    for what, fraction in EXTREMES.items():
        why = "all of its values in the real cohort are the same, so there is no SD to measure by"
        if sd > 0:
            why = _too_far_out(fraction, r) or _too_far_out(fraction, s)
        if why:
            yield unavailable("clinical", what, why, feature=feature.name)
            continue
        ours, theirs = (_quantile(fraction, one, known) for one, known in ((real, r), (synthetic, s)))
        yield difference(what, (theirs - ours) / sd, min(r.stays, s.stays), feature=feature.name)


def figure(feature: Feature, train: Observations, test: Observations, synthetic: Observations) -> FigureData:
    """The quantiles themselves, each where at least ten stays of the cohort have a value so far out."""
    values = {}
    for name, known in (("train", train), ("test", test), ("synthetic", synthetic)):
        told = [np.nan if _too_far_out(fraction, known) else _of_all(fraction, known) for fraction in EXTREMES.values()]
        values[name] = plain(np.array(told), digits=6)
    content = ExtremeValues(feature.unit, list(EXTREMES.values()), values)
    return FigureData("extremes", "extremes", f"{feature.name}: lowest and highest values", content, feature.name)


def _too_far_out(fraction: float, known: Observations) -> str:
    """A quantile beyond which fewer than ten stays have a value would be a value of one of them."""
    if known.stays >= MIN_AGGREGATE:
        quantile = _of_all(fraction, known)
        beyond = known.known <= quantile if fraction < 0.5 else known.known >= quantile
        if len(np.unique(known.stay[beyond])) >= MIN_AGGREGATE:
            return ""
    return f"fewer than {MIN_AGGREGATE} stays of a cohort have a value so far out"


def _of_all(fraction: float, known: Observations) -> float:
    return float(np.quantile(known.known, fraction, method="inverted_cdf"))


def _quantile(fraction: float, resampled: Resampled, known: Observations) -> Floats:
    """The smallest value that at least so large a fraction of the values do not exceed, (1 + bootstrap,)."""
    ordered = np.sort(known.known)
    place, tail = fraction * len(ordered), 3 * min(fraction, 1 - fraction) * len(ordered)
    near = np.linspace(max(0, place - tail), min(len(ordered), place + tail) - 1, 2 * TAIL + 1)
    exact = max(0, int(np.ceil(place - 1e-9)) - 1)
    points = np.unique(ordered[np.append(near.astype(np.int64), [exact, len(ordered) - 1])])
    upto = np.cumsum(resampled.tally(known.stay, np.searchsorted(points, known.known), len(points)), axis=1)
    reached = upto >= fraction * upto[:, -1:] - 1e-9
    out: Floats = points[reached.argmax(axis=1)]
    return out
