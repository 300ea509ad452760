"""Meanings: what every number of an evaluation says, in the words of the metric that returned it."""

from collections.abc import Iterable

from timediff.evaluation.registry import HOMES, METRICS, Meaning, Metric, Question
from timediff.evaluation.score import Score

LOOKS, USEFUL, EXPOSES = "Does it look real?", "Is it useful?", "Whom could it expose?"
QUESTIONS = (LOOKS, USEFUL, EXPOSES)
ASKED: dict[Question, str] = {"looks real": LOOKS, "useful": USEFUL, "private": EXPOSES}
OTHER = "Other numbers"  # of metrics that are not installed here


def find_metric(name: str) -> Metric | None:
    """The metric of a score; None where the package it comes from is not installed."""
    return METRICS(name) if name in METRICS else None


def meaning(score: Score) -> Meaning:
    """What a score says; a number that nobody has described keeps its own name."""
    found = find_metric(score.metric)
    return found.meaning(score.what) if found else Meaning(score.what.replace("_", " "))


def classifier(score: Score) -> str:
    """Which classifier measured it, in words."""
    name, found = score.classifier or "", find_metric(score.metric)
    return found.classifiers.get(name, name) if found else name


def families(measured: Iterable[str] = ()) -> list[Metric]:
    """Our metrics that return numbers and, of all others, those that were measured."""
    ours = map(METRICS, HOMES)
    others = [find_metric(name) for name in dict.fromkeys(measured) if name not in HOMES]
    return [*(metric for metric in ours if metric.numbers), *filter(None, others)]
