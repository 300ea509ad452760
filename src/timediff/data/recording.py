"""How values were recorded, as a class a value, so that generated ones can be recorded likewise.

Mean pressures of an arterial line are whole numbers; those of a cuff are computed, and are thirds. A value may be the
last one charted again, or follow exactly from other features. A smooth generator blurs all of it. Here each measured
value belongs to a class: the coarsest lattice that it lies on, none, a repeat of the last value, or a relation. The
class stands in place of the mask, and what the generator makes of the value is brought to where its class allows it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.lattices import NEARLY_ALL, WORDS, on_lattice, telling_lattices
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.relations import FORMS, ExactRelation

if TYPE_CHECKING:
    from timediff.data.batch import Meaning
    from timediff.data.levels import ClassLevels

REPEATED = 0.005  # fraction of values that makes repeats worth a class
DERIVED = 0.1  # fraction of values that makes a relation worth a class
FEWEST_IN_STAY = 4  # values, all of which follow a relation by chance in hardly any stay
MOST_DECIMALS, MOST_DIGITS = 6, 6
COMMON, MOST_COMMON, FEW = 0.01, 16, 0.9  # values of this fraction each, so many at most, that are this much together
MISSING = "missing"


@dataclass(frozen=True)
class Recording:
    """The classes of one feature's values: its lattices, free values, repeats, derived ones, and missing."""

    lattices: tuple[float, ...]  # from coarse to fine; a value's class is the first that holds it
    free: bool  # whether values on no lattice have a class; without, they count as on the finest
    repeats: bool
    missing: bool
    decimals: int | None = None  # to which nearly all values are rounded,
    digits: int | None = None  # and how many of their digits count: 76.67, and 102.7
    derived: ExactRelation | None = None
    common: tuple[float, ...] = ()  # each a class of its own, where these few are nearly all there are

    @staticmethod
    def fit(values: Floats, derived: ExactRelation | None = None) -> "Recording":
        """Of a feature's training values (N, L), NaN = missing."""
        observed = values[~np.isnan(values)]
        decimals = _decimals(observed)
        digits = None if decimals is None else _digits(observed)
        base, chosen = telling_lattices(observed, decimals)
        common = () if derived else _common(observed)
        last = before(values)
        again = float(((values == last) & ~np.isin(values, common)).sum() / max(1, (~np.isnan(values + last)).sum()))
        return Recording(
            chosen, base is None, again >= REPEATED, len(observed) < values.size, decimals, digits, derived, common
        )

    @cached_property
    def classes(self) -> tuple[str, ...]:
        names = [WORDS[step] for step in self.lattices]
        flags = (self.free, "any number"), (self.repeats, "repeat"), (self.derived, "derived"), (self.missing, MISSING)
        return tuple(names + [name for there, name in flags if there] + [f"{value:g}" for value in self.common])

    @property
    def meanings(self) -> "tuple[Meaning, ...]":
        """What each class says of the value."""
        flags: list[tuple[bool, Meaning]] = [
            (self.repeats, "repeat"), (self.derived is not None, "derived"), (self.missing, "missing"),
        ]  # fmt: skip
        found: list[Meaning] = ["any"] * (len(self.lattices) + self.free)
        found += [meaning for there, meaning in flags if there]
        found += ["fixed"] * len(self.common)
        return tuple(found)

    @property
    def common_classes(self) -> tuple[tuple[float, int], ...]:
        """The values that are classes, and which."""
        return tuple(zip(self.common, range(len(self.classes) - len(self.common), len(self.classes)), strict=True))

    def problems(self, name: str, others: Mapping[str, "Recording | None"]) -> list[str]:
        """What `fit` cannot have given for feature `name`; `others` are those of all features."""
        found = list[str]()
        if any(step not in WORDS for step in self.lattices) or list(self.lattices) != sorted(self.lattices)[::-1]:
            found.append("its lattices are no known ones, from coarse to fine")
        if not (self.lattices or self.free):
            found.append("its values have neither a lattice nor a class of any number")
        if not (self.decimals is None or 0 <= self.decimals <= MOST_DECIMALS):
            found.append(f"its decimals are not 0 to {MOST_DECIMALS}")
        if not (self.digits is None or 1 <= self.digits <= MOST_DIGITS):
            found.append(f"its digits are not 1 to {MOST_DIGITS}")
        if len(self.common) > MOST_COMMON or any(a >= b for a, b in pairwise(self.common)):
            found.append(f"its common values are not at most {MOST_COMMON}, in ascending order")
        if self.derived and not self._computable(self.derived, name, others):
            found.append("the relation that it is derived by is none, or not of features that are recorded themselves")
        return found

    @staticmethod
    def _computable(derived: ExactRelation, name: str, others: Mapping[str, "Recording | None"]) -> bool:
        given = [others.get(derived.a), others.get(derived.b)]
        known = derived.target == name and derived.form in FORMS and derived.tolerance >= 0
        return known and all(one is not None and one.derived is None for one in given)

    def classify(self, values: Floats, columns: Mapping[str, Floats]) -> Array:
        """The class of each value (N, L); `columns` has all features' values."""
        found = np.full(values.shape, len(self.lattices) - (not self.free))
        for i in reversed(range(len(self.lattices))):
            found[on_lattice(values, self.lattices[i], self.decimals)] = i
        coarse, last = found == 0, before(values)
        if self.repeats:
            found[values == last] = self.classes.index("repeat")
        if self.derived:
            holds = self.follows(values, columns)
            # On the coarsest lattice a relation also holds by chance: there the nearest other value decides. Without
            # one, it is no chance if the relation holds throughout the stay.
            doubtful = holds & coarse & (len(self.classes) > 1 and len(self.lattices) + self.free > 1)
            found[holds & ~doubtful] = self.classes.index("derived")
            certain = ~np.isnan(values) & ~doubtful
            often = ~certain.any(axis=1) & (doubtful.sum(axis=1) >= FEWEST_IN_STAY)
            found[doubtful & (_nearest(holds, certain) | often[:, None])] = self.classes.index("derived")
        for value, i in self.common_classes:
            found[values == value] = i
        if self.missing:
            found[np.isnan(values)] = self.classes.index(MISSING)
        return found

    def recover(self, scores: Floats, classes: Array, levels: "ClassLevels", columns: Mapping[str, Floats]) -> Floats:
        """The values (N, L) of these normal scores and classes; `columns` has what derived ones follow from."""
        first, second = levels.nearest_two(scores, classes)
        derived = np.full(scores.shape, np.nan)
        if self.derived:
            derived = np.where(classes == self.classes.index("derived"), self.rounded(self.derived.of(columns)), np.nan)
        repeat = classes == (self.classes.index("repeat") if self.repeats else -1)
        missing = classes == (self.classes.index(MISSING) if self.missing else -1)
        common = classes >= len(self.classes) - len(self.common)
        values, last = np.empty_like(first), np.full(len(first), np.nan)
        for step in range(values.shape[1]):
            now = first[:, step]
            if self.repeats:  # what is no repeat differs from the last value
                now = np.where((now == last) & ~common[:, step], second[:, step], now)
                now = np.where(repeat[:, step] & ~np.isnan(last), last, now)
            now = np.where(np.isnan(derived[:, step]), now, derived[:, step])
            values[:, step] = np.where(missing[:, step], np.nan, now)
            last = np.where(missing[:, step], last, now)
        return values

    def on(self, values: Floats, i: int) -> Array:
        """Which values lie on lattice i, on no coarser one, and are no class of their own."""
        there = on_lattice(values, self.lattices[i], self.decimals)
        for coarser in self.lattices[:i]:
            there &= ~on_lattice(values, coarser, self.decimals)
        return there & ~np.isin(values, self.common)

    def follows(self, values: Floats, columns: Mapping[str, Floats]) -> Array:
        """Where a value is what its relation gives, rounded as it is recorded."""
        assert self.derived is not None
        given = self.rounded(self.derived.of(columns))
        tolerance = self.derived.tolerance if self.decimals is None else 1e-6
        with np.errstate(invalid="ignore"):
            return np.abs(given - values) <= tolerance

    def rounded(self, values: Floats) -> Floats:
        if self.decimals is None:
            return values
        rounded = np.round(values, self.decimals)
        return rounded if self.digits is None else significant(rounded, self.digits)


def _decimals(values: Floats) -> int | None:
    for decimals in range(MOST_DECIMALS + 1):
        if len(values) and (np.round(values, decimals) == values).mean() >= NEARLY_ALL:
            return decimals
    return None


def _common(values: Floats) -> tuple[float, ...]:
    """The values that a feature of few levels has, such as a score, or an oxygen fraction."""
    found, counts = np.unique(values, return_counts=True)
    often = counts >= max(COMMON * len(values), MIN_AGGREGATE)
    few = often.sum() <= MOST_COMMON and counts[often].sum() >= FEW * len(values) > 0
    return tuple(float(value) for value in found[often]) if few else ()


def _digits(values: Floats) -> int | None:
    """Significant digits that nearly all values keep to, where some have as many."""
    for digits in range(1, MOST_DIGITS + 1):
        if len(values) and (significant(values, digits) == values).mean() >= NEARLY_ALL:
            return digits
    return None


def significant(values: Floats, digits: int) -> Floats:
    """Rounded to so many significant digits; digits before the decimal point are kept."""
    with np.errstate(divide="ignore", invalid="ignore"):
        before_point = np.floor(np.log10(np.abs(values))) + 1
    decimals = np.clip(digits - np.nan_to_num(before_point, neginf=1.0), 0, MOST_DECIMALS)
    rounded = values.copy()
    for places in np.unique(decimals):
        here = decimals == places
        rounded[here] = np.round(values[here], int(places))
    return rounded


def before(values: Floats) -> Floats:
    """The value measured last before each step; NaN where there is none."""
    steps = np.arange(values.shape[1])
    place = np.maximum.accumulate(np.where(np.isnan(values), -1, steps), axis=1)
    place = np.concatenate([np.full((len(values), 1), -1), place[:, :-1]], axis=1)
    return np.where(place < 0, np.nan, np.take_along_axis(values, np.maximum(place, 0), axis=1))


def _nearest(what: Array, certain: Array) -> Array:
    """`what` at the nearest step of the stay at which it is certain, of two the earlier; False where there is none."""
    length = what.shape[1]
    steps, far = np.arange(length), 2 * length
    earlier = np.maximum.accumulate(np.where(certain, steps, -far), axis=1)
    later = np.minimum.accumulate(np.where(certain, steps, far)[:, ::-1], axis=1)[:, ::-1]
    place = np.where(steps - earlier <= later - steps, earlier, later)
    there = (place >= 0) & (place < length)
    return np.asarray(there & np.take_along_axis(what, np.clip(place, 0, length - 1), axis=1))


def derivations(columns: Mapping[str, Floats], relations: Sequence[ExactRelation]) -> dict[str, ExactRelation]:
    """Of each feature at most one relation, the most frequent, none of which needs what another one gives."""
    found: dict[str, ExactRelation] = {}
    for relation in relations:
        needed = {name for other in found.values() for name in other.features if name != other.target}
        free = relation.target not in needed and not {relation.a, relation.b} & set(found)
        if free and relation.target not in found and _worth(relation, columns):
            found[relation.target] = relation
    return found


def _worth(relation: ExactRelation, columns: Mapping[str, Floats]) -> bool:
    """Whether it gives many values, and not one and the same."""
    residual = np.abs(relation.residual(columns))
    known = ~np.isnan(residual)
    given = columns[relation.target][known & (residual <= relation.tolerance)]
    if len(given) < DERIVED * known.sum():
        return False
    return bool(np.unique(given, return_counts=True)[1].max() <= len(given) / 2)
