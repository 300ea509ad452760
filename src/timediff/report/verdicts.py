"""Verdicts: three questions, answered by stated rules from an evaluation's scores.

A grade compares with the floor, the same number for real against real stays, so that nothing is asked of synthetic
stays that real ones do not fulfil.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.report.meanings import EXPOSES, LOOKS, USEFUL, classifier, families, meaning

Grade = Literal["good", "with care", "poor", "not measured"]
GRADES: tuple[Grade, ...] = ("good", "with care", "poor")  # from best to worst

# AUC above the floor. .05: of a hundred pairs the classifier finds five more than by chance, too few to see by eye;
# .15: most synthetic stays still pass for real ones, but some feature of them is plainly off.
LOOKS_GOOD, LOOKS_CARE = 0.05, 0.15
# Loss of AUROC. .02 is about what another classifier or another sample of stays changes; .05 would change a choice.
LOSS_GOOD, LOSS_CARE = 0.02, 0.05
# Forecast error above that of real training data, as a fraction of it; the score is coarse, so the limits are wide.
ERROR_GOOD, ERROR_CARE = 0.05, 0.20
# Above the floor, for fractions and AUCs that are .5 (NNAA: 0) without a leak: .02 is within the noise of 1,000 stays,
# .05 gives an attacker 55 right guesses in a hundred.
LEAK_GOOD, LEAK_CARE = 0.02, 0.05
# An interval that reaches this far above the floor cannot rule a leak out, whatever its middle says.
LEAK_UNSURE = 0.10


@dataclass(frozen=True)
class Verdict:
    question: str
    grade: Grade
    sentences: tuple[str, ...]

    @property
    def word(self) -> str:
        """The grade as the reader meets it: no test can call a release good for those whose data it is."""
        words = {"good": "no sign of a leak", "poor": "signs of a leak"} if self.question == EXPOSES else {}
        return words.get(self.grade, self.grade)


RULES = {
    LOOKS: (
        f"good: the AUC of every two-layer GRU is at most {LOOKS_GOOD:g} further from 0.5 than the floor is; "
        f"with care: at most {LOOKS_CARE:g}; otherwise poor. With the paper's GRU alone, at best with care."
    ),
    USEFUL: (
        f"good: classifiers lose at most {LOSS_GOOD:g} AUROC by training on synthetic instead of real stays; with "
        f"care: at most {LOSS_CARE:g}; otherwise poor. Without an outcome to predict, the forecast error counts: at "
        f"most {ERROR_GOOD:.0%} and {ERROR_CARE:.0%} above that after training on real stays."
    ),
    EXPOSES: (
        "poor: more exact copies of training stays than there are among unseen ones, or a number further above the "
        f"floor than {LEAK_CARE:g} and its interval beyond the floor's; no sign of a leak: every number within "
        f"{LEAK_GOOD:g} of the floor (within {LEAK_CARE:g} where the intervals overlap) and surely within "
        f"{LEAK_UNSURE:g}; otherwise with care."
    ),
}


def verdicts(results: Results, generator: str) -> list[Verdict]:
    """One verdict a question, in the order of the page."""
    overall = [s for s in results.scores[generator] if s.feature is None and s.group is None]
    return [answer(overall) for answer in (looks_real, useful, exposes)]


def looks_real(scores: Sequence[Score]) -> Verdict:
    """By how well two-layer GRUs tell synthetic from real stays; the worst of them counts."""
    known = [s for s in _known(scores, "discriminative", "auc") if (s.classifier or "").startswith("strong")]
    paper = _known(scores, "discriminative", "auc") or _known(scores, "discriminative", "score")
    if not (known or paper):
        return _unmeasured(LOOKS, scores, "discriminative", "whether a classifier can tell them from real stays")
    grade = _worst([_grade(_distance(s), LOOKS_GOOD, LOOKS_CARE) for s in known or paper])
    words = "; ".join(_told_apart(s) for s in known or paper)
    sentences = [f"{words[0].upper()}{words[1:]}."]
    if not known:
        grade = _worst([grade, "with care"])
        sentences.append("Only the paper's GRU was trained, and it misses faults that a larger one finds.")
    missing = [s for s in _all(scores, "discriminative", "auc") if math.isnan(s.value)]
    sentences += [f"Not available, {classifier(s)}: {s.note}" for s in missing if s.classifier]
    sentences.append("A classifier sees whole cohorts: a rare kind of stay may be wrong or absent without its notice.")
    return Verdict(LOOKS, grade, tuple(sentences))


def useful(scores: Sequence[Score]) -> Verdict:
    """By what classifiers lose that are trained on synthetic stays or, without an outcome, by the forecast error."""
    gaps = _known(scores, "tstr", "gap")
    means = [s for s in gaps if (s.classifier or "").startswith("mean of")]
    if not gaps:
        return _forecasts(scores)
    reached = {s.classifier: s.value for s in _known(scores, "tstr", "trtr")}
    chosen = means or gaps
    best = max((reached[s.classifier] for s in chosen if s.classifier in reached), default=math.nan)
    if best - 0.5 <= LOSS_CARE:  # then even useless synthetic stays could not lose more
        why = f"Even after training on real stays the outcome cannot be predicted here (AUROC {_number(best)}), "
        return Verdict(USEFUL, "not measured", (why + "so nothing can be said of what synthetic stays lose.",))
    worst = max(chosen, key=lambda s: s.value)
    loss = worst.value if means else sum(s.value for s in gaps) / len(gaps)
    who = f"{worst.classifier}" if means else f"mean of {len(gaps)} classifiers"
    numbers = f"Training on synthetic instead of real stays costs {_number(loss)} AUROC ({who}"
    numbers += f"; 95 % interval {_number(worst.low)} to {_number(worst.high)}" if means and _sure(worst) else ""
    numbers += (
        f"; real stays reach {_number(reached[worst.classifier])})." if means and worst.classifier in reached else ")."
    )
    limits = "This is about one outcome and these classifiers; other questions need a test of their own."
    return Verdict(USEFUL, _grade(loss, LOSS_GOOD, LOSS_CARE), (numbers, limits))


def _forecasts(scores: Sequence[Score]) -> Verdict:
    errors = [s for s in _known(scores, "predictive", "error") if s.floor > 0]
    if not errors:
        return _unmeasured(USEFUL, scores, "tstr", "what a model loses that is trained on synthetic stays")
    worst = max(errors, key=lambda s: s.value / s.floor)
    numbers = f"A forecast trained on synthetic stays errs by {_number(worst.value)} on real ones, "
    numbers += f"one trained on real stays by {_number(worst.floor)}."
    limits = "No outcome was predicted; a forecast of the next step is an easy task that hides many faults."
    return Verdict(USEFUL, _grade(worst.value / worst.floor - 1, ERROR_GOOD, ERROR_CARE), (numbers, limits))


def exposes(scores: Sequence[Score]) -> Verdict:
    """By copies, and by whether training stays are closer to the synthetic ones than unseen stays are."""
    copies = _known(scores, "copies", "share")
    attacks = _attacks(scores)
    risks = [s for metric, what in attacks for s in _known(scores, metric, what)]
    copied = [s for s in copies if s.value > _first(s.floor_high, s.floor, 0.0)]
    sentences = [
        f"{_percent(s.value)} of the synthetic stays are exact copies of training stays "
        f"(unseen real stays: {_percent(s.floor)})."
        for s in copied
    ]
    if copies and not copied:
        sentences.append("No more exact copies of training stays than among real stays that were not used for it.")
    if risks:
        listed = "; ".join(f"{meaning(s).title} {_number(s.value)} (real stays {_number(s.floor)})" for s in risks)
        sentences.append(f"{listed[0].upper()}{listed[1:]}.")
    elif not copied:
        missing = _unmeasured(EXPOSES, scores, "nnaa", "whether single patients were memorised")
        return Verdict(EXPOSES, "not measured", (*sentences, *missing.sentences))
    grade = _worst(["poor" if copied else "good", *(_leak(s) for s in risks)])
    absent = [meaning(Score(m, w, 0)).title for m, w in attacks if not _known(scores, m, w)]
    if not copies:
        absent.append("exact copies")
    if absent:
        sentences.append(f"Not measured: {', '.join(absent)}.")
        grade = _worst([grade, "with care"])
    if any(_reach(s) > LEAK_UNSURE for s in risks) and grade == "with care":
        sentences.append("There are too few stays to be sure: an interval reaches far above the floor.")
    sentences.append(
        "These tests are averages over many stays: they can miss a leak about a few patients, and they prove no "
        "anonymity."
    )
    return Verdict(EXPOSES, grade, tuple(sentences))


def _attacks(scores: Sequence[Score]) -> list[tuple[str, str]]:
    """Metric and number of all that tells of a leak: all of ours, and those of other packages that were measured."""
    known = families(s.metric for s in scores)
    return [
        (metric.name, what) for metric in known for what, says in metric.numbers.items() if says.no_leak is not None
    ]


def _leak(score: Score) -> Grade:
    excess = score.value - _floor(score)
    overlap = not math.isnan(score.low) and score.low <= _first(score.floor_high, _floor(score))
    if excess > LEAK_CARE:
        return "with care" if overlap else "poor"
    if excess > LEAK_GOOD and not overlap:
        return "with care"
    return "with care" if _reach(score) > LEAK_UNSURE else "good"


def _reach(score: Score) -> float:
    """How far above the floor the interval goes."""
    return _first(score.high, score.value) - _floor(score)


def _floor(score: Score) -> float:
    """What no leak gives; a floor that is better than that by chance asks too much."""
    ideal = meaning(score).no_leak or 0.0
    return max(_first(score.floor, ideal), ideal)


def _distance(score: Score) -> float:
    """How much further from guessing than real against real; an AUC below .5 tells apart as well."""
    ideal = 0.0 if score.what == "score" else 0.5
    return abs(score.value - ideal) - abs(_first(score.floor, ideal) - ideal)


def _told_apart(score: Score) -> str:
    name = "AUC" if score.what == "auc" else "score"
    floor = f"real against real {_number(score.floor)}"
    if math.isnan(score.floor):
        floor = f"real against real was not measured, {'0.5' if score.what == 'auc' else '0'} was taken for it"
    return f"{classifier(score) or 'the classifier'}: {name} {_number(score.value)} ({floor})"


def _grade(excess: float, good: float, care: float) -> Grade:
    rounded = round(excess, 9)  # .55 − .5 is more than .05 to a computer
    return "good" if rounded <= good else "with care" if rounded <= care else "poor"


def _worst(grades: Sequence[Grade]) -> Grade:
    return max(grades, key=GRADES.index)


def _unmeasured(question: str, scores: Sequence[Score], metric: str, what: str) -> Verdict:
    notes = dict.fromkeys(s.note for s in scores if s.metric == metric and s.note)
    return Verdict(question, "not measured", (f"It was not measured {what}.", *list(notes)[:1]))


def _all(scores: Sequence[Score], metric: str, what: str) -> list[Score]:
    return [s for s in scores if (s.metric, s.what) == (metric, what)]


def _known(scores: Sequence[Score], metric: str, what: str) -> list[Score]:
    return [s for s in _all(scores, metric, what) if not math.isnan(s.value)]


def _sure(score: Score) -> bool:
    return not (math.isnan(score.low) or math.isnan(score.high))


def _first(*values: float) -> float:
    """The first that is a number."""
    return next((value for value in values if not math.isnan(value)), math.nan)


def _number(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.3f}".replace("-", "−")


def _percent(fraction: float) -> str:
    return "unknown" if math.isnan(fraction) else f"{fraction:.2%}"
