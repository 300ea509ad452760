"""Nearest-neighbour adversarial accuracy: do synthetic stays lie nearer to training stays than to unseen ones?"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.evaluation.case import Measurement
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, mean_and_std, unavailable, with_floors
from timediff.evaluation.statistics.bootstrap import bootstrap, interval, resample
from timediff.evaluation.statistics.neighbour_sets import (
    BOOTSTRAP,
    NO_FLOOR,
    RESAMPLES,
    SUBSET,
    Distances,
    Parts,
    Sets,
    StayRows,
    members,
    rounded,
    subset,
    too_few,
)
from timediff.runtime.seeding import stream

Flags = Mapping[str, Floats]  # what each stay adds to a fraction, by the set and what its neighbours are compared with
NUMBERS = ("aa_train", "aa_test", "nnaa", "nearer_training", "real_apart", "synthetic_apart")


@metric(
    "nnaa",
    "private",
    title="Nearest neighbours",
    sentence="Whether synthetic stays lie closer to the real stays that the generator was trained on than to real "
    "stays that it has never seen. If so, it has memorised; if not, single patients may be recognised all the same: an "
    "average over distances decides nothing.",
    numbers={
        "nearer_training": Meaning(
            "nearer to training",
            "Fraction of synthetic stays nearer to a training stay than to an unseen one.",
            "0.5",
        ),
        "nnaa": Meaning(
            "NNAA risk",
            "Difference of the two adversarial accuracies: what being in the training data changes.",
            "0; 0.5 is worst",
        ),
        "aa_train": Meaning(
            "adversarial accuracy, training",
            "How often the nearest neighbour tells synthetic from training stays; below 0.5 they lie too close.",
            "0.5 in both halves",
        ),
        "aa_test": Meaning(
            "adversarial accuracy, unseen",
            "The same with real stays that the generator has not seen: the mean of the two halves below.",
            "0.5 in both halves",
        ),
        "real_apart": Meaning(
            "real half",
            "Fraction of unseen real stays whose nearest neighbour is real and not synthetic.",
            "0.5",
        ),
        "synthetic_apart": Meaning(
            "synthetic half",
            "Fraction of synthetic stays whose nearest neighbour is synthetic and not an unseen real stay. Near 1: the "
            "same few stays again and again; near 0: they do not look real. The mean of both may be 0.5 all the same.",
            "0.5",
        ),
    },
    cost=Cost(0.5, 0.1),
)
def measure(given: Measurement) -> list[Score]:
    settings = given.settings
    stays = (StayRows.of(one, given.view) for one in (given.train, given.test, given.cohort))
    apart = given.case.apart
    scores = nnaa(*stays, apart=apart, seed=settings.seed, repetitions=settings.repetitions, device=given.device)
    return scores if apart else [replace(score, note=score.note or NO_FLOOR) for score in scores]


def nnaa(
    train: Array | StayRows,
    test: Array | StayRows,
    synthetic: Array | StayRows,
    *,
    apart: Parts | None = None,
    seed: int = 0,
    repetitions: int = 5,
    device: str = "cpu",
) -> list[Score]:
    """Adversarial accuracies (Yale et al. 2020; the paper's appendix), on sets of equal size.

    Each repetition takes other subsets of the sets that are larger than the smallest; the interval covers them too.
    `apart` are two parts of the training stays (`Case.apart`). For the floor the first are the training stays, and the
    second stand in for the synthetic ones; all sets are then as small as the smaller part. Without, there is no floor.
    """
    train, test, synthetic = map(StayRows.each, (train, test, synthetic))
    if why := too_few(train, test, synthetic):
        return [unavailable("nnaa", what, why) for what in NUMBERS]
    sets = {"train": train, "test": test, "synthetic": synthetic}
    if apart is None:
        return _scores(sets, min(map(len, sets.values())), seed, repetitions, device)
    floor = {"train": train.take(apart[0]), "test": test, "synthetic": train.take(apart[1])}
    sets["train"] = members(train, apart[0])
    size = min(map(len, [*sets.values(), *floor.values()]))
    return with_floors(*(_scores(one, size, seed, repetitions, device) for one in (sets, floor)))


def _scores(sets: Sets, size: int, seed: int, repetitions: int, device: str) -> list[Score]:
    indicators = _Indicators({name for name, stays in sets.items() if len(stays) == size}, device)
    subsets = list(_subsets(sets, size, seed, repetitions))
    flags = [indicators.of({name: stays.rows for name, stays in one.items()}) for one in subsets]
    values = np.abs([_accuracies(flag) for flag in flags])  # (repetitions, NUMBERS)
    rng, number = stream("evaluation", seed, BOOTSTRAP), iter(range(RESAMPLES))

    def resampled() -> Floats:
        which = next(number) % len(flags)
        counts = {name: resample(subsets[which][name].units, rng) for name in ("train", "test", "synthetic")}
        return _accuracies(flags[which], counts)

    bounds = dict(zip(NUMBERS, map(interval, bootstrap(resampled, RESAMPLES).T), strict=True))
    low, high = bounds["nnaa"]
    bounds["nnaa"] = max(0.0, low, -high), max(abs(low), abs(high))  # resampled with its sign, so that 0 can be in it
    scores = []
    for i, what in enumerate(NUMBERS):
        mean, std = mean_and_std(values[:, i])
        low, high = bounds[what]
        scores.append(Score("nnaa", what, mean, n=size, std=std, low=low, high=high))
    return scores


def _accuracies(flags: Flags, counts: Mapping[str, Array] | None = None) -> Floats:
    """The NUMBERS, that of "nnaa" with its sign; each stay of a set counted as often as `counts` says, or once."""
    rate = {
        key: float(flag.mean() if counts is None else _weighted(flag, counts[key.split()[0]]))
        for key, flag in flags.items()
    }
    aa_train = (rate["train"] + rate["synthetic train"]) / 2
    aa_test = (rate["test"] + rate["synthetic test"]) / 2
    halves = rate["test"], rate["synthetic test"]
    return np.array([aa_train, aa_test, aa_test - aa_train, rate["synthetic nearer"], *halves])


def _weighted(flag: Floats, counts: Array) -> float:
    return float(counts @ flag / counts.sum())


class _Indicators:
    """The indicators of the appendix's sums. Distances between sets that are `whole` in every subset are taken once."""

    def __init__(self, whole: Collection[str], device: str) -> None:
        self.whole, self.device = whole, device
        self.known: dict[tuple[str, str], tuple[Distances, Distances]] = {}

    def of(self, sets: Mapping[str, Array]) -> Flags:
        tt, ee, ss = (self._distances(sets, name, name)[0] for name in ("train", "test", "synthetic"))
        ts, st = self._distances(sets, "train", "synthetic")
        es, se = self._distances(sets, "test", "synthetic")
        return {
            "train": (ts > tt).astype(np.float64),
            "test": (es > ee).astype(np.float64),
            "synthetic train": (st > ss).astype(np.float64),
            "synthetic test": (se > ss).astype(np.float64),
            "synthetic nearer": (st < se) + 0.5 * (st == se),
        }

    def _distances(self, sets: Mapping[str, Array], a: str, b: str) -> tuple[Distances, Distances]:
        from timediff.evaluation.statistics.neighbours import nearest, nearest_both

        if (a, b) in self.known:
            return self.known[a, b]
        if a == b:
            own = rounded(nearest(sets[a], sets[a], exclude_self=True, device=self.device))
            pair = own, own
        else:
            forth, back = nearest_both(sets[a], sets[b], device=self.device)
            pair = rounded(forth), rounded(back)
        if a in self.whole and b in self.whole:
            self.known[a, b] = pair
        return pair


def _subsets(sets: Sets, size: int, seed: int, repetitions: int) -> Iterator[Sets]:
    """Subsets of that size; one is all there is where the sets are of that size already."""
    alike = all(len(stays) == size for stays in sets.values())
    for repetition in range(1 if alike else repetitions):
        # Sets of one size at the same positions: a cohort that is the training cohort is met stay by stay.
        yield {name: subset(one, size, stream("evaluation", seed, SUBSET, repetition)) for name, one in sets.items()}
