"""What a clinician would check: how values are written down, repeats, extremes, and what no patient can have.

All of it is seen in a chart without statistics, and most of it by no small neural classifier.
"""

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature, Relation
from timediff.evaluation.case import Measurement
from timediff.evaluation.figure_data import FigureData, RateBars, named, plain
from timediff.evaluation.metrics import between_stays, differences, digits, extremes, survival
from timediff.evaluation.metrics.charts import charts
from timediff.evaluation.metrics.differences import too_few
from timediff.evaluation.metrics.extremes import EXTREMES
from timediff.evaluation.metrics.marginals import require_same_features
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.resampling import Observations, Resampled, ratio
from timediff.runtime import seeding

difference = partial(differences.difference, "clinical")
Counted = Sequence[tuple[Array, Array]]  # by row: how many of how many, of each stay


@metric(
    "clinical",
    "looks real",
    title="What a clinician would check",
    sentence="How values are written down, repeats, extremes, how stays differ from one another, and what no patient "
    "can have: synthetic against real stays that the generator has not seen.",
    numbers={
        "lattice": Meaning(
            "multiples",
            "Fraction of values that would have to change to be multiples of 100, 50, 10, … 0.01 as often as real ones "
            "are (total variation distance).",
            "0; 1 is worst",
        ),
        "last_digit": Meaning(
            "last digits",
            "The same for the last digit, counted in the feature's own steps, and for values between them.",
            "0; 1 is worst",
        ),
        "stay_lattice": Meaning(
            "multiples by stay",
            "KS distance between stays of the fraction of a stay's values that lie on the feature's own steps.",
            "0; 1 is worst",
        ),
        "repeats": Meaning(
            "repeats", "Synthetic minus real rate at which a value equals the one measured before it.", "0"
        ),
        "stay_mean": Meaning("mean of a stay", "KS distance between stays of their means.", "0; 1 is worst"),
        "stay_sd": Meaning("SD of a stay", "KS distance between stays of the SD within a stay.", "0; 1 is worst"),
        "stay_slope": Meaning("slope of a stay", "KS distance between stays of the slope over time.", "0; 1 is worst"),
        "between_sd": Meaning(
            "spread between stays",
            "SD between stays of their means, relative to the real one, minus 1; −0.1 is a tenth too alike.",
            "0",
        ),
        "lowest_0.1": Meaning("lowest 0.1 %", "Shift of the 0.1 % quantile, in real standard deviations.", "0"),
        "lowest_1": Meaning("lowest 1 %", "Shift of the 1 % quantile, in real standard deviations.", "0"),
        "highest_1": Meaning("highest 1 %", "Shift of the 99 % quantile, in real standard deviations.", "0"),
        "highest_0.1": Meaning("highest 0.1 %", "Shift of the 99.9 % quantile, in real standard deviations.", "0"),
        "order": Meaning(
            "order broken",
            "Synthetic minus real fraction of steps at which what the schema says is the higher one is the lower.",
            "0",
        ),
        "event_curve": Meaning("time to event", "Largest difference of the two Kaplan–Meier curves.", "0; 1 is worst"),
    },
    floored=True,
    cost=Cost(3),
    mark_beyond=0.1,
)
def measure(given: Measurement) -> list[Score | FigureData]:
    settings = given.settings
    scores = clinical(given.test, given.cohort, bootstrap=settings.bootstrap, seed=settings.seed)
    if given.floor:
        return [*scores]
    return [*scores, *named(given.generator, figures(given.test, given.cohort, given.train))]


def clinical(real: Cohort, synthetic: Cohort, *, bootstrap: int = 200, seed: int = 0) -> list[Score]:
    """Every number; `n` is the smaller number of stays, of the two cohorts, that it rests on."""
    require_same_features(real.schema, synthetic.schema)
    ours = Resampled(real, bootstrap, seeding.stream("evaluation", seed, 0))
    theirs = Resampled(synthetic, bootstrap, seeding.stream("evaluation", seed, 1))
    scores = [score for feature in _features(real) for score in _feature(feature, ours, theirs)]
    scores += [_order(relation, ours, theirs) for relation in real.schema.relations]
    if real.schema.event_time is not None:
        scores.append(survival.score(real.schema.event_time, ours, theirs))
    return scores


def figures(real: Cohort, synthetic: Cohort, train: Cohort) -> Iterator[FigureData]:
    """What there is to see: of real stays as aggregates of at least ten, of synthetic ones also as charts."""
    for feature in _features(real):
        r, s = Observations(real, feature), Observations(synthetic, feature)
        if not feature.discrete and not too_few(r, s):
            yield from digits.figures(feature, r, s)
            yield extremes.figure(feature, Observations(train, feature), r, s)
            if feature.scope == "temporal":
                yield from between_stays.figures(feature, real, r, s)
        if feature.scope == "temporal" and (gaps := survival.gap_figure(feature, real.schema.step, r, s)):
            yield gaps
    if real.schema.event_time is not None:
        yield survival.event_figure(real.schema.event_time, real, synthetic)
    temporal = [feature for feature in _features(real) if feature.scope == "temporal"]
    names = [feature.name for feature in temporal]
    told = [[_repeated(Observations(one, f)) for f in temporal] for one in (real, synthetic)]
    if names:
        yield FigureData("repeats", "repeats", "Values that repeat the last one", _rates("of values", names, *told))
    if relations := real.schema.relations:
        names = [str(relation) for relation in relations]
        told = [[_broken(one, relation) for relation in relations] for one in (real, synthetic)]
        yield FigureData("order", "order", "Order that is broken", _rates("of steps", names, *told))
    yield FigureData("charts", "charts", "Synthetic stays as charts", charts(synthetic))


def _features(real: Cohort) -> list[Feature]:
    """Those of which there is a number: all that is generated but static classes."""
    return [f for f in real.schema.features if f.generated and (f.scope == "temporal" or not f.discrete)]


def _numbers(feature: Feature) -> tuple[str, ...]:
    """Which numbers there are of a feature."""
    if feature.discrete:
        return ("repeats",)
    if feature.scope == "static":
        return ("lattice", "last_digit", *EXTREMES)
    return ("lattice", "last_digit", "stay_lattice", "repeats", *between_stays.NUMBERS, *EXTREMES)


def _feature(feature: Feature, real: Resampled, synthetic: Resampled) -> list[Score]:
    r, s = Observations(real.cohort, feature), Observations(synthetic.cohort, feature)
    if why := too_few(r, s):
        return [unavailable("clinical", what, why, feature=feature.name) for what in _numbers(feature)]
    scores = [] if feature.discrete else digits.scores(feature, real, r, synthetic, s)
    if feature.scope == "temporal":
        scores.append(_repeats(feature, real, r, synthetic, s))
        if not feature.discrete:
            scores += between_stays.scores(feature, real, r, synthetic, s)
    return scores if feature.discrete else [*scores, *extremes.scores(feature, real, r, synthetic, s)]


def _repeats(feature: Feature, real: Resampled, r: Observations, synthetic: Resampled, s: Observations) -> Score:
    rates, stays = [], []
    for resampled, known in ((real, r), (synthetic, s)):
        equal, pairs = _repeated(known)
        rates.append(ratio(*resampled.sums(np.stack([equal, pairs], axis=1)).T))
        stays.append(int((pairs > 0).sum()))
    if min(stays) < MIN_AGGREGATE:
        why = f"fewer than {MIN_AGGREGATE} stays of a cohort have two values of it"
        return unavailable("clinical", "repeats", why, feature=feature.name)
    return difference("repeats", rates[1] - rates[0], min(stays), feature=feature.name)


def _repeated(known: Observations) -> tuple[Array, Array]:
    """Of each stay: how many values equal the one measured before, and how many have one before them."""
    follows = known.stay[1:] == known.stay[:-1]
    equal = follows & (known.known[1:] == known.known[:-1])
    size = len(known.values)
    return np.bincount(known.stay[1:], equal, size), np.bincount(known.stay[1:], follows, size)


def _order(relation: Relation, real: Resampled, synthetic: Resampled) -> Score:
    """Named by the relation, in the place of a feature."""
    rates, stays = [], []
    for resampled in (real, synthetic):
        broken, both = _broken(resampled.cohort, relation)
        rates.append(ratio(*resampled.sums(np.stack([broken, both], axis=1)).T))
        stays.append(int((both > 0).sum()))
    if min(stays) < MIN_AGGREGATE:
        why = f"fewer than {MIN_AGGREGATE} stays of a cohort have both at the same step"
        return unavailable("clinical", "order", why, feature=str(relation))
    return difference("order", rates[1] - rates[0], min(stays), feature=str(relation))


def _broken(cohort: Cohort, relation: Relation) -> tuple[Array, Array]:
    """Of each stay: at how many steps the higher one is the lower, and at how many both were measured."""
    high, low = (Observations(cohort, cohort.schema[name]) for name in (relation.high, relation.low))
    both = high.observed & low.observed
    broken = both & (high.values < low.values)
    return broken.sum(axis=1), both.sum(axis=1)


def _rates(what: str, rows: list[str], real: Counted, synthetic: Counted) -> RateBars:
    """RateBars over all stays; of the real ones none that one to nine stays alone make differ from 0 or 1."""
    ours, theirs = (
        np.array([np.nan if c.sum() == 0 else n.sum() / c.sum() for n, c in one]) for one in (real, synthetic)
    )
    few = [any(0 < (part > 0).sum() < MIN_AGGREGATE for part in (n, c - n)) for n, c in real]
    return RateBars(what, rows, plain(np.where(few, np.nan, ours)), plain(theirs))
