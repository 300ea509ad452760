"""Score: what every metric returns. One number, how sure it is, and what the same number is for real against real."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from timediff.tables import Floats


@dataclass(frozen=True)
class Score:
    """One number of a metric. NaN = could not be computed, and `note` says why."""

    metric: str  # the family, such as "discriminative"; a name of `--only`
    what: str  # which number of it, such as "accuracy" or "auc"
    value: float  # the mean over repetitions
    judge: str | None = None  # who measured it, where several do: "paper", "strong", "random forest"
    feature: str | None = None  # where it is about one feature
    group: str | None = None  # where it is about some stays only, such as "sex = F"
    n: int = 0  # stays it was measured on
    spreads: Mapping[str, float] = field(default_factory=dict)  # standard deviation by what varied: {"judge": 0.01}
    low: float = math.nan  # 95 % bootstrap interval over stays
    high: float = math.nan
    floor: float = math.nan  # the same number, real against real
    floor_low: float = math.nan
    floor_high: float = math.nan
    note: str = ""  # what a reader must know of it

    def with_floor(self, other: "Score") -> "Score":
        """This score, with `other`, the same number of real against real, as its floor."""
        return replace(self, floor=other.value, floor_low=other.low, floor_high=other.high)

    @property
    def key(self) -> tuple[str, str | None, str, str | None, str | None]:
        """What it is the score of, whatever was scored."""
        return self.metric, self.judge, self.what, self.feature, self.group


def unavailable(metric: str, what: str, why: str, **about: str | None) -> Score:
    """A number that could not be computed, and why."""
    return Score(metric, what, math.nan, note=why, **about)  # type: ignore[arg-type]


def repeated(values: Sequence[float]) -> tuple[float, dict[str, float]]:
    """Mean over judge seeds, and their spread."""
    known = np.asarray(values, np.float64)
    spread = {"judge": float(known.std(ddof=1))} if len(known) > 1 else {}
    return float(known.mean()), spread


def interval(statistics: Floats, share: float = 0.95) -> tuple[float, float]:
    """The middle `share` of bootstrap statistics."""
    known = statistics[~np.isnan(statistics)]
    if len(known) == 0:
        return math.nan, math.nan
    low, high = np.quantile(known, [(1 - share) / 2, (1 + share) / 2])
    return float(low), float(high)


def with_floors(scores: Sequence[Score], floors: Sequence[Score]) -> list[Score]:
    """Each score with the real-against-real score of the same key as its floor."""
    known = {floor.key: floor for floor in floors}
    return [score.with_floor(known[score.key]) if score.key in known else score for score in scores]
