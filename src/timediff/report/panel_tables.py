"""The panel of classifiers as tables: what each finds, by which kind of statistics, and what betrays the cohort."""

import html
from collections.abc import Callable, Mapping, Sequence

from timediff.evaluation.score import Score
from timediff.report.meanings import classifier
from timediff.report.number_tables import by_number
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
    """Generators side by side: each classifier, each kind of statistics, and the statistics that betray each cohort."""

    def only(chosen: Callable[[Score], bool]) -> dict[str, list[Score]]:
        return {name: [s for s in known if chosen(s)] for name, known in scores.items()}

    content = by_number(only(lambda s: s.what != "group_auc" and s.feature is None), classifier, "classifier")
    kinds = by_number(only(lambda s: s.what == "group_auc"), _kind, "statistics of a stay")
    content += f"<h4>By kind of statistics</h4><p>{ABOUT_KINDS}</p>{kinds}" if kinds else ""
    statistics = {name: known for name, known in only(lambda s: s.feature is not None).items() if known}
    tables = "".join(_betrays(name, known, len(scores) > 1) for name, known in statistics.items())
    about = f"<h4>What betrays it</h4><p>{ABOUT_STATISTICS}</p>"
    return content + (f'{about}<div class="numbers" style="--least: 34rem">{tables}</div>' if tables else "")


def _betrays(name: str, scores: Sequence[Score], named: bool) -> str:
    """Each generator has statistics of its own."""
    above = f"<h4>{html.escape(name)}</h4>" if named else ""
    return f"<div>{above}{matrix(scores, lambda s: s.feature or '', 'statistic')}</div>"


def _kind(score: Score) -> str:
    """The kind of statistics, without the classifier's name before it."""
    return (score.classifier or "").partition(": ")[2]
