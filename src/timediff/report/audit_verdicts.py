"""Verdicts of an audit: may the synthetic cohort leave the house, and may the run folder?

An attack that succeeds decides. Where none does, it depends on whether they would have: an audit without power says
that nothing was shown.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from timediff.evaluation.attacks.membership import LEVEL, METRIC, succeeded
from timediff.evaluation.attacks.registry import ATTACKS, Has
from timediff.evaluation.audit_results import Audit, Power
from timediff.evaluation.score import Score

Word = Literal["signs of a leak", "with care", "no sign of a leak", "not shown", "not attacked"]
QUESTIONS: dict[Has, str] = {
    "cohort": "May the synthetic cohort leave the house?",
    "run": "May the run folder leave the house?",
}
# Beyond chance, but less than this, an attack tells an attacker hardly anything of anyone.
AUC_CARE, RATE_CARE, RISK_CARE = 0.02, 0.02, 0.02
SEEN = 0.01  # of the training stays: copies of so many must be found, or a cohort's audit has no power
RULES = (
    f"Signs of a leak: an attack does better than chance (fewer than {LEVEL:.0%} of audits without a leak, corrected "
    f"for their number), with an AUC more than {AUC_CARE:g} above .5, more than {RATE_CARE:.0%} true positives at 1 % "
    f"false alarms, or a risk of more than {RISK_CARE:g}. With care: better than chance, but by less. No sign of a "
    f"leak: no attack does, and the same attacks find disturbed copies of at most {SEEN:.0%} of the training stays "
    "(run folder: what a model knows that was trained on a few stays to the end). Otherwise not shown."
)


@dataclass(frozen=True)
class AuditVerdict:
    question: str
    word: Word
    sentences: tuple[str, ...]  # first the reason that decided


def audit_verdicts(audit: Audit) -> list[AuditVerdict]:
    return [_verdict(audit, has) for has in QUESTIONS]


def cohort_verdict(audit: Audit) -> AuditVerdict:
    """Of the synthetic cohort alone."""
    return _verdict(audit, "cohort")


def leaking(audit: Audit) -> bool:
    return any(verdict.word == "signs of a leak" for verdict in audit_verdicts(audit))


def _verdict(audit: Audit, has: Has) -> AuditVerdict:
    question = QUESTIONS[has]
    names = [name for name in attacks_of(audit) if ATTACKS(name).has == has]
    scores = {name: [s for s in audit.scores if s.classifier == name and s.group is None] for name in names}
    made = {name: own for name, own in scores.items() if any(s.what == "chance" for s in own)}
    lost = [f"{ATTACKS(name).title} ({own[0].note})" for name, own in scores.items() if name not in made]
    absent = (f"Not available: {'; '.join(lost)}.",) if lost else ()
    if not made:
        return AuditVerdict(question, "not attacked", absent or ("No attack was made.",))
    hits = [name for name, own in made.items() if succeeded(own, len(made))]
    strong = [name for name in hits if _effect(made[name]) > 0]
    power = [one for one in audit.power if one.has == has]
    if strong:
        worst = max(strong, key=lambda name: _effect(made[name]))
        others = len(made) - 1
        more = [_says(name, made[name]) for name in hits if name != worst]
        decided = f"Of {1 + others} attacks: {_says(worst, made[worst])}"
        return AuditVerdict(question, "signs of a leak", (decided, *more, _seen(power), *absent))
    if hits:
        return AuditVerdict(question, "with care", (*(_says(name, made[name]) for name in hits), _seen(power), *absent))
    closest = max(made, key=lambda name: _auc(made[name]))
    nothing = f"None of {len(made)} attacks does better than chance; the best: {_says(closest, made[closest])}"
    if _has_power(power, has):
        return AuditVerdict(question, "no sign of a leak", (nothing, _seen(power), *absent))
    return AuditVerdict(question, "not shown", (f"{nothing} But: {_seen(power)}", *absent))


def attacks_of(audit: Audit) -> list[str]:
    """The attacks that were tried, in their order."""
    return list(dict.fromkeys(s.classifier for s in audit.scores if s.metric == METRIC and s.classifier))


def smallest(power: Sequence[Power], attack: str | None = None) -> float:
    """The smallest dose that was found each time; infinite where none was."""
    found = [p.dose for p in power if p.dose > 0 and p.found == p.of and attack in (None, p.attack)]
    return min(found, default=math.inf)


def _has_power(power: Sequence[Power], has: Has) -> bool:
    return smallest(power) <= (SEEN if has == "cohort" else 1.0)


def _seen(power: Sequence[Power]) -> str:
    """What the attacks would have found."""
    if not power:
        return "Whether these attacks would find a leak was not tried."
    dose = smallest(power)
    if power[0].has == "run":
        planted = power[0].planted
        return f"The attacks find {planted}." if dose <= 1 else f"No attack finds {planted}, so they are weak here."
    if dose > 1:
        largest = max(p.dose for p in power)
        return f"Not even disturbed copies of {largest:.1%} of the training stays were found each time."
    return f"They would have seen disturbed copies of 1 training stay in {round(1 / dose):,}."


def _effect(scores: Sequence[Score]) -> float:
    """How far the largest number is beyond what calls for care."""
    limits = {"auc": 0.5 + AUC_CARE, "tpr_at_0.01": RATE_CARE, "risk": RISK_CARE}
    return max((s.value - limits[s.what] for s in scores if s.what in limits and not math.isnan(s.value)), default=-1.0)


def _auc(scores: Sequence[Score]) -> float:
    return max((s.value for s in scores if s.what == "auc"), default=0.0)


def _says(name: str, scores: Sequence[Score]) -> str:
    title = ATTACKS(name).title
    known = {s.what: s for s in scores if not math.isnan(s.value)}
    if "auc" in known:
        auc = known["auc"]
        text = f"{title}: AUC {auc.value:.3f} (95 % interval {auc.low:.3f} to {auc.high:.3f})"
        rate = known.get("tpr_at_0.01")
        return f"{text}, {rate.value:.1%} true positives at 1 % false alarms." if rate else f"{text}."
    if "risk" in known:
        risk, right, others = known["risk"], known["right_training"], known["right_others"]
        return (
            f"{title}: right about {right.value:.1%} of training stays and {others.value:.1%} of others, a risk of "
            f"{risk.value:.3f} (95 % interval {risk.low:.3f} to {risk.high:.3f})."
        )
    return f"{title}: not available."
