"""Fidelity: how far each feature, its missingness, and what features have to do with one another are from real.

Values are exact. Intervals are of a bootstrap over the stays of both cohorts; for the Kolmogorov–Smirnov and the
Wasserstein distance it is taken on 512 quantiles where a feature has more different values than that.
"""

from functools import partial

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature
from timediff.errors import TimeDiffError
from timediff.evaluation.case import Measurement
from timediff.evaluation.metrics import dependence, differences
from timediff.evaluation.metrics.differences import Sample, apart, too_few, total_variation
from timediff.evaluation.metrics.marginals import require_same_features
from timediff.evaluation.metrics.survival import runs
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.resampling import Observations, Resampled, fractions, mean_gap, ratio
from timediff.runtime import seeding

distance, difference = partial(differences.distance, "fidelity"), partial(differences.difference, "fidelity")
CONTINUOUS = ("ks", "wasserstein", "mean", "sd", "out_of_range")
MISSINGNESS = ("missing", "runs", "missing_by_step")


@metric(
    "fidelity",
    "looks real",
    title="The statistics of the values",
    sentence="Distributions, gaps and relations of the measured values, synthetic against real stays that the "
    "generator has not seen.",
    numbers={
        "ks": Meaning(
            "KS distance", "Largest gap between the two cumulative distributions (Kolmogorov–Smirnov).", "0; 1 is worst"
        ),
        "wasserstein": Meaning(
            "Wasserstein distance", "How far values must be moved on average, in real standard deviations.", "0"
        ),
        "mean": Meaning("shift of the mean", "Synthetic minus real mean, in real standard deviations.", "0"),
        "sd": Meaning(
            "change of the SD",
            "Synthetic standard deviation relative to the real one, minus 1; −0.5 is halved.",
            "0",
        ),
        "out_of_range": Meaning(
            "out of range",
            "Fraction of synthetic values outside the allowed bounds or, without bounds, the real range.",
            "0",
        ),
        "frequencies": Meaning(
            "class frequencies",
            "Fraction of values that would have to change class (total variation distance).",
            "0; 1 is worst",
        ),
        "missing": Meaning("missing rate", "Synthetic minus real fraction of missing values.", "0"),
        "runs": Meaning(
            "lengths of gaps",
            "How differently long the stretches with and without measurements are (total variation distance).",
            "0; 1 is worst",
        ),
        "missing_by_step": Meaning(
            "missing by step", "Mean absolute difference of the missing rates at each step.", "0"
        ),
        "correlation": Meaning(
            "correlations", "Mean absolute difference of the correlations between features at the same step.", "0"
        ),
        "autocorrelation": Meaning(
            "course over time", "Mean absolute difference of each feature's correlation with its own past.", "0"
        ),
        "mask_correlation": Meaning(
            "what is missing together", "Mean absolute difference of the correlations between gaps of features.", "0"
        ),
        "label_association": Meaning(
            "relation to the outcome", "Mean absolute difference of the features' correlations with the outcome.", "0"
        ),
    },
    floored=True,
    cost=Cost(1),
    mark_beyond=0.1,  # a tenth of a standard deviation, or of the values; less is hard to see in any figure
)
def measure(given: Measurement) -> list[Score]:
    return fidelity(given.test, given.cohort, bootstrap=given.settings.bootstrap, seed=given.settings.seed)


def fidelity(real: Cohort, synthetic: Cohort, *, bootstrap: int = 200, seed: int = 0) -> list[Score]:
    """Every number of fidelity; `n` is the smaller number of stays, of the two cohorts, that it rests on."""
    require_same_features(real.schema, synthetic.schema)
    if real.schema.steps != synthetic.schema.steps:
        raise TimeDiffError(
            f"the real cohort has {real.schema.steps} steps and the synthetic one {synthetic.schema.steps}: "
            "compare cohorts of the same steps; --horizon cuts both."
        )
    features = [feature for feature in real.schema.features if feature.generated]
    if short := [name for name, c in (("real", real), ("synthetic", synthetic)) if len(c) < MIN_AGGREGATE]:
        why = f"fewer than {MIN_AGGREGATE} stays in the {' and the '.join(short)} cohort; {MIN_AGGREGATE} are needed"
        return [
            *(unavailable("fidelity", what, why, feature=f.name) for f in features for what in _numbers(f)),
            *(unavailable("fidelity", what, why) for what in dependence.numbers(real.schema)),
        ]
    ours = Resampled(real, bootstrap, seeding.stream("evaluation", seed, 0))
    theirs = Resampled(synthetic, bootstrap, seeding.stream("evaluation", seed, 1))
    scores = [score for feature in features for score in _feature(feature, ours, theirs)]
    return scores + dependence.scores(ours, theirs)


def _numbers(feature: Feature) -> tuple[str, ...]:
    """Which numbers there are of a feature."""
    values = ("frequencies",) if feature.discrete else CONTINUOUS
    return (*values, *MISSINGNESS) if feature.scope == "temporal" else values


def _feature(feature: Feature, real: Resampled, synthetic: Resampled) -> list[Score]:
    r, s = Observations(real.cohort, feature), Observations(synthetic.cohort, feature)
    if why := too_few(r, s):
        values = ("frequencies",) if feature.discrete else CONTINUOUS
        scores = [unavailable("fidelity", what, why, feature=feature.name) for what in values]
    elif feature.discrete:
        scores = [_frequencies(feature, real, r, synthetic, s)]
    else:
        scores = _continuous(feature, real, r, synthetic, s)
    if feature.scope == "temporal" or r.missing.any() or s.missing.any():
        scores.append(_missing(feature, real, r, synthetic, s))
    if feature.scope == "temporal":
        scores += [_runs(feature, real, r, synthetic, s), _missing_by_step(feature, real, r, synthetic, s)]
    return scores


def _frequencies(feature: Feature, real: Resampled, r: Observations, synthetic: Resampled, s: Observations) -> Score:
    ours, theirs = (
        fractions(resampled.tally(known.stay, known.known.astype(np.int64), len(feature.classes)))
        for resampled, known in ((real, r), (synthetic, s))
    )
    return distance("frequencies", total_variation(ours, theirs), min(r.stays, s.stays), feature=feature.name)


def _continuous(
    feature: Feature, real: Resampled, r: Observations, synthetic: Resampled, s: Observations
) -> list[Score]:
    n, name = min(r.stays, s.stays), feature.name
    shift, sd = float(r.known.mean()), float(r.known.std()) if np.ptp(r.known) > 0 else 0.0

    ks, wasserstein = apart(real, Sample(r.known, r.stay), synthetic, Sample(s.known, s.stay))
    low, high = feature.bounds or (float(r.known.min()), float(r.known.max()))
    slack = 1e-9 * max(abs(low), abs(high))  # 0.1 · 420 is not 42 to the last bit
    outside = s.observed & ((s.values < low - slack) | (s.values > high + slack))
    beyond = ratio(*synthetic.sums(np.stack([outside.sum(axis=1), s.observed.sum(axis=1)], axis=1)).T)

    scores = {
        "ks": distance("ks", ks, n, feature=name),
        "out_of_range": distance("out_of_range", beyond, n, feature=name),
    }
    if sd > 0:
        (real_mean, real_sd), (mean, sd_synthetic) = _moments(real, r, shift, sd), _moments(synthetic, s, shift, sd)
        scores |= {
            "wasserstein": distance("wasserstein", wasserstein / sd, n, feature=name),
            "mean": difference("mean", ratio(mean - real_mean, real_sd), n, feature=name),
            "sd": difference("sd", ratio(sd_synthetic, real_sd) - 1, n, feature=name),
        }
    why = "all of its values in the real cohort are the same, so there is no SD to measure by; two values are needed"
    return [scores.get(what) or unavailable("fidelity", what, why, feature=name) for what in CONTINUOUS]


def _moments(resampled: Resampled, known: Observations, shift: float, sd: float) -> tuple[Floats, Floats]:
    """Mean and SD of each resample in units of `sd` about `shift`: squares of small numbers lose no digits."""
    z = known.standardised(shift, sd)
    count, total, squares = resampled.sums(
        np.stack([known.observed.sum(axis=1), z.sum(axis=1), (z * z).sum(axis=1)], 1)
    ).T
    mean = ratio(total, count)
    return mean, np.sqrt(np.maximum(ratio(squares, count) - mean**2, 0.0))


def _missing(feature: Feature, real: Resampled, r: Observations, synthetic: Resampled, s: Observations) -> Score:
    rates = [
        ratio(*resampled.sums(np.stack([known.missing.sum(axis=1), known.inside.sum(axis=1)], axis=1)).T)
        for resampled, known in ((real, r), (synthetic, s))
    ]
    return difference("missing", rates[1] - rates[0], _stays(real, synthetic), feature=feature.name)


def _missing_by_step(
    feature: Feature, real: Resampled, r: Observations, synthetic: Resampled, s: Observations
) -> Score:
    ours, theirs = (
        ratio(resampled.sums(known.missing), resampled.sums(known.inside))
        for resampled, known in ((real, r), (synthetic, s))
    )
    return distance("missing_by_step", mean_gap(ours, theirs), _stays(real, synthetic), feature=feature.name)


def _runs(feature: Feature, real: Resampled, r: Observations, synthetic: Resampled, s: Observations) -> Score:
    """Lengths of runs of missing and of observed steps: the larger distance. A kind that one cohort lacks is left to
    the other kind: where nothing is missing, every run of observed steps is a whole stay."""
    found = []
    for ours, theirs in ((r.missing, s.missing), (r.observed, s.observed)):
        if ours.any() and theirs.any():
            found.append(total_variation(_run_lengths(real, ours), _run_lengths(synthetic, theirs)))
    if not found:
        why = "it is never observed in one cohort and always in the other, so no runs can be compared"
        return unavailable("fidelity", "runs", why, feature=feature.name)
    largest = found[int(np.argmax([float(statistics[0]) for statistics in found]))]
    return distance("runs", largest, _stays(real, synthetic), feature=feature.name)


def _run_lengths(resampled: Resampled, marked: Array) -> Floats:
    """Fractions of the lengths of runs of marked steps, (1 + bootstrap, L + 1)."""
    stay, length = runs(marked)
    return fractions(resampled.tally(stay, length, marked.shape[1] + 1))


def _stays(real: Resampled, synthetic: Resampled) -> int:
    return min(len(real.cohort), len(synthetic.cohort))
