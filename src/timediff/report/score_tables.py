"""Scores as HTML tables: one row a number and one column a generator, or one row a feature and one column a number."""

import html
import math
from collections.abc import Callable, Mapping, Sequence

from timediff.evaluation.registry import Meaning
from timediff.evaluation.score import Score
from timediff.report.meanings import classifier, find_metric, meaning
from timediff.report.page import header, table

VARIED = {"classifier": "classifiers", "cohort": "cohorts"}


def side_by_side(scores: Mapping[str, Sequence[Score]], name: Callable[[Score], str] | None = None) -> str:
    """One row a number, what it means and what is good, its floor, and a column a generator."""
    rows: dict[object, dict[str, Score]] = {}
    for generator, known in scores.items():
        for score in known:
            rows.setdefault(score.key, {})[generator] = score
    body = [
        [_title(row, name), floor_cell(list(row.values())), *(value_cell(row.get(one)) for one in scores)]
        for row in rows.values()
    ]
    shown = table(["number", "real against real", *scores], body, kind="sortable scores")
    return shown + notes([score for known in scores.values() for score in known])


def matrix(scores: Sequence[Score], row: Callable[[Score], str], heading: str) -> str:
    """One row a feature (or what `row` says) and one column a number, each with its floor."""
    columns = list(dict.fromkeys((s.metric, s.what) for s in scores))
    found: dict[str, dict[object, Score]] = {}
    for s in scores:
        found.setdefault(row(s), {})[s.metric, s.what] = s
    titles = [meaning(Score(metric, what, 0)).title for metric, what in columns]
    body = [
        [header(html.escape(name)), *(value_cell(cells.get(column), floor=True) for column in columns)]
        for name, cells in found.items()
    ]
    return table([heading, *titles], body, kind="sortable matrix") + notes(scores)


def value_cell(score: Score | None, *, floor: bool = False) -> str:
    """Value ± standard deviation and, below it, the interval; what is not available says why in its place."""
    if score is None:
        return "<td>–</td>"
    if math.isnan(score.value):
        reason = html.escape(score.note or "no reason was given")
        return f'<td class="absent"><span class="reason">not available: {reason}</span></td>'
    text = f'<span class="part">{whole(score) or number(score.value)}</span>'
    text = (marked(score, text) if floor else text) + spread(score)
    if not (math.isnan(score.low) or math.isnan(score.high)):
        text += f' <span class="interval">{number(score.low)} to {number(score.high)}</span>'
    if floor and not math.isnan(score.floor):
        text += f' <span class="interval">real {number(score.floor)}</span>'
    return f"<td{sort_key(score.value)}>{text}</td>"


def marked(score: Score, text: str) -> str:
    """The text, with a mark where the score is far worse than real against real."""
    return f"<mark>{text} {'▲' if score.value > 0 else '▼'}</mark>" if _far(score) else text


def spread(score: Score) -> str:
    """Its standard deviations, named where there are several."""
    several, text = len(score.std) > 1, ""
    for what, std in score.std.items():
        label = f" {VARIED.get(what, html.escape(what))}" if several else ""
        text += f' <span class="part">± {number(std)}{label}</span>'
    return text


def floor_cell(scores: Sequence[Score]) -> str:
    """The same number for real stays; a range where it differs between generators."""
    floors = [score for score in scores if not math.isnan(score.floor)]
    if not floors:
        return "<td>–</td>"
    low, high = (pick(score.floor for score in floors) for pick in (min, max))
    text = number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"
    text = f'<span class="part">{text}</span>'
    first = floors[0]
    if not (math.isnan(first.floor_low) or math.isnan(first.floor_high)) and low == high:
        text += f' <span class="interval">{number(first.floor_low)} to {number(first.floor_high)}</span>'
    return f"<td{sort_key(low)}>{text}</td>"


def best(says: Meaning) -> str:
    """What a number means and what is good."""
    return f"{says.sentence} Best: {says.good}." if says.good else says.sentence


def whole(score: Score) -> str:
    """A count as text; empty where it is none."""
    return f"{score.value:,.0f}" if meaning(score).whole else ""


def number(value: float) -> str:
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.3f}" if abs(value) < 1000 else f"{value:.4g}"
    return (text if float(text) else text.lstrip("-")).replace("-", "−")


def _title(row: Mapping[str, Score], name: Callable[[Score], str] | None) -> str:
    score = next(iter(row.values()))
    says = meaning(score)
    if name is not None:
        return header(html.escape(name(score)))
    title = f"{says.title}, {classifier(score)}" if score.classifier else says.title
    what = f'<span class="what">{html.escape(best(says))}</span>' if says.sentence else ""
    return header(f"{html.escape(title)}{what}")


def _far(score: Score) -> bool:
    """Far worse than real against real, and not by chance: the interval does not hold what is perfect."""
    if score.low <= 0 <= score.high:
        return False
    floor, found = 0.0 if math.isnan(score.floor) else abs(score.floor), find_metric(score.metric)
    return found is not None and found.mark_beyond is not None and abs(score.value) - floor > found.mark_beyond


def sort_key(value: float) -> str:
    """What the script of the page sorts a cell by."""
    if math.isnan(value):
        return ""
    text = "Infinity" if value == math.inf else "-Infinity" if value == -math.inf else f"{value:.9g}"
    return f' data-sort="{text}"'


def notes(scores: Sequence[Score]) -> str:
    """What must be known of the numbers that there are, each note once."""
    notes = dict.fromkeys(score.note for score in scores if score.note and not math.isnan(score.value))
    return "".join(f'<p class="note">{html.escape(note)}</p>' for note in notes)
