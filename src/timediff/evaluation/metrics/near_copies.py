"""Near copies: synthetic stays that lie far closer to one training stay than to any other.

A stay that belongs to nobody has a nearest training stay that is hardly nearer than the second nearest; a copied stay,
however it was disturbed, has one that is. So the number of a stay is the ratio of those two distances, which asks
nothing of how dense the data are there, nor of how smooth a generator is. What ratios are usual is learnt from real
stays: held-out ones, and each training stay against the others.

Without copying, synthetic and real stays are exchangeable; how many of M synthetic stays have a ratio below the m-th
lowest of N real ones then has an exact distribution, whatever the ratios' own is (a negative hypergeometric one).
"""

import math
from dataclasses import dataclass

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.evaluation.case import Measurement
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.bootstrap import interval
from timediff.evaluation.statistics.neighbour_sets import BOOTSTRAP, RESAMPLES, too_few
from timediff.runtime.seeding import stream

FALSE_ALARMS = 0.001  # of a thousand cohorts without copies at most one is called a cohort with near copies
# The training stays among the real ones are of the set that they are compared with, so they are not quite exchangeable
# with fresh stays: in few dimensions (six) twice as many false alarms were counted as the distribution says.
LEVEL = FALSE_ALARMS / 2
LOWEST = 0.01  # of the real stays' ratios: only what is so unusual is looked at


@metric(
    "near_copies",
    "private",
    title="Near copies",
    sentence="Whether synthetic stays are training stays that were only disturbed a little. Such a stay lies much "
    "closer to one training stay than to the second nearest; real stays hardly ever do.",
    numbers={
        "share": Meaning(
            "near copies",
            "Fraction of synthetic stays that lie closer to one training stay than real stays do. Beside it what is "
            f"expected without copying, with its {1 - FALSE_ALARMS:.1%} interval: beyond that, stays were copied.",
            "as among real stays",
            worst=True,
        )
    },
    cost=Cost(0.5),
)
def measure(given: Measurement) -> list[Score]:
    rows = (given.case.strict_view.flat(one) for one in (given.train, given.test, given.cohort))
    return near_copies(*rows, seed=given.settings.seed, device=given.device)


def near_copies(train: Array, test: Array, synthetic: Array, *, seed: int = 0, device: str = "cpu") -> list[Score]:
    """The fraction of near copies; its floor is what chance gives, with an interval for FALSE_ALARMS."""
    if why := too_few(train, test, synthetic):
        return [unavailable("near_copies", "share", why)]
    distinct = np.unique(train, axis=0)  # a stay that is there twice would be its own second nearest
    if why := too_few(distinct, test, synthetic):
        return [unavailable("near_copies", "share", f"of different stays it {why}")]
    seen = _ratios(synthetic, distinct, device)
    real = [_ratios(test, distinct, device), _ratios(distinct, distinct, device, exclude_self=True)]
    found = most_telling(seen, np.concatenate(real))
    rng, stays = stream("evaluation", seed, BOOTSTRAP), len(synthetic)
    low, high = interval(rng.binomial(stays, found.count / stays, RESAMPLES) / stays)
    return [
        Score(
            "near_copies",
            "share",
            found.count / stays,
            n=stays,
            low=low,
            high=high,
            floor=found.expected / stays,
            floor_low=0.0,
            floor_high=found.most / stays,
            note=f"Up to {found.unseen:,} near copies among {stays:,} synthetic stays cannot be told from chance.",
        )
    ]


@dataclass(frozen=True)
class Unusual:
    """How many synthetic stays have a ratio that real stays hardly ever have."""

    count: int
    expected: float  # without copying
    most: int  # that chance explains
    unseen: int  # near copies that could hide in what chance explains, had all of them the lowest ratios
    chance: float  # of so many without copying


def most_telling(synthetic: Floats, real: Floats) -> Unusual:
    """By the threshold, of a few among the lowest ratios of real stays, below which most is found that chance is not.

    Few copies are best seen below the very lowest ratio, unless some real stays are near copies of each other.
    """
    ordered = np.sort(real)
    ranks = [1]
    while 2 * ranks[-1] <= max(4, LOWEST * len(real)):
        ranks.append(2 * ranks[-1])
    level = LEVEL / len(ranks)  # for each of several thresholds
    found = []
    for rank in ranks:
        count = int((synthetic < ordered[rank - 1]).sum())
        most = most_by_chance(rank, len(real), len(synthetic), level)
        chance = min(1.0, len(ranks) * tail(count, rank, len(real), len(synthetic)))
        found.append(Unusual(count, len(synthetic) * rank / (len(real) + 1), most, 0, chance))
    best = min(found, key=lambda one: (one.chance, one.most - one.count))
    return Unusual(best.count, best.expected, best.most, min(one.most for one in found), best.chance)


def tail(count: int, rank: int, real: int, synthetic: int) -> float:
    """The chance that at least `count` of the synthetic numbers lie below the `rank`-th lowest real one.

    That is: among the lowest count + rank − 1 of all numbers, fewer than `rank` are real; a hypergeometric sum.
    """
    drawn = count + rank - 1
    if count <= 0:
        return 1.0
    if count > synthetic:
        return 0.0
    logs = [
        _choose(real, j) + _choose(synthetic, drawn - j) - _choose(real + synthetic, drawn)
        for j in range(rank)
        if drawn - j <= synthetic
    ]
    return min(1.0, math.fsum(map(math.exp, logs)))


def most_by_chance(rank: int, real: int, synthetic: int, level: float) -> int:
    """The largest number that is not less likely than `level`."""
    low, high = 0, synthetic + 1  # tail(low) > level >= tail(high)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if tail(middle, rank, real, synthetic) > level else (low, middle)
    return low


def _choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def _ratios(rows: Array, train: Array, device: str, *, exclude_self: bool = False) -> Floats:
    """Distance to the nearest training row by that to the second nearest; exact copies are another metric's."""
    from timediff.evaluation.statistics.neighbours import nearest_few

    found = nearest_few(rows, train, 2, device=device, exclude_self=exclude_self)
    found = found[found[:, 0] > 0]
    ratios: Floats = found[:, 0] / found[:, 1]
    return ratios
