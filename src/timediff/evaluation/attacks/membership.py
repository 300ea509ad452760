"""What an attack proves: numbers from its scores and from who was trained on. None is about a single person."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from timediff.data.arrays import Array, Floats, Units
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.units import numbered, side_by_side
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.auc import Ranked
from timediff.evaluation.statistics.bootstrap import interval, resamples

METRIC = "audit"
RESAMPLES = 400
FALSE_ALARMS = (0.1, 0.01, 0.001)  # rates at which true positives are stated
LEVEL = 0.01  # an attack succeeds where chance alone does as well in less than one of a hundred audits
CONFIDENCE = 0.95  # of the bound on ε
TOP = 0.1  # of all candidates, at most, are among the first that are looked at together

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Truth:
    """Who was trained on: candidates in the order in which attacks see them."""

    member: Flags  # (N,)
    units: Units  # the patient of each; no patient is on both sides

    @staticmethod
    def of(trained: Units, others: Units) -> "Truth":
        """From the units of training stays, which come first, and of held-out ones."""
        member = np.repeat([True, False], [len(trained), len(others)])
        return Truth(member, side_by_side(trained, others))

    def only(self, kept: Flags) -> "Truth":
        return Truth(self.member[kept], numbered(self.units[kept]))

    @property
    def patients(self) -> tuple[int, int]:
        """Trained on, and not."""
        of_members = len(np.unique(self.units[self.member]))
        return of_members, len(np.unique(self.units)) - of_members

    def by_patient(self, scores: Floats) -> tuple[Floats, Flags]:
        """The highest score of each patient's stays, and whether it was trained on."""
        highest = np.full(int(self.units.max()) + 1, -np.inf)
        np.maximum.at(highest, self.units, scores)
        member = np.zeros(len(highest), dtype=bool)
        member[self.units] = self.member
        return highest, member


def membership_scores(name: str, scores: Floats, truth: Truth, rng: np.random.Generator) -> list[Score]:
    """AUC, true positives at low rates of false alarms, the chance of all this without a leak, and a bound on ε."""
    known = ~np.isnan(scores)
    scores, truth = scores[known], truth.only(known)
    members, others = truth.patients
    if min(members, others) < 2 * MIN_AGGREGATE:
        why = (
            f"it needs {2 * MIN_AGGREGATE} patients, or stretches of a series, of either kind; there are {members} and "
        )
        why += f"{others}"
        return [unavailable(METRIC, "auc", why, classifier=name)]
    ranked, rates = Ranked(scores, truth.member), Rates(scores, truth.member)
    counts = resamples(truth.units, RESAMPLES, rng)
    areas = np.array([ranked.auc(row) for row in counts])
    found = [_score(name, "auc", areas, len(scores))]
    for rate in FALSE_ALARMS:
        what = f"tpr_at_{rate:g}"
        if others * rate < 1:
            why = f"{others:,} patients that were not trained on are too few for a rate of {rate:.1%}"
            found.append(unavailable(METRIC, what, why, classifier=name))
        else:
            found.append(_score(name, what, np.array([rates.true_positives(rate, row) for row in counts]), len(scores)))
    found.append(Score(METRIC, "chance", chance(*truth.by_patient(scores)), classifier=name, n=members + others))
    found.append(Score(METRIC, "epsilon", epsilon(*truth.by_patient(scores), rng), classifier=name, n=members + others))
    return found


def _score(name: str, what: str, values: Floats, n: int, group: str | None = None) -> Score:
    """Of the candidates themselves, the first, and of their resamples."""
    low, high = interval(values[1:])
    return Score(METRIC, what, float(values[0]), classifier=name, n=n, low=low, high=high, group=group)


class Rates:
    """True positives at a rate of false alarms, by a threshold on the scores."""

    def __init__(self, scores: Floats, member: Flags) -> None:
        order = np.argsort(-scores, kind="stable")
        self.order, ordered = order, scores[order]
        self.member = member[order]
        self.last = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])  # of each value: a threshold ends there

    def true_positives(self, rate: float, weights: Array | None = None) -> float:
        weight = np.ones(len(self.order)) if weights is None else weights[self.order].astype(np.float64)
        hits, alarms = (np.cumsum(weight * kind)[self.last] for kind in (self.member, ~self.member))
        if hits[-1] == 0 or alarms[-1] == 0:
            return math.nan
        allowed = alarms <= rate * alarms[-1] + 1e-9
        return float(hits[allowed].max(initial=0.0) / hits[-1])


def chance(scores: Floats, member: Flags) -> float:
    """How likely it is that an attack does as well that knows nothing: the least of several exact tests, corrected.

    The rank sum of all, which sees a small shift of many; and the number of members among the 1, 2, 4 … first, which
    sees a few that are found with certainty. Ties count against the attack.
    """
    count = len(scores)
    order = np.lexsort((member, -scores))  # of equal scores those that were not trained on first
    hits = np.cumsum(member[order])
    first = [k for k in (2**i for i in range(1, 20)) if k <= max(8, TOP * count) and k < count]
    tails = [float(stats.hypergeom.sf(hits[k - 1] - 1, count, int(member.sum()), k)) for k in first]
    ranks = stats.mannwhitneyu(scores[member], scores[~member], alternative="greater")
    tests = [*tails, float(ranks.pvalue)]
    return min(1.0, len(tests) * min(tests))


def epsilon(scores: Floats, member: Flags, rng: np.random.Generator) -> float:
    """A lower bound on the ε of differential privacy that the model can have, by what the attack achieves.

    ε ≥ log(TPR / FPR) at any threshold (Kairouz et al. 2015). The threshold is chosen on one half of the patients; the
    rates are bounded on the other (Clopper and Pearson 1934), so that choosing does not flatter.
    """
    half = np.zeros(len(scores), dtype=bool)
    for kind in (member, ~member):
        half[rng.permutation(np.flatnonzero(kind))[: int(kind.sum()) // 2]] = True
    candidates = np.unique(np.quantile(scores[half], np.linspace(0, 1, 101)))
    best = max(candidates, key=lambda threshold: _bound(scores[half], member[half], threshold))
    return max(0.0, _bound(scores[~half], member[~half], best))


def _bound(scores: Floats, member: Flags, threshold: float) -> float:
    above = scores >= threshold
    found = -math.inf
    # Of those above the threshold members are too many, or of those below them the others.
    for positive, of, against in ((above, member, ~member), (~above, ~member, member)):
        hit, alarm = int((positive & of).sum()), int((positive & against).sum())
        low, _ = proportion(hit, int(of.sum()), CONFIDENCE)
        _, high = proportion(alarm, int(against.sum()), CONFIDENCE)
        if low > 0:
            found = max(found, math.log(low / high))
    return found


def proportion(count: int, of: int, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact interval of a rate (Clopper and Pearson 1934)."""
    left = (1 - confidence) / 2
    low = float(stats.beta.ppf(left, count, of - count + 1)) if count else 0.0
    high = float(stats.beta.ppf(1 - left, count + 1, of - count)) if count < of else 1.0
    return low, high


def group_scores(
    name: str, scores: Floats, truth: Truth, groups: dict[str, Flags], rng: np.random.Generator
) -> list[Score]:
    """AUC within each group of candidates; of a group with fewer than ten patients of either kind nothing is said."""
    found = []
    for group, inside in groups.items():
        kept = inside & ~np.isnan(scores)
        part = truth.only(kept)
        if len(part.member) == 0 or min(part.patients) < MIN_AGGREGATE:
            continue
        ranked = Ranked(scores[kept], part.member)
        areas = np.array([ranked.auc(row) for row in resamples(part.units, RESAMPLES, rng)])
        found.append(_score(name, "auc", areas, int(kept.sum()), group))
    return found


def inference_scores(name: str, right: Floats, truth: Truth, rng: np.random.Generator) -> list[Score]:
    """How often guesses are right about training stays and about others; the risk is what goes beyond the latter.

    `right` is (N, guesses), NaN where there was nothing to guess. risk = (r_train − r_control) / (1 − r_control).
    """
    members, others = truth.patients
    if min(members, others) < 2 * MIN_AGGREGATE or right.shape[1] == 0:
        why = f"there are {right.shape[1]} kinds of guesses about {members} and {others} patients"
        return [unavailable(METRIC, "risk", why, classifier=name)]
    known, hits = ~np.isnan(right), np.nan_to_num(right)
    per_stay, of_stay = hits.sum(axis=1), known.sum(axis=1)

    def rates(weight: Array) -> tuple[float, float]:
        training, others = (
            float((weight * per_stay)[kind].sum() / max((weight * of_stay)[kind].sum(), 1e-9))
            for kind in (truth.member, ~truth.member)
        )
        return training, others

    every = np.array([rates(row) for row in resamples(truth.units, RESAMPLES, rng)])
    risks = (every[:, 0] - every[:, 1]) / np.maximum(1 - every[:, 1], 1e-9)
    # The chance by the resamples: how often the difference would lie on the other side of nothing.
    spread = float(np.std(every[1:, 0] - every[1:, 1])) + 1e-12
    probability = float(stats.norm.sf((every[0, 0] - every[0, 1]) / spread))
    n = int(of_stay.sum())
    return [
        _score(name, "risk", risks, n),
        _score(name, "right_training", every[:, 0], n),
        _score(name, "right_others", every[:, 1], n),
        Score(METRIC, "chance", probability, classifier=name, n=members + others),
    ]


def description_scores(name: str, fits: Floats, truth: Truth, rng: np.random.Generator) -> list[Score]:
    """How many descriptions fit exactly one training stay, and how many exactly one of as many other stays."""
    members, others = (np.flatnonzero(kind) for kind in (truth.member, ~truth.member))
    size = min(len(members), len(others))
    if size < 2 * MIN_AGGREGATE or fits.shape[1] == 0:
        why = f"there are {fits.shape[1]} descriptions of {len(members)} and {len(others)} stays"
        return [unavailable(METRIC, "risk", why, classifier=name)]
    single = np.stack([
        fits[rng.permutation(of)[:size]].sum(axis=0) == 1 for of in (members, others)
    ]).astype(np.float64)  # fmt: skip
    counts = resamples(single.shape[1], RESAMPLES, rng)
    every = counts @ single.T / counts.sum(axis=1, keepdims=True)
    risks = (every[:, 0] - every[:, 1]) / np.maximum(1 - every[:, 1], 1e-9)
    # Of the descriptions that single out on one side alone, as many do on either (McNemar's exact test).
    apart = [int((single[i] > single[1 - i]).sum()) for i in (0, 1)]
    probability = float(stats.binom.sf(apart[0] - 1, sum(apart), 0.5)) if sum(apart) else 1.0
    return [
        _score(name, "risk", risks, single.shape[1]),
        _score(name, "right_training", every[:, 0], single.shape[1]),
        _score(name, "right_others", every[:, 1], single.shape[1]),
        Score(METRIC, "chance", probability, classifier=name, n=single.shape[1]),
    ]


def succeeded(scores: Sequence[Score], tried: int = 1) -> bool:
    """Whether an attack, or one of so many that were tried, does better than chance."""
    return any(score.what == "chance" and score.value * tried <= LEVEL for score in scores)
