"""Score: what every metric returns. One number, how sure it is, and what the same number is for real against real."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from timediff.data.arrays import Floats


@dataclass(frozen=True)
class Score:
    """One number of a metric. NaN = could not be computed, and `note` says why."""

    metric: str  # the metric's name in the registry, such as "discriminative"
    what: str  # which number of it, such as "auc"
    value: float  # the mean over repetitions
    classifier: str | None = None  # which one measured it, where several do: "paper", "strong", "random forest"
    feature: str | None = None  # where it is about one feature
    group: str | None = None  # where it is about some stays only, such as "sex = F"
    n: int = 0  # stays it was measured on
    std: Mapping[str, float] = field(default_factory=dict)  # standard deviation by what varied: {"classifier": 0.01}
    low: float = math.nan  # 95 % bootstrap interval, over patients where they are known
    high: float = math.nan
    floor: float = math.nan  # the same number, real against real
    floor_low: float = math.nan
    floor_high: float = math.nan
    note: str = ""  # what a reader must know of it

    def __eq__(self, other: object) -> bool:
        """Of all fields, where NaN equals NaN: from Python 3.13 on a dataclass with one would not equal itself."""
        if not isinstance(other, Score):
            return NotImplemented
        pairs = ((getattr(self, one.name), getattr(other, one.name)) for one in fields(self))
        return all(mine == its or (mine != mine and its != its) for mine, its in pairs)

    def with_floor(self, other: "Score") -> "Score":
        """This score, with `other`, the same number of real against real, as its floor."""
        return replace(self, floor=other.value, floor_low=other.low, floor_high=other.high)

    def excess(self) -> float:
        """How far it lies above what real stays give, their interval included."""
        floors = (self.floor_high, self.floor, 0.0)
        return self.value - next(floor for floor in floors if not math.isnan(floor))

    @property
    def key(self) -> tuple[str, str | None, str, str | None, str | None]:
        """What it is the score of, whatever was scored."""
        return self.metric, self.classifier, self.what, self.feature, self.group


def unavailable(
    metric: str,
    what: str,
    why: str,
    *,
    classifier: str | None = None,
    feature: str | None = None,
    group: str | None = None,
) -> Score:
    """A number that could not be computed, and why."""
    return Score(metric, what, math.nan, classifier=classifier, feature=feature, group=group, note=why)


def mean_and_std(values: Sequence[float] | Floats) -> tuple[float, dict[str, float]]:
    """The mean over repetitions and, of several, their standard deviation."""
    known = np.asarray(values, np.float64)
    std = {"classifier": float(known.std(ddof=1))} if len(known) > 1 else {}
    return float(known.mean()), std


def with_floors(scores: Sequence[Score], floors: Sequence[Score]) -> list[Score]:
    """Each score with the real-against-real score of the same key as its floor."""
    known = {floor.key: floor for floor in floors}
    return [score.with_floor(known[score.key]) if score.key in known else score for score in scores]


def combined(cohorts: Sequence[Sequence[Score]], worst: Callable[[Score], bool] = lambda score: False) -> list[Score]:
    """The scores of one generator's cohorts as one: their mean, and beside the classifiers' std that of the cohorts.

    A number that is `worst` is that of the cohort in which it is furthest above its floor.
    """
    if len(cohorts) == 1:
        return list(cohorts[0])
    by_key = [{score.key: score for score in scores} for scores in cohorts]
    every = [[scores[key] for scores in by_key if key in scores] for key in by_key[0]]
    return [_worst(several) if worst(several[0]) else _mean(several) for several in every]


def _worst(scores: Sequence[Score]) -> Score:
    known = [score for score in scores if not math.isnan(score.value)]
    return max(known or scores[:1], key=Score.excess)


def _mean(scores: Sequence[Score]) -> Score:
    known = [score for score in scores if score.value == score.value]
    if len(known) < 2:
        return known[0] if known else scores[0]
    within = [score.std["classifier"] for score in known if "classifier" in score.std]
    std = {"classifier": float(np.mean(within))} if within else {}
    std["cohort"] = float(np.std([score.value for score in known], ddof=1))
    value, low, high = (float(np.mean([getattr(s, name) for s in known])) for name in ("value", "low", "high"))
    return replace(known[0], std=std, value=value, low=low, high=high)
