"""Statistics of single stays: what an expert would look at, as a table that gradient-boosted trees can read.

What is looked for (lattices, relations, which values occur) is found in training stays. Which values occur is asked of
one half of the training patients: of the other half, for a training stay that stands in for a synthetic one, and of
either, by chance, for any other stay. So no stay is told apart by having been counted itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.lattices import WORDS, lattices, on_lattice
from timediff.data.relations import ExactRelation, exact_relations, orders
from timediff.data.schema import Feature
from timediff.data.steps import Steps, correlation, deviation, divided, longest_run, mean
from timediff.data.units import blocks
from timediff.runtime.seeding import stream

LEVELS, COURSE, DIGITS = "means, spreads, extremes", "changes and autocorrelation", "digits, repeats, distinct values"
MISSING, RELATIONS = "what is measured when", "relations between features"
CORRELATIONS, STATIC = "correlations within a stay", "static values and outcome"
GROUPS = (LEVELS, COURSE, DIGITS, MISSING, RELATIONS, CORRELATIONS, STATIC)
MOST_PAIRS = 45  # of features, those that are measured together most often
SAMPLE, HALVES = 51, 52  # parts of the evaluation stream


@dataclass(frozen=True)
class Statistic:
    """A column of the table."""

    group: str
    words: str  # such as "MAP: fraction of whole numbers"

    @property
    def fraction(self) -> bool:
        """Whether it is a fraction, so that it can be 1 for a whole stay."""
        return "fraction of" in self.words


Column = tuple[Statistic, Floats]


@dataclass(frozen=True)
class Occurring:
    """The values that occur in training stays, and in how many patients each does."""

    unit: float  # values closer than this are the same
    values: Floats
    patients: Floats

    @staticmethod
    def fit(values: Floats, patient: Array) -> "Occurring":
        known = ~np.isnan(values)
        unit = 1e-7 * float(np.std(values[known])) if known.any() else 0.0
        unit = unit or 1.0
        whose = np.broadcast_to(patient[:, None], values.shape)[known].astype(np.float64)
        pairs = np.unique(np.stack([np.rint(values[known] / unit), whose]), axis=1)
        distinct, patients = np.unique(pairs[0], return_counts=True)
        return Occurring(unit, distinct, patients.astype(np.float64))

    def patients_with(self, values: Floats) -> Floats:
        """In how many training patients each value occurs."""
        if len(self.values) == 0:
            return np.zeros(values.shape)
        wanted = np.rint(values / self.unit)
        place = np.minimum(np.searchsorted(self.values, np.nan_to_num(wanted)), len(self.values) - 1)
        return np.where(self.values[place] == wanted, self.patients[place], 0.0)


@dataclass(frozen=True)
class Pattern:
    """How often each combination of measured features occurs at a step, as bits."""

    features: tuple[str, ...]
    known: Array
    frequency: Floats

    @staticmethod
    def fit(masks: Mapping[str, Array]) -> "Pattern":
        features = tuple(masks)[:60]  # bits of a whole number
        rows = Pattern.bits({name: masks[name] for name in features})
        known, counts = np.unique(rows, return_counts=True)
        return Pattern(features, known, counts / rows.size)

    @staticmethod
    def bits(masks: Mapping[str, Array]) -> Array:
        out = sum(mask.astype(np.int64) << i for i, mask in enumerate(masks.values()))
        return np.asarray(out)

    def rarity(self, masks: Mapping[str, Array]) -> Floats:
        """−log of the training frequency of each step's combination."""
        bits = self.bits({name: masks[name] for name in self.features})
        place = np.minimum(np.searchsorted(self.known, bits), len(self.known) - 1)
        frequency = np.where(self.known[place] == bits, self.frequency[place], 0.0)
        return -np.log(frequency + 1e-6)


class StayStatistics:
    """The table, (N, F), and what its columns are."""

    def __init__(self, train: Cohort, seed: int = 0) -> None:
        self.schema = train.schema.generated()
        temporal = {
            feature.name: np.asarray(train.values(feature.name), np.float64) for feature in self.schema.temporal
        }
        numbers = {f.name: temporal[f.name] for f in self.schema.temporal if not f.discrete}
        self.lattices = {name: lattices(values[~np.isnan(values)]) for name, values in numbers.items()}
        whose = blocks(train)
        self.seed, self.stay_id = seed, train.stay_id
        self.half = stream("evaluation", seed, HALVES).permutation(whose.max() + 1)[whose] % 2  # (N,), 0 or 1
        self.occurring = {
            name: [Occurring.fit(values[self.half == half], whose[self.half == half]) for half in (0, 1)]
            for name, values in numbers.items()
        }
        self.relations: list[ExactRelation] = exact_relations(numbers, stream("evaluation", seed, SAMPLE))
        self.orders = orders(numbers, {name: self.schema[name].unit for name in numbers})
        self.regressions = _regressions(numbers)
        self.masks = Pattern.fit({name: ~np.isnan(values) for name, values in temporal.items()}) if temporal else None
        together = {
            pair: int((~np.isnan(temporal[pair[0]] + temporal[pair[1]])).sum()) for pair in combinations(temporal, 2)
        }
        self.pairs = sorted(together, key=lambda pair: -together[pair])[:MOST_PAIRS]
        few = train.take(np.arange(min(2, len(train))))
        self.statistics = [statistic for statistic, _ in self._columns(few, np.zeros(2))]

    def table(self, cohort: Cohort, *, training: bool = False) -> Floats:
        """One row a stay; `training` says that the stays are among the training stays."""
        if training:
            order = np.argsort(self.stay_id)
            asked = 1 - self.half[order[np.searchsorted(self.stay_id[order], cohort.stay_id)]]
        else:
            asked = stream("evaluation", self.seed, HALVES, 1).permutation(len(cohort)) % 2
        return np.stack([values for _, values in self._columns(cohort, asked)], axis=1)

    def of_group(self, group: str) -> list[int]:
        return [i for i, statistic in enumerate(self.statistics) if statistic.group == group]

    def _columns(self, cohort: Cohort, asked: Array) -> Iterator[Column]:
        """All columns; `asked` is which half of the training patients each stay is looked up in."""
        steps = {feature.name: Steps(cohort.values(feature.name)) for feature in self.schema.temporal}
        for feature in self.schema.temporal:
            yield from _measured(feature.name, steps[feature.name])
            if feature.discrete:
                yield from _classes(feature, steps[feature.name])
            else:
                yield from _levels(feature.name, steps[feature.name])
                yield from _course(feature.name, steps[feature.name])
                yield from self._digits(feature.name, steps[feature.name], asked)
        if self.masks is not None:
            yield from self._together(steps)
        yield from self._relations(steps)
        for a, b in self.pairs:
            yield from _correlations(a, b, steps[a], steps[b])
        for feature in self.schema.static:
            yield Statistic(STATIC, feature.name), np.asarray(cohort.values(feature.name), np.float64)

    def _digits(self, name: str, steps: Steps, asked: Array) -> Iterator[Column]:
        changes, known = steps.changes
        same = known & (changes == 0)
        yield Statistic(DIGITS, f"{name}: fraction of values that repeat the last one"), mean(same, known)
        yield Statistic(DIGITS, f"{name}: longest run of one value"), longest_run(same)
        ranked = steps.ranked
        new = (np.diff(ranked, axis=1) > 0).sum(axis=1) + 1.0
        yield Statistic(DIGITS, f"{name}: distinct values"), np.where(steps.count > 0, new, np.nan)
        yield Statistic(DIGITS, f"{name}: distinct values per measurement"), divided(new, steps.count)
        for lattice in self.lattices[name]:
            words = f"{name}: fraction of {WORDS[lattice]}"
            yield Statistic(DIGITS, words), mean(on_lattice(steps.values, lattice), steps.observed)
        either = [occurring.patients_with(steps.values) for occurring in self.occurring[name]]
        patients = np.where(asked[: len(steps.values), None] == 1, either[1], either[0])
        words = f"{name}: fraction of values that do not occur in training"
        yield Statistic(DIGITS, words), mean(patients == 0, steps.observed)
        words = f"{name}: how common its values are (mean log of training patients)"
        yield Statistic(DIGITS, words), mean(np.log1p(patients), steps.observed)

    def _together(self, steps: Mapping[str, Steps]) -> Iterator[Column]:
        assert self.masks is not None
        masks = {name: one.observed for name, one in steps.items()}
        whole = np.ones_like(next(iter(masks.values())))
        count = np.sum([mask.astype(np.float64) for mask in masks.values()], axis=0)
        rarity = self.masks.rarity(masks)
        yield Statistic(MISSING, "features measured per step, mean"), mean(count, whole)
        yield Statistic(MISSING, "features measured per step, SD"), deviation(count, whole)
        yield Statistic(MISSING, "rarity of what is measured together, mean"), mean(rarity, whole)
        yield Statistic(MISSING, "rarity of what is measured together, largest"), rarity.max(axis=1)
        for a, b in self.pairs:
            either, both = masks[a] | masks[b], masks[a] & masks[b]
            words = f"{a} and {b}: fraction of measurements taken together"
            yield Statistic(MISSING, words), divided(both.sum(axis=1), either.sum(axis=1))

    def _relations(self, steps: Mapping[str, Steps]) -> Iterator[Column]:
        values = {name: one.values for name, one in steps.items()}
        for relation in self.relations:
            residual = relation.residual(values)
            known = ~np.isnan(residual)
            holds = known & (np.abs(residual) <= relation.tolerance)
            yield Statistic(RELATIONS, f"fraction of {relation.words}"), mean(holds, known)
            yield Statistic(RELATIONS, f"{relation.words}: mean difference"), mean(residual, known)
            yield Statistic(RELATIONS, f"{relation.words}: mean distance"), mean(np.abs(residual), known)
        for high, low in self.orders:
            difference = values[high] - values[low]
            known = ~np.isnan(difference)
            yield Statistic(RELATIONS, f"fraction of {high} below {low}"), mean(known & (difference < 0), known)
        for target, (others, weights) in self.regressions.items():
            residual = values[target] - _predicted(values, others, weights)
            known = ~np.isnan(residual)
            yield Statistic(RELATIONS, f"{target} given the other features: mean residual"), mean(residual, known)
            yield (
                Statistic(RELATIONS, f"{target} given the other features: SD of residuals"),
                deviation(residual, known),
            )


def _measured(name: str, steps: Steps) -> Iterator[Column]:
    measured, length = steps.observed, steps.values.shape[1]
    gaps, known = steps.gaps
    follows = measured[:, 1:] & measured[:, :-1]
    none = steps.count == 0
    yield Statistic(MISSING, f"{name}: measurements"), steps.count.astype(np.float64)
    yield Statistic(MISSING, f"{name}: first measurement"), np.where(none, np.nan, measured.argmax(axis=1))
    last = length - 1 - measured[:, ::-1].argmax(axis=1)
    yield Statistic(MISSING, f"{name}: last measurement"), np.where(none, np.nan, last)
    yield Statistic(MISSING, f"{name}: longest gap"), longest_run(~measured)
    yield Statistic(MISSING, f"{name}: SD of gaps"), deviation(gaps, known)
    yield Statistic(MISSING, f"{name}: most frequent gap"), _most_frequent(gaps, known)
    again = divided(follows.sum(axis=1), measured[:, :-1].sum(axis=1))
    yield Statistic(MISSING, f"{name}: fraction measured again at the next step"), again


def _most_frequent(gaps: Floats, known: Array, longest: int = 12) -> Floats:
    counts = np.stack([(known & (gaps == length)).sum(axis=1) for length in range(1, longest + 1)], axis=1)
    return np.where(counts.any(axis=1), counts.argmax(axis=1) + 1.0, np.nan)


def _classes(feature: Feature, steps: Steps) -> Iterator[Column]:
    changes, known = steps.changes
    for level, words in enumerate(feature.classes):
        yield Statistic(LEVELS, f"{feature.name}: fraction of {words}"), mean(steps.values == level, steps.observed)
    changed = known & (changes != 0)
    yield Statistic(COURSE, f"{feature.name}: fraction of values unlike the last one"), mean(changed, known)
    yield Statistic(COURSE, f"{feature.name}: longest run of one value"), longest_run(known & ~changed)


def _levels(name: str, steps: Steps) -> Iterator[Column]:
    values, measured, ranked = steps.values, steps.observed, steps.ranked
    middle, spread = mean(values, measured), deviation(values, measured)
    scaled = divided(np.where(measured, values - np.nan_to_num(middle)[:, None], 0.0).T, np.nan_to_num(spread)).T
    yield Statistic(LEVELS, f"{name}: mean"), middle
    yield Statistic(LEVELS, f"{name}: SD"), spread
    yield Statistic(LEVELS, f"{name}: least"), ranked[:, 0]
    yield Statistic(LEVELS, f"{name}: greatest"), _picked(ranked, _last(steps.count))
    yield Statistic(LEVELS, f"{name}: median"), _picked(ranked, _last(steps.count) // 2)
    yield Statistic(LEVELS, f"{name}: skewness"), mean(np.nan_to_num(scaled) ** 3, measured, least=3)
    yield Statistic(LEVELS, f"{name}: first value"), steps.packed[:, 0]
    yield Statistic(LEVELS, f"{name}: last value"), _picked(steps.packed, _last(steps.count))


def _last(count: Array) -> Array:
    """Where the last measured value is; of none, the first place, which is NaN."""
    return np.asarray(np.maximum(count - 1, 0))


def _picked(values: Floats, place: Array) -> Floats:
    return np.take_along_axis(values, place[:, None], 1)[:, 0]


def _course(name: str, steps: Steps) -> Iterator[Column]:
    changes, known = steps.changes
    size = np.abs(changes)
    centred = np.where(
        steps.inside, np.nan_to_num(steps.packed) - np.nan_to_num(mean(steps.packed, steps.inside))[:, None], 0.0
    )
    square = (centred**2).sum(axis=1)
    enough = (steps.count >= 4) & (square > 0)
    yield Statistic(COURSE, f"{name}: mean change, up or down"), mean(size, known)
    yield Statistic(COURSE, f"{name}: SD of changes"), deviation(changes, known)
    yield Statistic(COURSE, f"{name}: greatest change"), np.where(known, size, 0.0).max(axis=1, initial=0.0)
    for lag in (1, 2):
        product = (centred[:, lag:] * centred[:, :-lag]).sum(axis=1)
        yield Statistic(COURSE, f"{name}: autocorrelation, lag {lag}"), divided(product, square, enough)
    second, both = np.diff(changes, axis=1), known[:, 1:]
    yield Statistic(COURSE, f"{name}: mean change of change"), mean(np.abs(second), both)
    turns = both & (changes[:, 1:] * changes[:, :-1] < 0)
    yield Statistic(COURSE, f"{name}: fraction of turns"), mean(turns, both)
    yield (
        Statistic(COURSE, f"{name}: correlation with time"),
        correlation(steps.packed, steps.when.astype(np.float64), steps.inside),
    )


def _correlations(a: str, b: str, one: Steps, other: Steps) -> Iterator[Column]:
    both = one.observed & other.observed
    yield Statistic(CORRELATIONS, f"{a} and {b}: correlation"), correlation(one.values, other.values, both)
    consecutive = both[:, 1:] & both[:, :-1]
    x, y = (np.diff(np.nan_to_num(steps.values), axis=1) for steps in (one, other))
    yield Statistic(CORRELATIONS, f"{a} and {b}: correlation of changes"), correlation(x, y, consecutive)


Regressions = dict[str, tuple[tuple[str, ...], Floats]]


def _regressions(numbers: Mapping[str, Floats]) -> Regressions:
    """Each feature by those that are measured with it in at least half of its steps: names, weights and intercept."""
    found: Regressions = {}
    for target, values in numbers.items():
        known = ~np.isnan(values)
        others = tuple(
            name
            for name in numbers
            if name != target and (known & ~np.isnan(numbers[name])).sum() >= known.sum() / 2 > 0
        )
        rows = known & ~np.any([np.isnan(numbers[name]) for name in others], axis=0) if others else known & False
        if rows.sum() < 100:
            continue
        inputs = np.stack([numbers[name][rows] for name in others] + [np.ones(int(rows.sum()))], axis=1)
        found[target] = others, np.linalg.lstsq(inputs, values[rows], rcond=None)[0]
    return found


def _predicted(values: Mapping[str, Floats], others: tuple[str, ...], weights: Floats) -> Floats:
    terms = [weight * values[name] for weight, name in zip(weights[:-1], others, strict=True)]
    return np.asarray(np.sum(terms, axis=0) + weights[-1])
