"""The report of an evaluation, one HTML file: verdicts first, then every number behind them. It needs no network."""

import html
import importlib.util
import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from timediff.files import write_atomically
from timediff.metrics.record import Score
from timediff.report.gallery import GALLERIES, augmentation, gallery, placed
from timediff.report.interactive import SCRIPT, STYLE
from timediff.report.meanings import FAMILIES, QUESTIONS, meaning
from timediff.report.page import document, facts_table, require_plotly, section
from timediff.report.score_tables import FAR, best, matrix, side_by_side
from timediff.report.terminal import FEWEST
from timediff.report.verdicts import RULES, Verdict, verdicts
from timediff.results import Results

ABOUT = "Synthetic stays judged against real ones, by three questions; below the verdicts, every number behind them. "
SHOWN = f"Real stays appear only as aggregates of at least {FEWEST}; every single stay shown is synthetic."
INTERNAL = "<b>For internal use only</b>: on the maps of all stays every real stay is a point."
CLASSES = {"good": "good", "with care": "care", "poor": "poor", "not measured": "none"}
FEATURES = (
    "Each feature by itself; below each number its 95 % interval and the same number for real against real stays. "
    f"▲ ▼ mark what is more than {FAR:g} worse than real against real. A heading sorts."
)
PROTOCOLS = {
    "strict": (
        "Protocol strict: everything is scaled by what real training stays are like; looks and usefulness are judged "
        "only against real stays that the generator has not seen; only the questions of privacy read training stays."
    ),
    "paper": (
        "Protocol paper: the definitions of the TimeDiff paper and of the works it cites, so that its tables can be "
        "compared. It can be fooled: for a decision about a release take the strict one."
    ),
}
READING = (
    "<b>Real against real</b> (the floor): the same number with real stays in place of the synthetic ones. No "
    "generator can be expected to do better; judge each number by its distance from it.",
    "<b>±</b> is one standard deviation over repetitions: of the judges, which are trained anew each time, or of the "
    "cohorts, where several of one generator were given. <b>a to b</b> below a number is its 95 % interval, had other "
    "patients come to the hospital. Where two intervals overlap widely, the numbers do not differ surely.",
    "<b>Stay</b>: one patient's time in intensive care. <b>Training stays</b>: those that the generator learnt from. "
    "<b>Unseen stays</b>: real ones that it did not learn from. <b>AUC, AUROC</b>: the chance to name the right one of "
    "two; 0.5 is guessing.",
    "<b>–</b> was not asked for; <b>not available</b> could not be computed, and it says why.",
)


def write_report(path: Path, results: Results) -> None:
    """Writes the page: warnings, verdicts, facts, evidence by question, figures, how to read it."""
    if results.pictures:
        require_plotly()
    names = [name for name in results.generators if name in results.scores]
    title = f"Evaluation of synthetic stays: {', '.join(results.generators)}"
    numbers = count()
    sections = [
        section("Verdicts", _verdicts(results, names)),
        section("Facts", facts_table(results.facts) + _settings(results.settings)),
        *(section(question, _evidence(results, names, question, numbers)) for question in QUESTIONS),
        _groups(results, names),
        *(gallery(results, kind, numbers) for kind in GALLERIES),
        section("How to read this page", _reading(results)),
        section("What was not measured", _unmeasured(results)),
        section("Decision", SIGN),
    ]
    drawn = next(numbers) > 0
    warnings = "".join(f"<p><b>Warning:</b> {html.escape(warning)}</p>" for warning in results.warnings)
    box = f'<div class="warning" role="alert">{warnings}</div>\n' if warnings else ""
    kept = [one for one in sections if one]
    about = ABOUT + (INTERNAL if results.settings.get("internal") else SHOWN)
    page = document(title, about, {}, kept, above=box, style=STYLE, script=SCRIPT, figures=drawn)
    write_atomically(path, page)


SIGN = (
    '<table class="facts sign"><tbody><tr><th scope="row">May be used for</th><td></td></tr>'
    '<tr><th scope="row">May be given to</th><td></td></tr><tr><th scope="row">Name, date, signature</th><td></td></tr>'
    "</tbody></table>"
)


def _verdicts(results: Results, names: Sequence[str]) -> str:
    """A card a question, in it the answer for every generator, and the rules below."""
    answers = {name: verdicts(results, name) for name in names}
    cards = ""
    for place, question in enumerate(QUESTIONS):
        told = "".join(_answer(name, answers[name][place], len(results.generators) > 1) for name in names)
        cards += f'<div class="verdict"><h3>{question}</h3>{told}</div>\n'
    rules = "".join(f"<li><b>{question}</b> {html.escape(rule)}</li>" for question, rule in RULES.items())
    told = f"<details><summary>The rules behind these words</summary><ul class='plain'>{rules}</ul></details>"
    return f'<div class="verdicts">\n{cards}</div>\n{told}'


def _answer(name: str, verdict: Verdict, named: bool) -> str:
    heading = f"<h4>{html.escape(name)}</h4>" if named else ""
    words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in verdict.sentences)
    return f'{heading}<p><span class="grade {CLASSES[verdict.grade]}">{verdict.word}</span></p>{words}'


def _settings(settings: Mapping[str, Any]) -> str:
    if not settings:
        return ""
    plain = {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
    return (
        f"<details><summary>Settings: what to give again for the same numbers</summary>{facts_table(plain)}</details>"
    )


def _evidence(results: Results, names: Sequence[str], question: str, numbers: "count[int]") -> str:
    """The tables of the families that answer a question."""
    content = ""
    for metric, family in FAMILIES.items():
        scores = {name: [s for s in results.scores[name] if s.metric == metric and s.group is None] for name in names}
        if family.question == question and any(scores.values()):
            table = TABLES.get(metric, _plain)(scores, numbers)
            content += f"<h3>{family.title}</h3>\n<p>{family.sentence}</p>\n{table}\n"
    return content or "<p>Nothing was measured.</p>"


Table = Callable[[Mapping[str, Sequence[Score]], "count[int]"], str]


def _plain(scores: Mapping[str, Sequence[Score]], numbers: "count[int]") -> str:
    return side_by_side(scores)


def _fidelity(scores: Mapping[str, Sequence[Score]], numbers: "count[int]") -> str:
    overall = {name: [s for s in known if s.feature is None] for name, known in scores.items()}
    content = side_by_side(overall) if any(overall.values()) else ""
    each = {name: [s for s in known if s.feature is not None] for name, known in scores.items()}
    if any(each.values()):
        content += f"<h3>Feature by feature</h3><p>{FEATURES}</p>"
        content += _by_generator(each, lambda s: s.feature or "", "feature") + _legend(each)
    return content


def _tstr(scores: Mapping[str, Sequence[Score]], numbers: "count[int]") -> str:
    """What each classifier loses, generators side by side; all its numbers below."""
    gaps = {name: [s for s in known if s.what == "gap"] for name, known in scores.items()}
    content = ""
    if any(gaps.values()):
        says = meaning(Score("tstr", "gap", 0))
        content = f"<h4>What is lost</h4><p>{best(says)}</p>"
        content += side_by_side(gaps, lambda s: s.judge or "")
    every = _by_generator(scores, lambda s: s.judge or "", "classifier") + _legend(scores)
    return f"{content}<details><summary>Every number of every classifier</summary>{every}</details>"


def _tsrtr(scores: Mapping[str, Sequence[Score]], numbers: "count[int]") -> str:
    content = _by_generator(scores, lambda s: s.judge or "", "classifier")
    figure = augmentation(scores)
    if figure["data"] and importlib.util.find_spec("plotly") is not None:
        content = placed(figure, "Mean AUROC over classifiers by share of synthetic stays", numbers) + content
    return content


TABLES: dict[str, Table] = {"fidelity": _fidelity, "tstr": _tstr, "tsrtr": _tsrtr}


def _by_generator(scores: Mapping[str, Sequence[Score]], row: Callable[[Score], str], heading: str) -> str:
    """A table a generator, named where there are several."""
    named = len(scores) > 1
    return "".join(
        (f"<h4>{html.escape(name)}</h4>" if named else "") + matrix(known, row, heading)
        for name, known in scores.items()
        if known
    )


def _legend(scores: Mapping[str, Sequence[Score]]) -> str:
    """What the columns mean, each once."""
    known = dict.fromkeys(meaning(s) for known in scores.values() for s in known)
    items = "".join(
        f"<li><b>{html.escape(one.title)}</b>: {html.escape(best(one))}</li>" for one in known if one.sentence
    )
    return f"<details><summary>What the columns mean</summary><ul class='plain'>{items}</ul></details>"


def _groups(results: Results, names: Sequence[str]) -> str:
    """Scores about some stays only: whom the generator serves worse."""
    scores = {name: [s for s in results.scores[name] if s.group is not None] for name in names}
    if not any(scores.values()):
        return ""
    about = "The same numbers among some stays only. Of several features: the mean of the absolute values, and the "
    about += (
        "largest. A group that is much worse than the others is not well represented. Every number is in scores.csv."
    )
    content = f"<p>{about}</p>" + _by_generator(scores, lambda s: s.group or "", "group") + _legend(scores)
    return section("Groups of patients", content)


def _reading(results: Results) -> str:
    protocol = PROTOCOLS.get(str(results.settings.get("protocol", "")), "")
    points = [*READING, *([html.escape(protocol)] if protocol else [])]
    return f'<ul class="plain">{"".join(f"<li>{point}</li>" for point in points)}</ul>'


def _unmeasured(results: Results) -> str:
    """Families that nobody asked for, and how many numbers could not be computed."""
    known = {s.metric for scores in results.scores.values() for s in scores if not math.isnan(s.value)}
    absent = [f"{family.title} ({family.question})" for metric, family in FAMILIES.items() if metric not in known]
    for name in results.generators:
        lost = sum(math.isnan(s.value) for s in results.scores.get(name, ()))
        if lost:
            absent.append(f"{name}: {lost} of {len(results.scores[name])} numbers are not available; each says why.")
    absent.append("Whether single patients could be recognised by what someone already knows of them.")
    absent.append("Whether rare courses of disease are there; most numbers here are averages.")
    return f'<ul class="plain">{"".join(f"<li>{html.escape(one)}</li>" for one in absent)}</ul>'
