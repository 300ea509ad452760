"""Membership inference risk: an attacker guesses by distances which real stays were used for training."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats
from timediff.evaluation.case import Measurement
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, mean_and_std, unavailable, with_floors
from timediff.evaluation.statistics.auc import Ranked
from timediff.evaluation.statistics.bootstrap import Counts, bootstrap, interval, resample
from timediff.evaluation.statistics.neighbour_sets import (
    BOOTSTRAP,
    NO_FLOOR,
    RESAMPLES,
    SUBSET,
    Distances,
    Parts,
    StayRows,
    members,
    rounded,
    too_few,
)
from timediff.runtime.seeding import stream

NUMBERS = ("f1", "tpr", "fpr", "auc", "no_leak_f1")


@metric(
    "mir",
    "private",
    title="Guessing who was in the training data",
    sentence="A simulated attacker holds real stays and, by how close each is to the synthetic ones, guesses whether "
    "it was used for training. An average over distances: it decides nothing.",
    numbers={
        "f1": Meaning("attack's F1", "Success of the attacker as the paper counts it (MIR).", "as without a leak"),
        "no_leak_f1": Meaning(
            "F1 without a leak", "What the same number of alarms gives if they are raised blindly: the yardstick."
        ),
        "tpr": Meaning(
            "members called members",
            "Fraction of training stays that the attacker takes for such.",
            "as for unseen stays",
        ),
        "fpr": Meaning(
            "others called members",
            "Fraction of unseen stays that the attacker takes for training stays: the yardstick.",
        ),
        "auc": Meaning(
            "attack's AUC",
            "How often the attacker finds the training stay in a pair with an unseen one.",
            "0.5",
        ),
    },
    cost=Cost(0.5, 0.1),
)
def measure(given: Measurement) -> list[Score]:
    settings, view = given.settings, given.case.scaled("minmax")
    stays = (StayRows.of(one, view) for one in (given.train, given.test, given.cohort))
    apart, paper = given.case.apart, settings.protocol == "paper"
    scores = mir(
        *stays,
        apart=apart,
        threshold=settings.mir_threshold,
        seed=settings.seed,
        repetitions=settings.repetitions if paper else 1,
        equal=paper,
        device=given.device,
    )
    return scores if apart else [replace(score, note=score.note or NO_FLOOR) for score in scores]


def mir(
    train: Array | StayRows,
    test: Array | StayRows,
    synthetic: Array | StayRows,
    *,
    apart: Parts | None = None,
    threshold: float = 0.08,
    seed: int = 0,
    repetitions: int = 1,
    equal: bool = False,
    device: str = "cpu",
) -> list[Score]:
    """Membership inference risk (Liu et al. 2019; the paper's appendix), on rows scaled to [0, 1] by the caller.

    The attack calls a stay a member if its squared distance to the nearest synthetic stay, scaled to [0, 1] within
    its set, is at most `threshold`. That scaling uses who is a member; "auc" does without it: no threshold, raw
    distances. "no_leak_f1" is the F1 of an attack with as many alarms, as many among members as among others.

    `apart` are two parts of the training stays (`Case.apart`). For the floor the attacker guesses who is in the first,
    and the second stands in for the synthetic stays; the other sets are cut to their sizes. Without, there is no floor.
    If `equal`, the synthetic stays are no more than those of whom is guessed. Each repetition cuts anew what is cut.
    """
    train, test, synthetic = map(StayRows.each, (train, test, synthetic))
    if why := too_few(train, test, synthetic):
        return [unavailable("mir", what, why) for what in NUMBERS]
    first, second = (train, synthetic) if apart is None else (train.take(part) for part in apart)
    size, generated = min(len(first), len(test)), min(len(second), len(synthetic))
    most_generated = min(generated, size) if equal else generated

    def scores(seen: StayRows, shown: StayRows) -> list[Score]:
        sets = ((seen, size), (test, size), (shown, most_generated))
        times = repetitions if any(len(stays) > most for stays, most in sets) else 1
        found = []
        for repetition in range(times):
            members, others, generated = (_cut(stays, most, seed, repetition) for stays, most in sets)
            found.append(_scores(members, others, generated, threshold, seed, device))
        return _averaged(found)

    if apart is None:
        return scores(train, synthetic)
    return with_floors(scores(members(train, apart[0]), synthetic), scores(first, second))


def _cut(stays: StayRows, size: int, seed: int, repetition: int) -> StayRows:
    if len(stays) <= size:
        return stays
    # Sets of one length in the same order: a cohort that is the training cohort is met stay by stay.
    key = (SUBSET, repetition) if repetition else (SUBSET,)
    return stays.take(stream("evaluation", seed, *key).permutation(len(stays))[:size])


def _averaged(several: list[list[Score]]) -> list[Score]:
    """The means over repetitions of values and bounds."""
    if len(several) == 1:
        return several[0]
    found = []
    for same in zip(*several, strict=True):
        mean, std = mean_and_std([score.value for score in same])
        low, high = (float(np.mean([getattr(score, name) for score in same])) for name in ("low", "high"))
        found.append(replace(same[0], value=mean, std=std, low=low, high=high))
    return found


def _scores(
    train: StayRows, test: StayRows, synthetic: StayRows, threshold: float, seed: int, device: str
) -> list[Score]:
    from timediff.evaluation.statistics.neighbours import nearest

    members, others = (rounded(nearest(stays.rows, synthetic.rows, device=device)) for stays in (train, test))
    attack = _Attack(members, others, threshold)
    rng = stream("evaluation", seed, BOOTSTRAP)
    values = attack.numbers(*(np.ones(len(rows), np.int64) for rows in (members, others)))
    bounds = bootstrap(lambda: attack.numbers(*(resample(stays.units, rng) for stays in (train, test))), RESAMPLES)
    return [
        Score("mir", what, float(value), n=len(train), low=low, high=high)
        for what, value, (low, high) in zip(NUMBERS, values, map(interval, bounds.T), strict=True)
    ]


class _Attack:
    """Who is called a member, and in which order stays are suspected."""

    def __init__(self, members: Distances, others: Distances, threshold: float) -> None:
        self.called = [_scaled(distances) <= threshold for distances in (members, others)]
        is_member: npt.NDArray[np.bool_] = np.arange(len(members) + len(others)) < len(members)
        self.ranked = Ranked(-np.concatenate([members, others]), is_member)

    def numbers(self, members: Counts, others: Counts) -> Floats:
        """The NUMBERS, each stay counted so many times; there are as many members as others."""
        tpr, fpr = (float(n @ called / n.sum()) for n, called in zip((members, others), self.called, strict=True))
        alarms = (tpr + fpr) / 2
        auc = self.ranked.auc(np.concatenate([members, others]))
        return np.array([2 * tpr / (tpr + fpr + 1), tpr, fpr, auc, alarms / (alarms + 0.5)])


def _scaled(distances: Distances) -> Floats:
    """Squared distances, to [0, 1] within their set; all 0 where they are all the same."""
    squares = distances.astype(np.float64) ** 2
    scaled: Floats = (squares - squares.min()) / (np.ptp(squares) or 1.0)
    return scaled
