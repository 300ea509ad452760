"""Verdicts: three questions, answered by stated rules from an evaluation's scores.

A grade compares with the floor, the same number for real against real stays, so that nothing is asked of synthetic
stays that real ones do not fulfil. A verdict is a list of reasons, each a grade and the sentence that says why; the
worst of them is the verdict, and its sentence stands first.

Averages over distances (NNAA, MIR) are no reasons: a few patients can be recognised where they are as good as their
floors. They are shown beside the verdict.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from timediff.evaluation.metrics.near_copies import FALSE_ALARMS
from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.evaluation.single_stays import COPIES
from timediff.report.meanings import EXPOSES, LOOKS, USEFUL, classifier, families, meaning

if TYPE_CHECKING:
    from timediff.evaluation.audit_results import Audit
    from timediff.report.audit_verdicts import AuditVerdict

Grade = Literal["good", "not shown", "with care", "too few to say", "poor", "not measured"]
GRADES: tuple[Grade, ...] = ("good", "not shown", "with care", "too few to say", "poor")  # from best to worst

# AUC above the floor. .05: of a hundred pairs the classifier finds five more than by chance, too few to see by eye;
# .15: most synthetic stays still pass for real ones, but some feature of them is plainly off.
LOOKS_GOOD, LOOKS_CARE = 0.05, 0.15
# Loss of AUROC. .02 is about what another classifier or another sample of stays changes; .05 would change a choice.
LOSS_GOOD, LOSS_CARE = 0.02, 0.05
# Forecast error above that of real training data, as a fraction of it; the score is coarse, so the limits are wide.
ERROR_GOOD, ERROR_CARE = 0.05, 0.20
# Above the floor, for attacks of other packages, such as an AUC that is .5 without a leak: .02 is within the noise of
# 1,000 stays, .05 gives an attacker 55 right guesses in a hundred.
LEAK_GOOD, LEAK_CARE = 0.02, 0.05
# An interval that reaches this far above the floor cannot rule a leak out, whatever its middle says.
LEAK_UNSURE = 0.10
# With fewer held-out stays of the rarer class an AUROC moves by .05 when a few stays change places.
FEWEST_EVENTS = 20
FEWEST_STAYS = 100  # held-out ones; with fewer it is not known what chance gives
HIDEABLE = 0.05  # of the synthetic stays; where more near copies could pass for chance, their absence says little
# The halves of an adversarial accuracy further apart than this: one set lies within itself, and distances between the
# two sets say little.
APART = 0.5
# The paper's numbers of privacy, averages over distances: shown with their floors, and no reason for any verdict.
AVERAGES = (("nnaa", "nnaa"), ("nnaa", "nearer_training"), ("mir", "auc"))


@dataclass(frozen=True)
class Reason:
    """What one number, or its absence, allows at best, and the sentence that says so."""

    grade: Grade
    sentence: str


@dataclass(frozen=True)
class Verdict:
    question: str
    grade: Grade
    sentences: tuple[str, ...]  # first the reason that decided

    @property
    def word(self) -> str:
        """The grade as the reader meets it: no test can call a release good for those whose data it is."""
        words = {"good": "no sign of a leak", "poor": "signs of a leak"} if self.question == EXPOSES else {}
        return words.get(self.grade, self.grade)


RULES = {
    LOOKS: (
        f"good: the worst classifier's AUC is at most {LOOKS_GOOD:g} further from 0.5 than the floor is; with care: at "
        f"most {LOOKS_CARE:g}; otherwise poor. Too few to say: the interval reaches from the floor to beyond "
        f"{LOOKS_CARE:g}. Without the panel of classifiers every two-layer GRU counts; with the paper's GRU alone, at "
        "best with care."
    ),
    USEFUL: (
        f"good: classifiers lose at most {LOSS_GOOD:g} AUROC by training on synthetic instead of real stays; poor: the "
        f"whole interval lies beyond {LOSS_CARE:g}; otherwise with care. The interval is that of other unseen patients "
        "and of another choice of real stays to train on. Too few to say: fewer than "
        f"{FEWEST_EVENTS} unseen stays of the rarer outcome, or an interval that reaches from no loss to beyond "
        f"{LOSS_CARE:g}. Without an outcome to predict, the forecast error counts: good up to {ERROR_GOOD:.0%}, with "
        f"care up to {ERROR_CARE:.0%} above that after training on real stays, otherwise poor."
    ),
    EXPOSES: (
        "signs of a leak: more exact or near copies of training stays than chance explains (one false alarm in "
        f"{1 / FALSE_ALARMS:,.0f} for near copies); not shown: there are none, and whether single patients can be "
        f"recognised is a question for timediff audit. Too few to say: fewer than {FEWEST_STAYS} unseen stays, or "
        f"near copies among more than {HIDEABLE:.0%} of the stays could pass for chance. With care: exact or near "
        "copies were not looked for. Where an audit of the cohort was given, its verdict is the answer, unless there "
        "are copies. NNAA, MIR and other averages over distances decide nothing. An attack of another "
        f"package decides as well: signs of a leak where it is further above the floor than {LEAK_CARE:g} and its "
        f"interval beyond the floor's; no sign of a leak within {LEAK_GOOD:g} of the floor (within {LEAK_CARE:g} where "
        f"the intervals overlap); too few to say where its interval reaches more than {LEAK_UNSURE:g} above the floor; "
        "otherwise with care."
    ),
}


def verdicts(results: Results, generator: str) -> list[Verdict]:
    """One verdict a question, in the order of the page."""
    overall = _overall(results, generator)
    return [looks_real(overall), useful(overall), _exposes(results, generator)]


def leaks(results: Results) -> list[str]:
    """The generators whose cohorts show signs of a leak."""
    return [name for name in results.generators if _exposes(results, name).grade == "poor"]


def _exposes(results: Results, generator: str) -> Verdict:
    overall, audit = _overall(results, generator), results.audits.get(generator)
    return exposes(overall, held_out=_held_out(results), audit=audit)


def _overall(results: Results, generator: str) -> list[Score]:
    """What was measured of whole cohorts."""
    return [s for s in results.scores[generator] if s.feature is None and s.group is None]


def _held_out(results: Results) -> int | None:
    """How many real stays the generator has not seen; None where the results do not say so."""
    stated = results.facts.get("held-out stays", "").replace(",", "")
    return int(stated) if stated.isdecimal() else None


def decided(question: str, reasons: Sequence[Reason], *more: str) -> Verdict:
    """By the worst reason, of equal ones the first; the others follow, and then what is true of any."""
    worst = max(reasons, key=lambda reason: GRADES.index(reason.grade))
    others = [reason.sentence for reason in reasons if reason is not worst]
    return Verdict(question, worst.grade, tuple(filter(None, (worst.sentence, *others, *more))))


def looks_real(scores: Sequence[Score]) -> Verdict:
    """By how well classifiers tell synthetic from real stays; the worst of them counts."""
    known = _known(scores, "discriminative", "auc")
    worst = [s for s in known if s.classifier == "worst"]
    strong = [s for s in known if (s.classifier or "").startswith("strong")]
    counted = worst or strong or known or _known(scores, "discriminative", "score")
    if not counted:
        return _unmeasured(LOOKS, scores, "discriminative", "whether a classifier can tell them from real stays")
    reasons = [_told_apart(s, scores) for s in sorted(counted, key=_distance, reverse=True)]
    if not (worst or strong):
        alone = "Only the paper's GRU was trained, and it misses faults that a larger one finds."
        reasons.append(Reason("with care", alone))
    missing = [s for s in _all(scores, "discriminative", "auc") if math.isnan(s.value) and s.classifier]
    absent = [f"Not available, {classifier(s)}: {s.note}" for s in missing]
    limits = "A classifier sees whole cohorts: a rare kind of stay may be wrong or absent without its notice."
    return decided(LOOKS, reasons, *absent, limits)


def _told_apart(score: Score, scores: Sequence[Score]) -> Reason:
    """What one classifier says."""
    excess, ends = _distance(score), sorted(_distance(score, end) for end in (score.low, score.high))
    low, high = (excess, excess) if any(map(math.isnan, ends)) else ends
    if not math.isnan(score.low) and score.low <= 0.5 <= score.high and score.what == "auc":
        low = min(low, 0.0)  # it reaches over guessing, where the distance turns
    grade = _grade(excess, LOOKS_GOOD, LOOKS_CARE)
    if low <= 0 and high > LOOKS_CARE:
        grade = "too few to say"
    name = "AUC" if score.what == "auc" else "score"
    floor = f"real against real {_number(score.floor)}{_interval(score.floor_low, score.floor_high)}"
    if math.isnan(score.floor):
        floor = f"real against real was not measured, {'0.5' if score.what == 'auc' else '0'} was taken for it"
    sentence = f"{_who(score, scores)} tells synthetic from real stays with {name} {_number(score.value)}"
    sentence += f"{_interval(score.low, score.high)}; {floor}: {_against(excess, LOOKS_GOOD, LOOKS_CARE)}."
    if grade == "too few to say":
        sentence += " There are too few stays to say: the interval reaches from there to what is poor."
    return Reason(grade, _capital(sentence))


def _who(score: Score, scores: Sequence[Score]) -> str:
    """The classifier in words; of the worst of a panel, which one that is."""
    if score.classifier != "worst":
        return classifier(score) or "the classifier"
    panel = {s.classifier: classifier(s) for s in _known(scores, "discriminative", "auc") if s.classifier != "worst"}
    named = [words for name, words in panel.items() if name and (name in score.note or words in score.note)]
    return f"the best of {len(panel)} classifiers ({max(named, key=len, default=score.note or 'not named')})"


def useful(scores: Sequence[Score]) -> Verdict:
    """By what classifiers lose that are trained on synthetic stays or, without an outcome, by the forecast error."""
    gaps = _known(scores, "tstr", "gap")
    means = [s for s in gaps if (s.classifier or "").startswith("mean of")]
    if not gaps:
        return _forecasts(scores)
    reached = {s.classifier: s.value for s in _known(scores, "tstr", "trtr")}
    chosen = means or gaps
    best = max((reached[s.classifier] for s in chosen if s.classifier in reached), default=math.nan)
    events, few = _events(scores), _few_events(scores)
    if best - 0.5 <= LOSS_CARE and not few:  # then even useless synthetic stays could not lose more
        why = f"Even after training on real stays the outcome cannot be predicted here (AUROC {_number(best)}"
        why += f"{events and '; '}{events}), so nothing can be said of what synthetic stays lose."
        return Verdict(USEFUL, "not measured", (why,))
    worst = max(means, key=lambda s: s.value) if means else _average(gaps)
    low, high = _with_other_training(worst)
    real = f"; real stays reach {_number(reached[worst.classifier])}" if worst.classifier in reached else ""
    numbers = f"Training on synthetic instead of real stays costs {_number(worst.value)} AUROC{_interval(low, high)}, "
    numbers += f"{_limit(worst.value, LOSS_GOOD, LOSS_CARE)} ({worst.classifier}{events and '; '}{events}{real})."
    grade = _grade(worst.value, LOSS_GOOD, LOSS_CARE)
    if low <= 0 and high > LOSS_CARE:
        grade = "too few to say"
        numbers += (
            f" The interval reaches from no loss to more than {LOSS_CARE:g}: they cannot tell whether there is one."
        )
    elif grade == "poor" and low <= LOSS_CARE:
        grade = "with care"
        numbers += f" Whether it is more than {LOSS_CARE:g} is not sure, as the interval begins below."
    reasons = [Reason(grade, numbers)]
    if few:  # what so few stays say is no reason at all
        reasons = [Reason("too few to say", few), Reason("good", numbers)]
    limits = "This is about one outcome and these classifiers; other questions need a test of their own."
    return decided(USEFUL, reasons, limits)


def _average(gaps: Sequence[Score]) -> Score:
    """The mean loss of several classifiers; its interval is no narrower than theirs, which are of the same stays."""
    ends = ("value", "low", "high", "floor_low", "floor_high")
    value, low, high, floor_low, floor_high = (sum(getattr(s, end) for s in gaps) / len(gaps) for end in ends)
    who = f"mean of {len(gaps)} classifiers"
    return Score("tstr", "gap", value, who, low=low, high=high, floor_low=floor_low, floor_high=floor_high)


def _with_other_training(loss: Score) -> tuple[float, float]:
    """The interval of a loss over other unseen patients, and over other real stays to train on where that is known."""
    known = not math.isnan(loss.floor_high)
    below, above = (loss.floor_high, -loss.floor_low) if known else (0.0, 0.0)
    return loss.value - math.hypot(loss.value - loss.low, below), loss.value + math.hypot(loss.high - loss.value, above)


def _events(scores: Sequence[Score]) -> str:
    """How many stays an AUROC rests on, in words; empty where it is not known."""
    found = _all(scores, "tstr", "events")
    if not found:
        return ""
    if math.isnan(found[0].value):
        return found[0].note
    return f"{found[0].value:,.0f} of {found[0].n:,} unseen stays have the rarer outcome"


def _few_events(scores: Sequence[Score]) -> str:
    """Why there are too few events; empty where there are enough, or where nobody counted them."""
    found = _all(scores, "tstr", "events")
    if not found or found[0].value >= FEWEST_EVENTS:
        return ""
    events = _events(scores)
    return f"{_capital(events)}; with fewer than {FEWEST_EVENTS} nothing can be said of what is lost."


def _forecasts(scores: Sequence[Score]) -> Verdict:
    errors = [s for s in _known(scores, "predictive", "error") if s.floor > 0]
    if not errors:
        return _unmeasured(USEFUL, scores, "tstr", "what a model loses that is trained on synthetic stays")
    worst = max(errors, key=lambda s: s.value / s.floor)
    excess, low, high = (end / worst.floor - 1 for end in (worst.value, worst.low, worst.high))
    numbers = f"A forecast trained on synthetic stays errs by {_number(worst.value)}"
    numbers += f"{_interval(worst.low, worst.high)} on real ones, one trained on real stays by {_number(worst.floor)}: "
    numbers += f"{_number(excess)} of that more, {_limit(excess, ERROR_GOOD, ERROR_CARE)}."
    grade = _grade(excess, ERROR_GOOD, ERROR_CARE)
    if low <= 0 and high > ERROR_CARE:
        grade = "too few to say"
        numbers += " The interval reaches from no loss to what is poor."
    limits = "No outcome was predicted; a forecast of the next step is an easy task that hides many faults."
    return decided(USEFUL, [Reason(grade, numbers)], limits)


def exposes(scores: Sequence[Score], *, held_out: int | None = None, audit: "Audit | None" = None) -> Verdict:
    """By copies, attacks of other packages and an audit; averages over distances are shown and decide nothing."""
    attacks = _attacks(scores)
    risks = [s for metric, what in attacks for s in _known(scores, metric, what)]
    risks.sort(key=lambda s: (GRADES.index(_leak(s).grade), s.value - _floor(s)), reverse=True)
    looked = [s for metric in COPIES for s in _known(scores, metric, "share")]
    copied = [s for s in looked if s.excess() > 0]
    averages = (_averages(scores), _collapsed(scores))
    if not (risks or looked or audit):
        notes = [s.note for metric in COPIES for s in _all(scores, metric, "share") if s.note]
        missing = f"It was not measured whether there are {' or '.join(COPIES.values())} of training stays."
        return Verdict(EXPOSES, "not measured", tuple(filter(None, (missing, *notes[:1], *averages))))
    reasons = [Reason("poor", COPIED[s.metric].format(_percent(s.value), _chance(s))) for s in copied]
    reasons += map(_leak, risks[:1])
    absent = [meaning(Score(m, w, 0)).title for m, w in attacks if not _known(scores, m, w)]
    absent += [meaning(Score(m, "share", 0)).title for m in COPIES if not _known(scores, m, "share")]
    unmeasured = f"Not measured: {', '.join(absent)}." if absent else ""
    if audit is None:  # whose attacks have planted copies to find, and say whether they did
        reasons += [Reason("with care", unmeasured)] if absent else []
        reasons += filter(None, (_few_stays(held_out), *map(_could_hide, looked)))
    none = f"No {' or '.join(COPIES[s.metric] for s in looked)} beyond chance were found" if looked else ""
    answer = None if audit is None else _audited(audit)
    if answer is not None:
        reasons.append(Reason(AUDITED[answer.word], f"Audit: {answer.sentences[0]}"))
    elif none and not (copied or risks):
        reasons.append(Reason("not shown", f"{none}; {AUDIT}."))
    more = "; ".join(f"{meaning(s).title} {_number(s.value)} (real stays {_number(s.floor)})" for s in risks[1:])
    return decided(
        EXPOSES,
        reasons,
        _capital(f"{more}.") if more else "",
        *(answer.sentences[1:] if answer else ()),
        f"{none}." if none and (risks or answer) and not copied else "",
        unmeasured if answer else "",
        *averages,
        "These tests can miss a leak about a few patients, and they prove no anonymity.",
    )


AUDIT = "whether single patients can be recognised is a question for timediff audit, which was not made"
AUDITED: dict[str, Grade] = {
    "signs of a leak": "poor",
    "with care": "with care",
    "no sign of a leak": "good",
    "not shown": "not shown",
    "not attacked": "not shown",
}
COPIED = {
    "copies": "{} of the synthetic stays are exact copies of training stays ({}).",
    "near_copies": "{} of the synthetic stays are near copies: they lie closer to one training stay than real stays do "
    "({}).",
}


def _audited(audit: "Audit") -> "AuditVerdict":
    from timediff.report.audit_verdicts import cohort_verdict  # needs PyTorch, which a report without an audit does not

    return cohort_verdict(audit)


def _chance(score: Score) -> str:
    most = f"; chance explains at most {_percent(score.floor_high)}" if score.floor_high > score.floor else ""
    return f"real stays: {_percent(score.floor)}{most}"


def _could_hide(score: Score) -> Reason | None:
    """Of near copies: how many could pass for chance, where that is much."""
    if score.metric != "near_copies" or not score.floor_high > HIDEABLE:
        return None
    return Reason("too few to say", f"{score.note} There are too few real stays to see fewer.")


def _few_stays(held_out: int | None) -> Reason | None:
    if held_out is None or held_out >= FEWEST_STAYS:
        return None
    why = f"Only {held_out:,} unseen stays were compared with; with fewer than {FEWEST_STAYS} no leak can be ruled out."
    return Reason("too few to say", why)


def _averages(scores: Sequence[Score]) -> str:
    """The paper's numbers beside their floors; empty where none was measured."""
    known = [s for metric, what in AVERAGES for s in _known(scores, metric, what)]
    said = "; ".join(f"{meaning(s).title} {_number(s.value)} (real stays {_number(s.floor)})" for s in known)
    return f"NNAA and MIR are averages over distances and decide nothing: {said}." if said else ""


def _collapsed(scores: Sequence[Score]) -> str:
    """Where synthetic stays lie among themselves: far from real ones, whoever was in the training data."""
    halves = [s.value for what in ("real_apart", "synthetic_apart") for s in _known(scores, "nnaa", what)]
    if len(halves) < 2 or abs(halves[0] - halves[1]) <= APART:
        return ""
    why = "Synthetic and real stays do not lie among each other: the halves of the adversarial accuracy are "
    why += f"{_number(halves[0])} (real stays) and {_number(halves[1])} (synthetic stays), where 0.5 and 0.5 is good. "
    return why + "So far apart, distances say little of a leak."


def _attacks(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """Metric and number of what tells of a leak, of other packages' metrics that were measured; ours have none."""
    known = families(s.metric for s in scores)
    return [
        (metric.name, what) for metric in known for what, says in metric.numbers.items() if says.no_leak is not None
    ]


def _leak(score: Score) -> Reason:
    excess, reach = score.value - _floor(score), _first(score.high, score.value) - _floor(score)
    overlap = not math.isnan(score.low) and score.low <= _first(score.floor_high, _floor(score))
    grade: Grade = "good"
    why = _against(excess, LEAK_GOOD, LEAK_CARE)
    if excess > LEAK_CARE and not overlap:
        grade = "poor"
    elif reach > LEAK_UNSURE and (overlap or excess <= LEAK_GOOD):
        grade = "too few to say"
        why += f"; there are too few stays to be sure, the interval reaches more than {LEAK_UNSURE:g} above it"
    elif excess > LEAK_CARE or (excess > LEAK_GOOD and not overlap) or reach > LEAK_UNSURE:
        grade = "with care"
    if grade != "poor" and overlap and excess > LEAK_GOOD:
        why += ", but the intervals overlap"
    says, ends = meaning(score), _interval(score.low, score.high)
    sentence = f"{says.title}: {_number(score.value)}{ends}; real stays {_number(score.floor)}: {why}."
    return Reason(grade, _capital(sentence))


def _floor(score: Score) -> float:
    """What no leak gives; a floor that is better than that by chance asks too much."""
    ideal = meaning(score).no_leak or 0.0
    return max(_first(score.floor, ideal), ideal)


def _distance(score: Score, value: float | None = None) -> float:
    """How much further from guessing than real against real; an AUC below .5 tells apart as well."""
    ideal = 0.0 if score.what == "score" else 0.5
    return abs((score.value if value is None else value) - ideal) - abs(_first(score.floor, ideal) - ideal)


def _grade(excess: float, good: float, care: float) -> Grade:
    rounded = round(excess, 9)  # .55 − .5 is more than .05 to a computer
    return "good" if rounded <= good else "with care" if rounded <= care else "poor"


def _limit(excess: float, good: float, care: float) -> str:
    """Which limit is kept or broken."""
    grade = _grade(excess, good, care)
    if grade == "good":
        return f"within the limit of {good:g}"
    return f"more than the limit of {good if grade == 'with care' else care:g}"


def _against(excess: float, good: float, care: float) -> str:
    side = "below" if excess < 0 else "above"
    return f"{_number(abs(excess))} {side} the floor, {_limit(excess, good, care)}"


def _unmeasured(question: str, scores: Sequence[Score], metric: str, what: str) -> Verdict:
    notes = dict.fromkeys(s.note for s in scores if s.metric == metric and s.note)
    return Verdict(question, "not measured", (f"It was not measured {what}.", *list(notes)[:1]))


def _all(scores: Sequence[Score], metric: str, what: str) -> list[Score]:
    return [s for s in scores if (s.metric, s.what) == (metric, what)]


def _known(scores: Sequence[Score], metric: str, what: str) -> list[Score]:
    return [s for s in _all(scores, metric, what) if not math.isnan(s.value)]


def _interval(low: float, high: float) -> str:
    """In words, in brackets; empty where there is none."""
    return "" if math.isnan(low) or math.isnan(high) else f" (95 % interval {_number(low)} to {_number(high)})"


def _first(*values: float) -> float:
    """The first that is a number."""
    return next((value for value in values if not math.isnan(value)), math.nan)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _number(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.3f}".replace("-", "−")


def _percent(fraction: float) -> str:
    return "unknown" if math.isnan(fraction) else f"{fraction:.2%}"
