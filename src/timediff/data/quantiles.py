"""Quantiles: a continuous feature as a standard normal one, by its own distribution, and back to its own values.

Levels, values that many observations share (whole heart rates, an oxygen fraction of 0.4), come back exactly: each has
an interval of probability, is encoded as its middle, and whatever falls into the interval is decoded as the level.
Between levels the map is linear in probability.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from timediff.data.arrays import Array, Floats
from timediff.data.privacy_limits import MIN_AGGREGATE

BEYOND = 1000.0  # a normal score that stands for an open end
MOST = 1000  # knots besides levels; more would not be seen in the values


@dataclass(frozen=True)
class Quantiles:
    """Knots of the distribution: `value` at the probabilities `low` to `high`, the same for all but levels."""

    value: tuple[float, ...]  # ascending
    low: tuple[float, ...]
    high: tuple[float, ...]
    mean: float = 0.0  # of the normal scores of the training values
    sd: float = 1.0

    @staticmethod
    def fit(values: Floats) -> "Quantiles":
        """Of observed values, at least two different ones."""
        found, counts = np.unique(values, return_counts=True)
        pooled = _pooled(counts)
        ends = np.cumsum(counts)
        value, low, high = [], [], []
        for first, last in pairwise([*pooled, len(found)]):  # values first … last − 1 are one knot
            before, after = ends[first] - counts[first], ends[last - 1]
            extreme = first == 0 or last == len(found)
            if (
                after - before < MIN_AGGREGATE and not extreme
            ):  # too few to be kept: on the line between their neighbours
                continue
            alone = last - first == 1  # then to the bit
            span = (before, after) if alone and counts[first] >= MIN_AGGREGATE else ((before + after) / 2,) * 2
            value.append(float(found[first] if alone else np.average(found[first:last], weights=counts[first:last])))
            low.append(float(span[0] / ends[-1]))
            high.append(float(span[1] / ends[-1]))
        plain = Quantiles(tuple(value), tuple(low), tuple(high))
        scores = plain.encode(values)
        return Quantiles(plain.value, plain.low, plain.high, float(scores.mean()), float(scores.std()))

    def problems(self) -> list[str]:
        """What `fit` cannot have given."""
        if not 2 <= len(self.value) == len(self.low) == len(self.high):
            return ["its quantiles need as many values as probabilities, at least two"]
        found = []
        if any(a > b for a, b in pairwise(self.value)):
            found.append("its quantiles do not ascend")
        ends = [end for span in zip(self.low, self.high, strict=True) for end in span]
        if any(a > b for a, b in pairwise(ends)) or not 0 <= ends[0] <= ends[-1] <= 1:
            found.append("the probabilities of its quantiles do not ascend from 0 to 1")
        if self.sd <= 0:
            found.append("the standard deviation of its normal scores is not above 0")
        return found

    def encode(self, values: Floats) -> Floats:
        """Normal scores, standardised; what lies beyond the training values is as the extreme."""
        knots, low, high = (np.asarray(column) for column in (self.value, self.low, self.high))
        values = np.clip(values, knots[0], knots[-1])
        # Both ends of every level: between two knots the probability is linear.
        probability = np.interp(values, np.repeat(knots, 2), np.stack([low, high], axis=1).reshape(-1))
        at = np.clip(np.searchsorted(knots, values), 0, len(knots) - 1)
        levels = (knots[at] == values) & (high[at] > low[at])
        return self.score(np.where(levels, (low[at] + high[at]) / 2, probability))

    def interval(self, values: Floats) -> tuple[Floats, Floats]:
        """Between which normal scores each value is decoded; the outer ones are open, and no level is itself."""
        knots, low, high = (np.asarray(column) for column in (self.value, self.low, self.high))
        at, scores = np.clip(np.searchsorted(knots, values), 0, len(knots) - 1), self.encode(values)
        level = (knots[at] == values) & (high[at] > low[at])
        ends = [np.clip(self.score(np.clip(end[at], 0.0, 1.0)), -BEYOND, BEYOND) for end in (low, high)]
        return np.where(level, ends[0], scores), np.where(level, ends[1], scores)

    def score(self, probability: Floats) -> Floats:
        scores: Floats = torch.special.ndtri(torch.from_numpy(probability)).numpy()
        return (scores - self.mean) / self.sd

    def intervals(self, values: Floats, step: float) -> tuple[Floats, Floats]:
        """The probabilities that belong to each value, of a level or else of a `step` around it; never none at all."""
        knots, low, high = (np.asarray(column) for column in (self.value, self.low, self.high))
        after = np.clip(np.searchsorted(knots, values, side="right"), 1, len(knots) - 1)
        slope = (low[after] - high[after - 1]) / (knots[after] - knots[after - 1])
        at = np.interp(values, np.repeat(knots, 2), np.stack([low, high], axis=1).reshape(-1))
        half = np.maximum(slope * step / 2, 1e-12)
        place = np.clip(np.searchsorted(knots, values), 0, len(knots) - 1)
        level = (knots[place] == values) & (high[place] > low[place])
        return np.where(level, low[place], at - half), np.where(level, high[place], at + half)

    def decode(self, scores: Array) -> Floats:
        return self.at(self.probability(scores))

    def probability(self, scores: Array) -> Floats:
        normal = torch.from_numpy(np.asarray(scores, np.float64) * self.sd + self.mean)
        found: Floats = torch.special.ndtr(normal).numpy()
        return found

    def at(self, probability: Array) -> Floats:
        """The values at these probabilities."""
        knots, low, high = (np.asarray(column) for column in (self.value, self.low, self.high))
        values: Floats = np.interp(probability, np.stack([low, high], axis=1).reshape(-1), np.repeat(knots, 2))
        return values


def _pooled(counts: Array) -> list[int]:
    """Where each knot begins: at a level, at either extreme, or where enough other values have come together."""
    enough = max(MIN_AGGREGATE, int(counts[counts < MIN_AGGREGATE].sum()) // MOST)
    starts, gathered = [], 0
    for i, count in enumerate(counts):
        level = count >= MIN_AGGREGATE or i in (0, len(counts) - 1)
        if level or gathered == 0:
            starts.append(i)
        gathered = 0 if level else gathered + int(count)
        if gathered >= enough:
            gathered = 0
    return starts
