"""The panel of classifiers as tables: what each finds, by which kind of statistics, and what betrays the cohort."""

import html
from collections.abc import Callable, Mapping, Sequence

from timediff.evaluation.score import Score
from timediff.report.meanings import classifier
from timediff.report.score_tables import matrix

ABOUT_KINDS = (
    "Trees that see one kind of statistics of each stay alone. What lies far above real against real is where the "
    "cohort gives itself away."
)
ABOUT_STATISTICS = (
    "The statistics that the trees miss most when they are shuffled among stays, and those that tell most by "
    "themselves; below each mean the same of real stays."
)


def panel(scores: Mapping[str, Sequence[Score]]) -> str:
    """The tables of each generator, named where there are several."""
    return "".join(
        (f"<h4>{html.escape(name)}</h4>" if len(scores) > 1 else "") + _tables(known)
        for name, known in scores.items()
        if known
    )


def _tables(scores: Sequence[Score]) -> str:
    kinds = [s for s in scores if s.what == "group_auc"]
    statistics = [s for s in scores if s.feature is not None]
    others = [s for s in scores if s.what != "group_auc" and s.feature is None]
    content = matrix(others, classifier, "classifier") if others else ""
    content += _below("By kind of statistics", ABOUT_KINDS, kinds, _kind, "statistics of a stay")
    return content + _below("What betrays it", ABOUT_STATISTICS, statistics, lambda s: s.feature or "", "statistic")


def _below(title: str, about: str, scores: Sequence[Score], row: Callable[[Score], str], heading: str) -> str:
    return f"<h4>{title}</h4><p>{about}</p>{matrix(scores, row, heading)}" if scores else ""


def _kind(score: Score) -> str:
    """The kind of statistics, without the classifier's name before it."""
    return (score.classifier or "").partition(": ")[2]
