"""The report of an evaluation, one HTML file: verdicts first, then every number behind them. It needs no network."""

import html
import json
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.report.chart_tables import chart_tables
from timediff.report.clinical_tables import clinical_tables
from timediff.report.gallery import augmentation, galleries, placed, withheld
from timediff.report.interactive import SCRIPT, STYLE
from timediff.report.meanings import ASKED, OTHER, QUESTIONS, families, find_metric, meaning
from timediff.report.number_tables import by_number
from timediff.report.page import cell, document, facts_table, header, plotly_is_here, section, table
from timediff.report.panel_tables import panel
from timediff.report.plain_words import CLASSES, answer, overall
from timediff.report.score_tables import best, side_by_side
from timediff.report.training_time import training_time
from timediff.report.verdicts import RULES, Verdict, verdicts
from timediff.runtime.files import explained, write_atomically

ABOUT = "Synthetic stays compared with real ones, by three questions; below the verdicts, every number behind them. "
SHOWN = f"Real stays appear only as aggregates of at least {MIN_AGGREGATE}. "
SINGLE = "Single stays are shown only of cohorts in which no copy of a real stay was found. "
WITHHELD = "Single stays of {name} are not shown: {why} "
INTERNAL = "<b>For internal use only</b>: on the maps of all stays every real stay is a point."
FEATURES = (
    "Each feature by itself; beside each number its 95 % interval and the same number for real against real stays. "
    "▲ ▼ mark what is far worse than real against real{far}. A heading sorts."
)
PROTOCOLS = {
    "strict": (
        "Protocol strict: everything is scaled by what real training stays are like; looks and usefulness are measured "
        "only against real stays that the generator has not seen; only the questions of privacy read training stays."
    ),
    "paper": (
        "Protocol paper: the definitions of the TimeDiff paper and of the works it cites, so that its tables can be "
        "compared. It can be fooled: for a decision about a release take the strict one."
    ),
}
READING = (
    "<b>Real against real</b> (the floor): the same number with real stays in place of the synthetic ones. No "
    "generator can be expected to do better; read each number by its distance from it.",
    "<b>±</b> is one standard deviation over repetitions: of the classifiers, which are trained anew each time, or of "
    "the cohorts, where several of one generator were given. <b>a to b</b> below a number is its 95 % interval, had "
    "other patients come to the hospital. Where two intervals overlap widely, the numbers do not differ surely.",
    "<b>Stay</b>: one patient's time in intensive care. <b>Training stays</b>: what the generator was trained on. "
    "<b>Unseen stays</b>: real ones that it was not trained on. <b>AUC, AUROC</b>: the chance to name the right one of "
    "two; 0.5 is guessing.",
    "<b>–</b>: there is no such number; <b>not available</b>: it could not be computed, and it says why below; "
    f"<b>hidden</b>: fewer than {MIN_AGGREGATE} real stays say it.",
)


def write_report(path: Path, results: Results) -> None:
    """Writes the page: warnings, verdicts, facts, evidence by question, figures, how to read it."""
    names = [name for name in results.generators if name in results.scores]
    numbers = count()
    sections = [
        section("Verdicts", _verdicts(results, names)),
        training_time(results, numbers),
        *(section(question, _evidence(results, names, question, numbers)) for question in QUESTIONS),
        _others(results, names),
        _groups(results, names),
        chart_tables(results, withheld=withheld(results)),
        *(galleries(results, numbers) if plotly_is_here() else [section("Figures", NO_PLOTLY)]),
        section("Facts", facts_table(results.facts) + _settings(results.settings)),
        section("How to read this page", _reading(results)),
        section("What was not measured", _unmeasured(results)),
        section("Decision", SIGN),
    ]
    drawn = next(numbers) > 0
    warnings = "".join(f"<p><b>Warning:</b> {html.escape(warning)}</p>" for warning in results.warnings)
    box = f'<div class="warning" role="alert">{warnings}</div>\n' if warnings else ""
    kept = [one for one in sections if one]
    about = ABOUT + (INTERNAL if results.settings.get("internal") else SHOWN) + _single(results)
    short = "".join(f'<p class="short">{html.escape(sentence)}</p>' for sentence in overall(results, names))
    page = document(
        _title(results), about, _judged(results), kept, above=box + short, style=STYLE, script=SCRIPT, figures=drawn
    )
    with explained(path):
        path.parent.resolve().mkdir(parents=True, exist_ok=True)
    write_atomically(path, page)


NO_PLOTLY = (
    "<p>Left out: plotly is not installed. <code>pip install 'timediff-icu[evaluate]'</code>, and draw it again.</p>"
)
SIGN = table(
    (),
    [[header(what), cell("")] for what in ("May be used for", "May be given to", "Name, date, signature")],
    kind="facts sign",
)


def _title(results: Results) -> str:
    """What was judged, and against what."""
    *others, last = results.generators or ("nobody",)
    names = f"{', '.join(others)} and {last}" if others else last
    held_out = results.facts.get("held-out stays")
    return f"Synthetic stays of {names}, judged by {held_out or 'unseen'} real ones"


def _judged(results: Results) -> dict[str, str]:
    """Which cohorts these are: how many stays, and by which run, seed and version."""
    found = {}
    for name in results.generators:
        stays, made = results.facts.get(f"stays of {name}"), results.facts.get(f"{name}, made by")
        said = [f"{stays} stays" if stays and f"{stays} stays" not in (made or "") else "", made or ""]
        if any(said):
            found[name] = "; ".join(filter(None, said))
    return found


def _single(results: Results) -> str:
    """Of which cohorts single stays are shown, and why not of the others."""
    whys = withheld(results)
    shown = SINGLE if len(whys) < len(results.generators) else ""
    return shown + "".join(WITHHELD.format(name=html.escape(n), why=html.escape(why)) for n, why in whys.items())


def _verdicts(results: Results, names: Sequence[str]) -> str:
    """A card a question, in it the answer for every generator, and the rules below."""
    answers, several = {name: verdicts(results, name) for name in names}, len(results.generators) > 1
    cards = ""
    for place, question in enumerate(QUESTIONS):
        words = "".join(_answer(name, answers[name][place], several) for name in names)
        words = f'<div class="answers">{words}</div>' if several else words
        cards += f'<div class="verdict"><h3>{question}</h3>{words}</div>\n'
    rules = "".join(f"<li><b>{question}</b> {html.escape(rule)}</li>" for question, rule in RULES.items())
    below = f"<details><summary>The rules behind these words</summary><ul class='plain'>{rules}</ul></details>"
    return f'<div class="verdicts{" several" if several else ""}">\n{cards}</div>\n{below}'


def _answer(name: str, verdict: Verdict, named: bool) -> str:
    """Words before numbers: the grade, a plain sentence, and what it rests on."""
    heading = f"<h4>{html.escape(name)}</h4>" if named else ""
    words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in verdict.sentences)
    said = f'<p class="said">{html.escape(answer(verdict).sentence)}</p>'
    grade = f'<p><span class="grade {CLASSES.get(verdict.grade, "none")}">{verdict.word}</span></p>'
    return f"<div>{heading}{grade}{said}{words}</div>"


def _settings(settings: Mapping[str, Any]) -> str:
    if not settings:
        return ""
    plain = {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in settings.items()}
    return (
        f"<details><summary>Settings: what to give again for the same numbers</summary>{facts_table(plain)}</details>"
    )


def _evidence(results: Results, names: Sequence[str], question: str, numbers: "count[int]") -> str:
    """The tables of the metrics that answer a question."""
    content = ""
    for metric in families(_measured(results)):
        scores = _of_metric(results, names, metric.name)
        if ASKED[metric.question] == question and any(scores.values()):
            layout = LAYOUTS.get(metric.name, _plain)(scores, numbers)
            content += f"<h3>{html.escape(metric.title)}</h3>\n<p>{html.escape(metric.sentence)}</p>\n{layout}\n"
    return content or "<p>Nothing was measured.</p>"


def _others(results: Results, names: Sequence[str]) -> str:
    """Numbers of metrics that are not installed here, under their own names."""
    content = ""
    for metric in dict.fromkeys(_measured(results)):
        if find_metric(metric) is None:
            about = f"<p>Install the package that has the metric {html.escape(metric)} for what its numbers mean.</p>"
            content += f"<h3>{html.escape(metric)}</h3>\n{about}\n{side_by_side(_of_metric(results, names, metric))}\n"
    return section(OTHER, content) if content else ""


def _measured(results: Results) -> list[str]:
    return [score.metric for scores in results.scores.values() for score in scores]


def _of_metric(results: Results, names: Sequence[str], metric: str) -> dict[str, list[Score]]:
    return {name: [s for s in results.scores[name] if s.metric == metric and s.group is None] for name in names}


Layout = Callable[[Mapping[str, Sequence[Score]], "count[int]"], str]


def _plain(scores: Mapping[str, Sequence[Score]], numbers: "count[int]") -> str:
    """Numbers of whole cohorts, generators side by side; below them, feature by feature."""
    overall = {name: [s for s in known if s.feature is None] for name, known in scores.items()}
    content = side_by_side(overall) if any(overall.values()) else ""
    each = {name: [s for s in known if s.feature is not None] for name, known in scores.items()}
    if any(each.values()):
        limits = {m.mark_beyond for known in each.values() for s in known if (m := find_metric(s.metric))} - {None}
        far = "".join(f" (by more than {limit:g})" for limit in limits)
        content += f"<h3>Feature by feature</h3><p>{FEATURES.format(far=far)}</p>"
        content += by_number(each, lambda s: s.feature or "", "feature")
    return content


def _tstr(scores: Mapping[str, Sequence[Score]], numbers: "count[int]") -> str:
    """What each classifier loses, generators side by side; all its numbers below."""
    gaps = {name: [s for s in known if s.what == "gap"] for name, known in scores.items()}
    content = _events(scores)
    scores = {name: [s for s in known if s.what != "events"] for name, known in scores.items()}
    if any(gaps.values()):
        says = meaning(Score("tstr", "gap", 0))
        content += f"<h4>What is lost</h4><p>{best(says)}</p>"
        content += side_by_side(gaps, lambda s: s.classifier or "")
    every = by_number(scores, lambda s: s.classifier or "", "classifier")
    return f"{content}<details><summary>Every number of every classifier</summary>{every}</details>"


def _events(scores: Mapping[str, Sequence[Score]]) -> str:
    """On how many stays of the rarer outcome the numbers rest, which is the same for all generators."""
    found = next((s for known in scores.values() for s in known if s.what == "events"), None)
    if found is None:
        return ""
    if math.isnan(found.value):
        return f"<p><b>{html.escape(found.note[:1].upper() + found.note[1:])}.</b> {RESTS}</p>"
    return f"<p><b>{found.value:,.0f} of {found.n:,} unseen stays have the rarer outcome.</b> {RESTS}</p>"


RESTS = "Every number here rests on so many events, and not on more."


def _tsrtr(scores: Mapping[str, Sequence[Score]], numbers: "count[int]") -> str:
    above = _events(scores)
    scores = {name: [s for s in known if s.what != "events"] for name, known in scores.items()}
    content = by_number(scores, lambda s: s.classifier or "", "classifier")
    figure = augmentation(scores)
    if figure["data"] and plotly_is_here():
        content = placed(figure, "Mean AUROC over classifiers by fraction of synthetic stays", numbers) + content
    return above + content


def _panel(scores: Mapping[str, Sequence[Score]], numbers: "count[int]") -> str:
    return panel(scores)


# What is better shown in another way than `_plain`.
LAYOUTS: dict[str, Layout] = {
    "discriminative": _panel,
    "clinical": clinical_tables,
    "tstr": _tstr,
    "tsrtr": _tsrtr,
}


def _groups(results: Results, names: Sequence[str]) -> str:
    """Scores about some stays only: whom the generator serves worse."""
    scores = {name: [s for s in results.scores[name] if s.group is not None] for name in names}
    if not any(scores.values()):
        return ""
    about = "The same numbers among some stays only. Of several features: the mean of the absolute values, and the "
    about += (
        "largest. A group that is much worse than the others is not well represented. Every number is in scores.csv."
    )
    apart = {name: [s for s in known if s.what != "all"] for name, known in scores.items()}
    few = [f"{name}, {s.group}: {s.note}." for name, known in scores.items() for s in known if s.what == "all"]
    items = "".join(f"<li>{html.escape(one)}</li>" for one in few)
    content = f"<p>{about}</p>" + by_number(apart, lambda s: s.group or "", "group")
    content += f"<h4>Groups that are not compared</h4><ul class='plain'>{items}</ul>" if few else ""
    return section("Groups of patients", content)


def _reading(results: Results) -> str:
    protocol = PROTOCOLS.get(str(results.settings.get("protocol", "")), "")
    points = [*READING, *([html.escape(protocol)] if protocol else [])]
    return f'<ul class="plain">{"".join(f"<li>{point}</li>" for point in points)}</ul>'


def _unmeasured(results: Results) -> str:
    """Metrics that nobody asked for, and how many numbers could not be computed."""
    known = {s.metric for scores in results.scores.values() for s in scores if not math.isnan(s.value)}
    absent = [f"{metric.title} ({ASKED[metric.question]})" for metric in families() if metric.name not in known]
    for name in results.generators:
        lost = sum(math.isnan(s.value) for s in results.scores.get(name, ()))
        if lost:
            absent.append(f"{name}: {lost} of {len(results.scores[name])} numbers are not available; each says why.")
    absent.append("Whether single patients could be recognised by what someone already knows of them.")
    absent.append("Whether rare courses of disease are there; most numbers here are averages.")
    return f'<ul class="plain">{"".join(f"<li>{html.escape(one)}</li>" for one in absent)}</ul>'
