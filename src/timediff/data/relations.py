"""Relations between features that were measured at the same step, as training stays show them.

- Exact ones, such as mean pressure = (systolic + 2 diastolic) / 3: a relation that holds in more rows than chance and
  smoothness explain.
- Order: one feature that hardly ever exceeds another of the same unit.
- Approximate ones: what a linear regression on the other features leaves over.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from timediff.data.arrays import Floats
from timediff.data.lattices import NEARLY_ALL, ROUNDED, lattices, on_lattice

SAME = "{a}"
FORMS: Mapping[str, Callable[[Floats, Floats], Floats]] = {
    SAME: lambda a, b: a,
    "{a} + {b}": lambda a, b: a + b,
    "the mean of {a} and {b}": lambda a, b: (a + b) / 2,
    "({a} + 2 · {b}) / 3": lambda a, b: (a + 2 * b) / 3,
    "{a} · {b}": lambda a, b: a * b,
    "{a} / {b}": lambda a, b: np.divide(a, b, out=np.full_like(a, np.nan), where=b != 0),
    "100 · {a} / {b}": lambda a, b: 100 * np.divide(a, b, out=np.full_like(a, np.nan), where=b != 0),
}
ALIKE = ("{a} + {b}", "the mean of {a} and {b}", "{a} · {b}")  # the same with a and b exchanged
ROWS = 20_000  # training rows that are looked at
FEWEST = 100  # rows with all features of a relation
SOME = 0.02  # fraction of rows that fulfil an exact relation
PEAK = 5.0  # and times as many as nearby residuals would give
NEARBY = 10.0  # tolerances that count as nearby
MOST_FEATURES = 10  # continuous ones, the most often measured, among which relations of three are looked for
SELDOM = 0.05  # an order holds but for so many rows

Columns = Mapping[str, Floats]  # features' values, arrays of one shape


@dataclass(frozen=True)
class ExactRelation:
    """target = form(a, b), within a tolerance."""

    target: str
    form: str
    a: str
    b: str
    tolerance: float

    @property
    def words(self) -> str:
        return f"{self.target} = {self.form.format(a=self.a, b=self.b)}"

    @property
    def features(self) -> tuple[str, ...]:
        return (self.target, self.a) if self.form == SAME else (self.target, self.a, self.b)

    def residual(self, columns: Columns) -> Floats:
        """What the target has more; NaN where something was not measured."""
        return columns[self.target] - self.of(columns)

    def of(self, columns: Columns) -> Floats:
        """What the target should be."""
        return FORMS[self.form](columns[self.a], columns[self.b])


def exact_relations(columns: Columns, rng: np.random.Generator) -> list[ExactRelation]:
    """The exact relations of training rows, the most frequent first."""
    rows = _sampled(columns, rng)
    tolerances = {name: _tolerance(values) for name, values in rows.items()}
    found = [(_holds(relation, rows), relation) for relation in _candidates(tolerances)]
    kept: dict[frozenset[str], ExactRelation] = {}  # of a relation and its inverse, one is enough
    for fraction, relation in sorted(found, key=lambda one: -one[0]):
        if fraction > 0:
            kept.setdefault(frozenset(relation.features), relation)
    return list(kept.values())


def _candidates(tolerances: Mapping[str, float]) -> Iterator[ExactRelation]:
    for target, a in permutations(tolerances, 2):
        yield ExactRelation(target, SAME, a, a, tolerances[target])
    for target, a, b in permutations(list(tolerances)[:MOST_FEATURES], 3):
        for form in FORMS:
            if form != SAME and not (form in ALIKE and a > b):
                yield ExactRelation(target, form, a, b, tolerances[target])


def orders(columns: Columns, units: Mapping[str, str | None]) -> list[tuple[str, str]]:
    """Pairs (high, low) of one unit of which the first is hardly ever below the second."""
    found = []
    for high, low in permutations(columns, 2):
        if units[high] is None or units[high] != units[low]:
            continue
        difference = (columns[high] - columns[low]).ravel()
        known = difference[~np.isnan(difference)]
        if len(known) >= FEWEST and (known < 0).mean() <= SELDOM:
            found.append((high, low))
    return found


def _sampled(columns: Columns, rng: np.random.Generator) -> Columns:
    """Some steps of training stays; the features that are measured most often come first."""
    often = sorted(columns, key=lambda name: -int((~np.isnan(columns[name])).sum()))
    flat = {name: columns[name].ravel() for name in often}
    size = next((len(values) for values in flat.values()), 0)
    chosen = rng.choice(size, ROWS, replace=False) if size > ROWS else np.arange(size)
    return {name: values[chosen] for name, values in flat.items()}


def _tolerance(values: Floats) -> float:
    """Half of the step of the lattice that nearly all values keep to, as it is recorded; of none, a millionth of their
    deviation.
    """
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return 0.0
    finest = lattices(known)[-1:]
    if finest and on_lattice(known, finest[0]).mean() >= NEARLY_ALL:
        return 0.51 * (0.01 if finest[0] in ROUNDED else finest[0])
    return 1e-6 * float(known.std())


def _holds(relation: ExactRelation, rows: Columns) -> float:
    """The fraction of rows that fulfil it; 0 where smoothness alone would explain as many."""
    residual = np.abs(relation.residual(rows))
    known = residual[~np.isnan(residual)]
    if len(known) < FEWEST or relation.tolerance == 0:
        return 0.0
    within = float((known <= relation.tolerance).mean())
    nearby = float((known <= NEARBY * relation.tolerance).mean()) / NEARBY
    return within if within >= SOME and within >= PEAK * nearby else 0.0
