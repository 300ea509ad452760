"""Dependence: what features have to do with one another, with their own past, and with the label."""

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.schema import Feature, Schema
from timediff.evaluation.metrics.marginals import levels
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.bootstrap import centred_interval
from timediff.evaluation.statistics.resampling import BLOCK, Observations, Resampled, mean_gap, ratio

LAGS = 10  # autocorrelations are compared up to this lag
CONSTANT = 1e-10  # a variance below this, in units of the real one, is rounding


def numbers(schema: Schema) -> tuple[str, ...]:
    """Which numbers there are."""
    always = ("correlation", "autocorrelation", "mask_correlation")
    return always if schema.label is None else (*always, "label_association")


def scores(real: Resampled, synthetic: Resampled) -> list[Score]:
    """Mean absolute differences of correlations, real against synthetic."""
    schema = real.cohort.schema
    found = [_correlation(real, synthetic), _autocorrelation(real, synthetic), _mask_correlation(real, synthetic)]
    return found if schema.label is None else [*found, _label_association(real, synthetic, schema.label)]


def _continuous(schema: Schema) -> list[Feature]:
    return [feature for feature in schema.temporal if not feature.discrete]


def _score(what: str, real: Resampled, synthetic: Resampled, ours: Floats, theirs: Floats) -> Score:
    """The mean difference of two sets of correlations, (1 + bootstrap, K)."""
    if np.isnan(ours[0]).all() and np.isnan(theirs[0]).all():
        why = "none of its correlations is defined in either cohort: what it compares is constant or missing"
        return unavailable("fidelity", what, why)
    gaps = mean_gap(ours, theirs)
    value = float(gaps[0])
    low, high = centred_interval(value, gaps[1:])
    return Score("fidelity", what, value, n=min(len(real.cohort), len(synthetic.cohort)), low=low, high=high)


def _correlation(real: Resampled, synthetic: Resampled) -> Score:
    features = _continuous(real.cohort.schema)
    if len(features) < 2:
        why = f"{len(features)} continuous temporal features; at least 2 are needed"
        return unavailable("fidelity", "correlation", why)
    units = [_units(real, feature) for feature in features]
    ours, theirs = (
        _correlations(
            resampled,
            np.stack([c.standardised(*unit) for c, unit in zip(known, units, strict=True)], axis=1),
            np.stack([c.observed for c in known], axis=1),
        )
        for resampled in (real, synthetic)
        for known in [[Observations(resampled.cohort, feature) for feature in features]]
    )
    return _score("correlation", real, synthetic, ours, theirs)


def _mask_correlation(real: Resampled, synthetic: Resampled) -> Score:
    features = real.cohort.schema.temporal
    if len(features) < 2:
        return unavailable("fidelity", "mask_correlation", "1 temporal feature; at least 2 are needed")
    ours, theirs = (
        _correlations(
            resampled,
            np.stack([c.missing for c in known], axis=1).astype(np.float64),
            np.stack([c.inside for c in known], axis=1),
        )
        for resampled in (real, synthetic)
        for known in [[Observations(resampled.cohort, feature) for feature in features]]
    )
    return _score("mask_correlation", real, synthetic, ours, theirs)


def _units(real: Resampled, feature: Feature) -> tuple[float, float]:
    """Mean and SD in the real cohort."""
    known = Observations(real.cohort, feature).known
    if known.size == 0 or np.ptp(known) == 0:
        return (float(known[0]) if known.size else 0.0), 1.0
    return float(known.mean()), float(known.std())


def _correlations(resampled: Resampled, values: Floats, known: Array) -> Floats:
    """Of every pair of features, over steps known of both: (N, P, L) to (1 + bootstrap, pairs)."""
    i, j = np.triu_indices(values.shape[1], 1)
    sums = np.zeros((6, resampled.counts.shape[1], len(i)))
    for start in range(0, len(values), BLOCK):
        block = slice(start, start + BLOCK)
        x, o = values[block], known[block].astype(np.float64)
        count, total = o @ o.swapaxes(1, 2), x @ o.swapaxes(1, 2)  # (N, P, P)
        squares, products = (x * x) @ o.swapaxes(1, 2), x @ x.swapaxes(1, 2)
        per_stay = np.stack(
            [count[:, i, j], total[:, i, j], total[:, j, i], squares[:, i, j], squares[:, j, i], products[:, i, j]]
        )
        sums += resampled.counts[block].T @ per_stay  # (6, 1 + bootstrap, pairs)
    return _pearson(*sums)


def _pearson(n: Floats, x: Floats, y: Floats, xx: Floats, yy: Floats, xy: Floats) -> Floats:
    """Correlations from sums; NaN where either side is constant."""
    x, y = ratio(x, n), ratio(y, n)
    across, ours, theirs = ratio(xy, n) - x * y, ratio(xx, n) - x * x, ratio(yy, n) - y * y
    varies = (ours > CONSTANT) & (theirs > CONSTANT)
    return ratio(across, np.sqrt(np.where(varies, ours * theirs, 0.0)))


def _autocorrelation(real: Resampled, synthetic: Resampled) -> Score:
    features, lags = _continuous(real.cohort.schema), min(real.cohort.schema.steps - 1, LAGS)
    if not features or lags < 1:
        why = "it needs a continuous temporal feature and at least 2 steps"
        return unavailable("fidelity", "autocorrelation", why)
    ours, theirs = (
        np.concatenate(
            [_autocorrelations(resampled, feature, _units(real, feature), lags) for feature in features], axis=1
        )
        for resampled in (real, synthetic)
    )
    return _score("autocorrelation", real, synthetic, ours, theirs)


def _autocorrelations(resampled: Resampled, feature: Feature, units: tuple[float, float], lags: int) -> Floats:
    """Of one feature at lags 1 to `lags`, about its mean over all steps, over pairs of observed steps."""
    known = Observations(resampled.cohort, feature)
    z, o = known.standardised(*units), known.observed
    per_stay = [o.sum(axis=1), z.sum(axis=1), (z * z).sum(axis=1)]
    for lag in range(1, lags + 1):
        z0, o0, z1, o1 = z[:, :-lag], o[:, :-lag], z[:, lag:], o[:, lag:]
        per_stay += [(o0 & o1).sum(axis=1), (z0 * o1 + z1 * o0).sum(axis=1), (z0 * z1).sum(axis=1)]
    count, total, squares, *paired = resampled.sums(np.stack(per_stay, axis=1)).T
    mean = ratio(total, count)
    variance = ratio(squares, count) - mean**2
    variance = np.where(variance > CONSTANT, variance, np.nan)
    pairs, ends, products = (np.stack(paired[part::3], axis=1) for part in range(3))  # (1 + bootstrap, lags)
    return (ratio(products - mean[:, None] * ends, pairs) + mean[:, None] ** 2) / variance[:, None]


def _label_association(real: Resampled, synthetic: Resampled, label: Feature) -> Score:
    for name, resampled in (("real", real), ("synthetic", synthetic)):
        known = Observations(resampled.cohort, label).known
        if known.size == 0 or np.ptp(known) == 0:
            why = f"the label {label.name} has fewer than 2 classes in the {name} cohort; 2 are needed"
            return unavailable("fidelity", "label_association", why)
    means = _stay_means(real)
    with_value = ~np.isnan(means)
    count = np.maximum(with_value.sum(axis=0), 1)
    shift = np.where(with_value, means, 0.0).sum(axis=0) / count
    scale = np.sqrt(np.where(with_value, (means - shift) ** 2, 0.0).sum(axis=0) / count)
    scale = np.where(scale > CONSTANT * np.maximum(1.0, np.abs(shift)), scale, 1.0)
    ours, theirs = (_point_biserial(resampled, label, shift, scale) for resampled in (real, synthetic))
    return _score("label_association", real, synthetic, ours, theirs)


def _stay_means(resampled: Resampled) -> Floats:
    """Of each temporal feature, or class of it, the mean of what was observed in each stay: (N, K), NaN = nothing."""
    columns = []
    for feature in resampled.cohort.schema.temporal:
        known = Observations(resampled.cohort, feature)
        for level in levels(feature):
            values = known.values if level is None else known.values == level
            columns.append(
                ratio(np.where(known.observed, values, 0.0).sum(axis=1), known.observed.sum(axis=1).astype(np.float64))
            )
    return np.stack(columns, axis=1)


def _point_biserial(resampled: Resampled, label: Feature, shift: Floats, scale: Floats) -> Floats:
    """Correlations of each class of the label with each stay mean, (1 + bootstrap, K)."""
    means = (_stay_means(resampled) - shift) / scale
    classes = Observations(resampled.cohort, label)
    o = ~np.isnan(means) & classes.observed
    x = np.where(o, means, 0.0)
    out = []
    for level in levels(label):
        y = o * (classes.values == level)
        out.append(_pearson(*(resampled.sums(part) for part in (o, x, y, x * x, y, x * y))))
    return np.concatenate(out, axis=1)
