"""An evaluation in the terminal: the numbers that a decision rests on, and the three verdicts."""

import math
from collections.abc import Iterator

from rich.table import Table
from rich.text import Text

from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.report.meanings import classifier, find_metric, meaning
from timediff.report.verdicts import verdicts


def headings(results: Results) -> tuple[str, ...]:
    """Of the columns of `scores_rows`."""
    return "number", "good value", "real against real", *results.generators


def scores_rows(results: Results) -> Iterator[tuple[str, ...]]:
    """One row a number of the whole cohort; one column a generator, after real against real."""
    rows = {score.key: score for name in results.generators for score in results.scores[name] if shown(score)}
    for key, first in rows.items():
        found = {name: {s.key: s for s in results.scores[name]}.get(key) for name in results.generators}
        who = classifier(first)
        title = meaning(first).title + (f" ({who})" if who else "")
        yield title, meaning(first).good, _number(first.floor), *(_cell(found[name]) for name in results.generators)


def scores_table(results: Results) -> Table:
    """The same for the terminal."""
    several = any("cohort" in score.std for name in results.generators for score in results.scores[name])
    varied = "the cohorts of a generator" if several else "classifiers' seeds"
    table = Table(caption=f"± is the standard deviation over {varied}; the report has intervals, features, subgroups.")
    first, *others = headings(results)
    table.add_column(first, overflow="fold")
    for heading in others:
        table.add_column(Text(heading), justify="right")
    for row in scores_rows(results):
        table.add_row(*map(Text, row))
    return table


def verdict_lines(results: Results) -> Iterator[str]:
    for name in results.generators:
        whose = f"{name}: " if len(results.generators) > 1 else ""
        for verdict in verdicts(results, name):
            yield f"{whose}{verdict.question} {verdict.word}. {' '.join(verdict.sentences[:1])}".strip()
    for warning in results.warnings:
        yield f"WARNING: {warning}"


def shown(score: Score) -> bool:
    """Whether a number is among those that a decision rests on."""
    found = find_metric(score.metric)
    headline = found is None or score.classifier is None or score.classifier.startswith(found.headline)
    return score.feature is None and score.group is None and headline and meaning(score).in_terminal


def _cell(score: Score | None) -> str:
    if score is None:
        return "–"
    if math.isnan(score.value):
        return "not available"  # and not "–", which says that there is no such number
    std = score.std.get("cohort", score.std.get("classifier"))
    if meaning(score).whole:
        return f"{score.value:,.0f}"
    return _number(score.value) + (f" ± {std:.3f}" if std is not None else "")


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3f}"
