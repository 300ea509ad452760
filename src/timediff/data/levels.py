"""The values that a class of recording allows, and which of them a normal score stands for."""

import numpy as np

from timediff.data.arrays import Array, Floats, carried
from timediff.data.quantiles import BEYOND, Quantiles
from timediff.data.recording import Recording

MOST_POINTS = 100_000  # of a lattice that are listed; a finer one is reached by rounding
ALIKE, FREQUENT = 0.1, 0.25  # frequent is what has this fraction of the most frequent point so near in normal scores


class Levels:
    """The values of one class, as intervals of probability: what lies between them is divided as they are frequent."""

    def __init__(self, points: Floats, quantiles: Quantiles, step: float, holes: Floats | None = None) -> None:
        """`holes` are the points among these that belong to other classes: 80 and 90 among 81, 82, …"""
        low, high = quantiles.intervals(points, step)
        mass, middle = high - low, (low + high) / 2
        self.points, self.ends = points, np.cumsum(mass)
        # Some places stay where they are, and what lies between two of them is divided among the points there. These
        # places are the holes: a generator does not see how narrow they are, and what it puts into one is shared by all
        # points from there to the next, not by the two beside it.
        if holes is not None and len(holes):
            low, high = quantiles.intervals(holes, step)
            at, below = (low + high) / 2, np.concatenate([[0.0], self.ends])[np.searchsorted(points, holes)]
        else:  # or frequent points: a seldom one must not take all that is next to it
            frequent = mass >= FREQUENT * self._most_nearby(mass, quantiles)
            at, below = middle[frequent], (self.ends - mass / 2)[frequent]
        self.at = np.concatenate([[0.0], at, [1.0]])
        self.mass = np.concatenate([[0.0], below, self.ends[-1:]])

    def _most_nearby(self, mass: Floats, quantiles: Quantiles) -> Floats:
        group = np.floor(quantiles.encode(self.points) / ALIKE).astype(np.int64)
        group -= group[0]
        most = np.zeros(group[-1] + 1)
        np.maximum.at(most, group, mass)
        found: Floats = most[group]
        return found

    def middle(self, values: Floats) -> Floats:
        """The probability in the middle of what becomes the value, or the one nearest to it."""
        place = np.searchsorted((self.points[1:] + self.points[:-1]) / 2, values)
        start = np.where(place > 0, self.ends[place - 1], 0.0)
        found: Floats = np.interp((start + self.ends[place]) / 2, self.mass, self.at)
        return found

    def interval(self, values: Floats) -> tuple[Floats, Floats]:
        """The probabilities between which all becomes the value, or the one nearest to it; the outer ones are open."""
        place = np.searchsorted((self.points[1:] + self.points[:-1]) / 2, values)
        ends = np.interp(self.ends, self.mass, self.at)
        low = np.where(place > 0, ends[place - 1], 0.0)
        return low, np.where(place < len(self.points) - 1, ends[place], 1.0)

    def nearest_two(self, probability: Floats) -> tuple[Floats, Floats]:
        """The value at each probability; and the one at its mirror image in the nearer end of that value's interval."""
        mass = np.interp(probability, self.at, self.mass)
        place = self._place(mass)
        start, end = np.where(place > 0, self.ends[place - 1], 0.0), self.ends[place]
        upper = (mass - start >= end - mass) & (place < len(self.points) - 1) | (place == 0)
        mirrored = np.where(upper, 2 * end - mass, 2 * start - mass)
        other = np.where(
            upper, np.maximum(self._place(mirrored), place + 1), np.minimum(self._place(mirrored), place - 1)
        )
        return self.points[place], self.points[np.clip(other, 0, len(self.points) - 1)]

    def _place(self, mass: Floats) -> Array:
        return np.minimum(np.searchsorted(self.ends, mass, side="right"), len(self.points) - 1)


class ClassLevels:
    """The values of each class of a feature."""

    def __init__(self, recording: Recording, quantiles: Quantiles) -> None:
        self.recording, self.quantiles = recording, quantiles
        self.levels = [self._of(i) for i in range(len(recording.lattices))]

    def encode(self, values: Floats, classes: Array) -> Floats:
        """Normal scores that `nearest_two` brings back; of a repeat that of what it repeats."""
        scores = self.quantiles.encode(values)
        for i, levels in enumerate(self.levels):
            if levels is not None:
                own = classes == i
                scores[own] = self.quantiles.score(levels.middle(values[own]))
        again = np.isin(classes, [i for i, name in enumerate(self.recording.classes) if name == "repeat"])
        missing = np.isnan(values)
        return np.where(missing, np.nan, carried(np.where(missing | again, np.nan, scores)))

    def intervals(self, values: Floats, classes: Array) -> Floats:
        """Normal scores between which all becomes the same value of its class, (N, L, 2); of no level both are one."""
        low = high = self.encode(values, classes)
        for i, levels in enumerate(self.levels):
            if levels is not None:
                own = classes == i
                ends = [np.clip(self.quantiles.score(end), -BEYOND, BEYOND) for end in levels.interval(values[own])]
                low, high = low.copy(), high.copy()
                low[own], high[own] = ends
        return np.nan_to_num(np.stack([low, high], axis=-1))

    def nearest_two(self, scores: Floats, classes: Array) -> tuple[Floats, Floats]:
        """The value of each score in its class, and the next nearest."""
        probability, lattices = self.quantiles.probability(scores), self.recording.lattices
        free = self.quantiles.at(probability)
        first, second = free.copy(), free.copy()
        others = [i for i, name in enumerate(self.recording.classes) if name in ("repeat", "derived")]
        for value, i in self.recording.common_classes:
            first[classes == i] = second[classes == i] = value
        for i, (step, levels) in enumerate(zip(lattices, self.levels, strict=True)):
            wanted = classes == i
            if i == len(lattices) - 1:  # a repeat of nothing, or a relation of nothing, is as if of the finest lattice
                wanted |= np.isin(classes, others)
            if levels is None:
                multiple = free[wanted] / step
                middle = np.rint(multiple)
                side = np.where(multiple >= middle, 1, -1)
                first[wanted], second[wanted] = (self.recording.rounded(one * step) for one in (middle, middle + side))
            else:
                first[wanted], second[wanted] = levels.nearest_two(probability[wanted])
        return first, second

    def _of(self, i: int) -> Levels | None:
        """None of a lattice with too many points, or none."""
        step, low, high = self.recording.lattices[i], self.quantiles.value[0], self.quantiles.value[-1]
        if (high - low) / step > MOST_POINTS:
            return None
        points = np.unique(self.recording.rounded(np.arange(np.floor(low / step), np.ceil(high / step) + 1) * step))
        points = points[(points >= low) & (points <= high)]
        own = self.recording.on(points, i)
        return Levels(points[own], self.quantiles, step, points[~own]) if own.sum() > 1 else None
