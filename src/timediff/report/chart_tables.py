"""Chart tables: synthetic stays as they would stand in a patient's chart, a row a feature and a column a step."""

import html
from collections.abc import Container

from timediff.evaluation.figure_data import Charts
from timediff.evaluation.results import Results
from timediff.report.page import cell, header, section, table

MOST_STATIC = 12  # named above a chart
ABOUT = (
    "Stays that the generator made, evenly taken from the cohort, written as the training file is: blank = not "
    "measured. Could they be of patients you have seen?"
)


def chart_tables(results: Results, *, withheld: Container[str] = ()) -> str:
    """A section with the charts of each generator. `withheld` are those that hold copies of real stays."""
    shown = [
        (name, figure.content)
        for name in results.generators
        for figure in results.figures
        if isinstance(figure.content, Charts) and figure.generator == name and name not in withheld
    ]
    if not shown:
        return ""
    parts = "\n".join(
        f"<details><summary>{len(charts.stays)} stays of {html.escape(name)}</summary>\n{_charts(charts)}\n</details>"
        for name, charts in shown
    )
    return section("Looks like the training file", f"<p>{ABOUT}</p>\n{parts}")


def _charts(charts: Charts) -> str:
    hourly = charts.step == "1h"
    heading = "hour" if hourly else f"step of {charts.step}"
    names = [f"{name} ({unit})" if unit else name for name, unit in zip(charts.features, charts.units, strict=True)]
    content = ""
    if charts.steps < charts.of_steps:
        content += f'<p class="note">The first {charts.steps:,} of {charts.of_steps:,} steps.</p>'
    for stay, about, rows in zip(charts.stays, charts.about, charts.cells, strict=True):
        body = [
            [header(html.escape(name)), *(cell(html.escape(text)) for text in row)]
            for name, row in zip(names, rows, strict=True)
        ]
        columns = [heading, *map(str, range(charts.steps))]
        content += f"<h4>{html.escape(_caption(stay, about))}</h4>\n{table(columns, body, kind='chart')}\n"
    return content


def _caption(stay: str, about: dict[str, str]) -> str:
    known = [f"{name}: {text or '–'}" for name, text in about.items()]
    more = f", and {len(known) - MOST_STATIC} more" if len(known) > MOST_STATIC else ""
    return ", ".join([f"Stay {stay}", *known[:MOST_STATIC]]) + more
