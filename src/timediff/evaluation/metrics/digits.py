"""Digits: on which lattices the values of a feature lie, which last digits they have, and whose.

People round. Most urine volumes are multiples of ten, temperatures have one decimal, and a mean pressure that was
calculated is a third. What a network writes is between them unless something puts it back.
"""

from collections.abc import Iterator
from functools import partial

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.lattices import THIRD, on_lattice
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature
from timediff.evaluation.figure_data import ClassFractions, FigureData, plain
from timediff.evaluation.metrics import differences
from timediff.evaluation.metrics.differences import Sample, apart, total_variation
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.resampling import Observations, Resampled, fractions

distance = partial(differences.distance, "clinical")
STEPS = (100.0, 50.0, 10.0, 5.0, 1.0, 0.5, THIRD, 0.1, 0.05, 0.01)
MOST = 0.75  # of the real values lie on a feature's own step
NO_STEP = f"fewer than {MOST:.0%} of its real values lie on one lattice"


class Lattices:
    """The lattices that values of a feature are looked for on, from coarse to fine."""

    def __init__(self, feature: Feature) -> None:
        own = () if feature.resolution is None else (feature.resolution,)
        self.steps = sorted({*STEPS, *own}, reverse=True)
        self.names = [f"multiple of {'1/3' if step == THIRD else f'{step:g}'}" for step in self.steps] + ["finer"]

    def coarsest(self, values: Floats) -> Array:
        """The place of the coarsest lattice on which each value lies; one past the last where it lies on none."""
        place = np.full(values.shape, len(self.steps))
        for i, step in reversed(list(enumerate(self.steps))):
            place[on_lattice(values, step)] = i
        return place

    def own(self, real: Floats) -> float | None:
        """The feature's step: of the lattices on which most real values lie, the coarsest."""
        return next((step for step in self.steps if step != THIRD and on_lattice(real, step).mean() >= MOST), None)


def last_digits(values: Floats, step: float) -> Array:
    """How many steps, modulo ten: of whole numbers the last digit. 10 = between the steps."""
    digit = np.abs(np.round(values / step)) % 10
    return np.where(on_lattice(values, step), digit, 10).astype(np.int64)


def scores(feature: Feature, real: Resampled, r: Observations, synthetic: Resampled, s: Observations) -> list[Score]:
    lattices, n, name = Lattices(feature), min(r.stays, s.stays), feature.name
    pair = ((real, r), (synthetic, s))
    ours, theirs = (
        fractions(one.tally(known.stay, lattices.coarsest(known.known), len(lattices.names))) for one, known in pair
    )
    found = [distance("lattice", total_variation(ours, theirs), n, feature=name)]
    step = lattices.own(r.known)
    if step is None:
        numbers = ("last_digit", "stay_lattice") if feature.scope == "temporal" else ("last_digit",)
        return found + [unavailable("clinical", what, NO_STEP, feature=name) for what in numbers]
    ours, theirs = (fractions(one.tally(known.stay, last_digits(known.known, step), 11)) for one, known in pair)
    found.append(distance("last_digit", total_variation(ours, theirs), n, feature=name))
    if feature.scope == "temporal":
        ks, _ = apart(real, _shares(r, step), synthetic, _shares(s, step))
        found.append(distance("stay_lattice", ks, n, feature=name))
    return found


def _shares(known: Observations, step: float) -> Sample:
    """The fraction of each stay's values that lie on the step."""
    values = np.bincount(known.stay, minlength=len(known.values))
    stays = np.flatnonzero(values)
    lying = np.bincount(known.stay, on_lattice(known.known, step), minlength=len(known.values))
    return Sample(lying[stays] / values[stays], stays)


def figures(feature: Feature, r: Observations, s: Observations) -> Iterator[FigureData]:
    """How frequent each lattice is, and each last digit."""
    lattices = Lattices(feature)
    ours, theirs = (Sample(lattices.coarsest(known.known), known.stay) for known in (r, s))
    title = f"{feature.name}: the coarsest lattice of each value"
    yield FigureData("digits", "digits", title, class_fractions(lattices.names, ours, theirs), feature.name)
    step = lattices.own(r.known)
    if step is not None:
        ours, theirs = (Sample(last_digits(known.known, step), known.stay) for known in (r, s))
        names = [f"…{digit}" if step == 1 else f"{digit} × {step:g}" for digit in range(10)]
        title = f"{feature.name}: last digit" + ("" if step == 1 else f", in steps of {step:g}")
        content = class_fractions([*names, f"no multiple of {step:g}"], ours, theirs)
        yield FigureData("digits", "digits", title, content, feature.name)


def class_fractions(names: list[str], real: Sample, synthetic: Sample) -> ClassFractions:
    """Fractions of classes; of those that one to nine real stays have, only the synthetic one.

    That nobody has a class is nobody's secret, and it is what an implausible synthetic value is seen by. Real fractions
    are of what is shown: a sum below one would tell of the others.
    """
    counts = np.stack([np.bincount(one.values, minlength=len(names)) for one in (real, synthetic)])
    stays = np.array([len(np.unique(real.stay[real.values == i])) for i in range(len(names))])
    rare = (stays > 0) & (stays < MIN_AGGREGATE)
    ours = np.where(rare, np.nan, counts[0] / max(1, counts[0][~rare].sum()))
    theirs = counts[1] / max(1, counts[1].sum())
    kept = counts.sum(axis=0) > 0
    shown = [name for name, there in zip(names, kept, strict=True) if there]
    return ClassFractions(shown, plain(ours[kept]), plain(theirs[kept]), others=False)
