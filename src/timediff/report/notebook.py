"""How models, settings, results and audits look in a notebook: small tables, no patient's value."""

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from timediff.report.page import cell, header, table

if TYPE_CHECKING:
    from timediff.evaluation.audit_results import Audit
    from timediff.evaluation.results import Results

STYLE = "text-align: left; vertical-align: top"


def facts_html(title: str, facts: Mapping[str, Any]) -> str:
    """A title, and a row a fact."""
    rows = [[header(html.escape(name)), cell(html.escape(str(value)))] for name, value in facts.items()]
    return f"<p><b>{html.escape(title)}</b></p>{_left(table((), rows))}"


def results_lines(results: "Results") -> list[str]:
    """The verdicts, one a line, as the command line tells them."""
    from timediff.report.summary import verdict_lines

    protocol = f"{results.settings['protocol']} protocol, " if "protocol" in results.settings else ""
    many = sum(len(results.scores[name]) for name in results.generators)
    return [f"Results of {', '.join(results.generators)}: {protocol}{many:,} scores", *verdict_lines(results)]


def results_html(results: "Results") -> str:
    """The verdicts, and the numbers that a decision rests on."""
    from timediff.report.summary import headings, scores_rows

    first, *verdicts = results_lines(results)
    rows = [[header(html.escape(name)), *map(cell, map(html.escape, cells))] for name, *cells in scores_rows(results)]
    return f"<p><b>{html.escape(first)}</b></p>{_listed(verdicts)}{table(headings(results), rows)}"


def audit_lines(audit: "Audit") -> list[str]:
    from timediff.report.audit_verdicts import audit_verdicts

    attacks = sorted({score.classifier for score in audit.scores if score.classifier})
    told = [f"{one.question} {one.word}. {' '.join(one.sentences)}" for one in audit_verdicts(audit)]
    return [f"Audit by {len(attacks)} attacks: {', '.join(attacks)}", *told]


def audit_html(audit: "Audit") -> str:
    first, *verdicts = audit_lines(audit)
    return f"<p><b>{html.escape(first)}</b></p>{_listed(verdicts)}"


def _listed(lines: Sequence[str]) -> str:
    return "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in lines) + "</ul>"


def _left(drawn: str) -> str:
    """Notebooks align cells to the right."""
    return drawn.replace("<td>", f'<td style="{STYLE}">').replace('<th scope="row">', f'<th style="{STYLE}">')
