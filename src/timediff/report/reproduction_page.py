"""The page of a reproduction: the paper's numbers beside ours, what stands in for what, what was cut, and the holes."""

import html
import math
from collections.abc import Iterator, Sequence
from itertools import count, groupby
from pathlib import Path

from timediff.evaluation.figure_data import Charts
from timediff.report.figures import figure_json
from timediff.report.gallery import placed
from timediff.report.interactive import SCRIPT, STYLE
from timediff.report.page import cell, document, header, section, table
from timediff.report.score_tables import number
from timediff.reproduction.results import Described, Drawn, Line, Reproduction
from timediff.runtime.files import write_atomically

PAPER = "Tian et al., Reliable Generation of Privacy-preserving Synthetic EHR Time Series via Diffusion Models"
ABOUT = (
    f"Tables and figures of {PAPER}, computed anew by TimeDiff: the published number beside ours. <b>±</b> is a "
    "standard deviation: the paper's over ten repetitions; ours over repetitions of the classifiers and, where there "
    "are several training seeds, over these too. <b>A number of a data set that stands in for the paper's is no "
    "reproduction of its number</b>: it shows what the method does on other stays."
)
OWN = "the paper's own"
STAND_IN = "stands in for {paper}: {what}"
NAMES = {"stocks": "Stocks", "energy": "Energy", "mimic3": "MIMIC-III", "mimic4": "MIMIC-IV", "eicu": "eICU"}
KEPT = ("number", "paper", "ours", "note")  # columns that stand also where they are empty
VARIED = {"classifier": "repetitions", "cohort": "seeds"}
WHOLE = ("stays", "features", "steps")
PAGE_STYLE = """
.stand-in { color: var(--care); font-weight: 600; }
.rows td { white-space: nowrap; } .rows td:last-child { white-space: normal; text-align: left; min-width: 14rem; }
.rows thead th:last-child { text-align: left; }
.rows tbody th { white-space: nowrap; }
.sources td { text-align: left; } .sources th:not(:first-child) { text-align: left; }
"""


def write_reproduction(path: Path, results: Reproduction) -> None:
    write_atomically(path, page(results))


def page(results: Reproduction) -> str:
    numbers = count(1)
    sections = [_cut(results), _datasets(results)]
    for experiment in results.experiments:
        sections.append(_experiment(experiment, results, numbers))
    failed = len(results.failures)
    above = (
        f'<div class="warning"><p>{failed} row{"s" * (failed != 1)} could not be had, because something failed; the '
        "reason stands in each.</p></div>\n"
        if failed
        else ""
    )
    return document(
        "The paper, table by table", ABOUT, results.facts, sections, above=above, style=STYLE + PAGE_STYLE,
        script=SCRIPT, figures=bool(results.figures),
    )  # fmt: skip


def _cut(results: Reproduction) -> str:
    """What the budget has changed."""
    if not results.cuts:
        return section("What was cut", "<p>Nothing: there was no budget, or all fits into it.</p>")
    lines = "".join(f"<li>{html.escape(one)}</li>" for one in results.cuts)
    return section(
        "What was cut",
        "<p>The budget does not allow all that the paper did. Compare the numbers below with the paper's only with "
        f'this in mind:</p>\n<ul class="plain">{lines}</ul>',
    )


def _datasets(results: Reproduction) -> str:
    rows = []
    for one in results.datasets:
        paper = NAMES.get(one.paper, one.paper)
        what = STAND_IN.format(paper=paper, what=one.stands_in) if one.stands_in else OWN
        kind = ' class="stand-in"' if one.stands_in else ""
        stays = "–" if one.stays is None else f"{one.stays:,}"
        said = f'<td class="absent">{html.escape(one.hole)}</td>' if one.hole else cell("")
        rows.append([header(html.escape(one.title)), f"<td{kind}>{html.escape(what)}</td>", cell(stays), said])
    return section("Data sets", table(("data set", "what it is", "stays", "what is wrong"), rows, kind="sources"))


def _experiment(experiment: Described, results: Reproduction, numbers: "count[int]") -> str:
    parts = [f"<p>{html.escape(experiment.place)} of the paper; <code>--only {experiment.name}</code>.</p>"]
    if experiment.differs:
        parts.append(f"<p>What differs, whatever the budget: {html.escape(experiment.differs)}</p>")
    lines = [line for line in results.lines if line.experiment == experiment.name]
    for title, several in _by_dataset(lines):
        instead = several[0].stands_in_for
        mark = f' <span class="stand-in">in place of {html.escape(instead)}</span>' if instead else ""
        parts.append(f"<h3>{html.escape(title)}{mark}</h3>\n{_table(several)}")
    drawn = [one for one in results.figures if one.experiment == experiment.name]
    parts += [_figures(title, several, numbers) for title, several in _of_dataset(drawn)]
    if not lines:
        parts.append("<p>There is no data set for it.</p>")
    return section(html.escape(experiment.title), "\n".join(parts))


def _by_dataset(lines: Sequence[Line]) -> Iterator[tuple[str, list[Line]]]:
    """Data sets in their order; within each, arm after arm and number after number, so that methods stand together."""
    order = {title: place for place, title in enumerate(dict.fromkeys(line.dataset for line in lines))}
    metrics = {key: place for place, key in enumerate(dict.fromkeys((line.arm, line.metric) for line in lines))}
    known = sorted(lines, key=lambda line: (order[line.dataset], metrics[line.arm, line.metric]))
    for title, several in groupby(known, lambda line: line.dataset):
        yield title, list(several)


def _table(lines: Sequence[Line]) -> str:
    """A row a number; columns in which nothing stands are left out, and rows without numbers are behind a line."""
    shown = _rows(lines)
    reasons = dict.fromkeys(line.hole for line in lines)
    if len(reasons) == 1 and lines[0].hole and len(lines) > 1:
        said = html.escape(f"{len(lines)} rows without a number of ours: {lines[0].hole}")
        return f"<details><summary>{said}</summary>\n{shown}\n</details>"
    return shown


def _rows(lines: Sequence[Line]) -> str:
    columns = {
        "number": [html.escape(line.metric) for line in lines],
        "paper": [_published(line) for line in lines],
        "ours": ["–" if line.hole else _value(line) for line in lines],
        "stays": [f"{line.n:,}" if line.n else "–" for line in lines],
        "trained": [_trained(line) for line in lines],
        "measured": ["–" if math.isnan(line.seconds) else f"{line.seconds:,.0f} s" for line in lines],
        "note": [html.escape(line.hole or line.note) for line in lines],
    }
    names = [" · ".join(filter(None, (line.method, line.arm, line.classifier))) for line in lines]
    heading = "method"
    if not any(names):  # what is told of the data set itself
        heading, names = "number", [line.metric for line in lines]
        del columns["number"]
    kept = {name: texts for name, texts in columns.items() if name in KEPT or {*texts} - {"–", ""}}
    rows = [
        [header(html.escape(name)), *(cell(texts[place]) for texts in kept.values())]
        for place, name in enumerate(names)
    ]
    return table([heading, *kept], rows, kind="sortable rows")


def _value(line: Line) -> str:
    if math.isnan(line.value):
        return "–"
    text = _number(line.metric, line.value)
    several = len(line.std) > 1
    for what, std in line.std.items():
        text += f' <span class="part">± {number(std)}{f" {VARIED.get(what, what)}" if several else ""}</span>'
    return text


def _published(line: Line) -> str:
    if math.isnan(line.published):
        return "–"
    text = _number(line.metric, line.published)
    return text if math.isnan(line.published_std) else f"{text} ± {number(line.published_std)}"


def _number(metric: str, value: float) -> str:
    return f"{value:,.0f}" if metric in WHOLE else number(value)


def _trained(line: Line) -> str:
    """How long, with how many updates of how many, and which seeds."""
    if math.isnan(line.fit_seconds):
        return "–"
    updates = ""
    if line.updates is not None:
        whole = f" of {line.full_updates:,}" if line.full_updates and line.full_updates != line.updates else ""
        updates = f", {line.updates:,}{whole} updates"
    seeds = ", ".join(map(str, line.seeds))
    return f"{line.fit_seconds:,.0f} s{updates}; seed {seeds}"


def _of_dataset(drawn: Sequence[Drawn]) -> Iterator[tuple[str, list[Drawn]]]:
    for title in dict.fromkeys(one.dataset for one in drawn):
        yield title, [one for one in drawn if one.dataset == title]


def _figures(title: str, drawn: Sequence[Drawn], numbers: "count[int]") -> str:
    """Behind a line that opens, method by method."""
    parts = []
    for method in dict.fromkeys(one.method for one in drawn):
        shown = "\n".join(
            placed(figure_json(one.figure.content), one.figure.title, numbers)
            for one in drawn
            if one.method == method and not isinstance(one.figure.content, Charts)
        )
        parts.append(f'<h4>{html.escape(method)}</h4>\n<div class="thirds">\n{shown}\n</div>')
    body = "\n".join(parts)
    return f"<details><summary>Figures of {html.escape(title)}</summary>\n{body}\n</details>"
