"""What all pages share: their look, tables and sections. A page needs no network, and its policy forbids it any."""

import html
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from timediff.errors import TimeDiffError

POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)

STYLE = """
:root { color-scheme: light dark; --ink: #1f2328; --soft: #57606a; --rule: #d0d7de; --paper: #fff; --mark: #ffe2a8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --soft: #9da7b3; --rule: #3d444d; --paper: #14181d; --mark: #6b4700; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink); font: 1rem/1.55 system-ui, sans-serif; }
main { max-width: 84rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
p { max-width: 62rem; margin: 0 0 1rem; }
.note { color: var(--soft); font-size: .875rem; margin-top: .6rem; }
.wide { overflow-x: auto; }
.wide > table { width: 100%; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .925rem; }
th, td { padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--rule); }
th, td { text-align: right; vertical-align: top; }
th:first-child, .facts td { text-align: left; overflow-wrap: anywhere; min-width: 5.5rem; }
thead th { color: var(--soft); font-weight: 600; vertical-align: bottom; }
tbody th { font-weight: 500; }
.part { white-space: nowrap; }
mark { background: var(--mark); color: inherit; font-weight: 600; padding: .05rem .3rem; border-radius: .2rem; }
figure { margin: 0; min-width: 0; overflow: hidden; break-inside: avoid; }
.grid { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1.5rem; }
.grid > div { min-width: 0; break-inside: avoid; }
.js-plotly-plot .main-svg text { fill: var(--ink) !important; }
.js-plotly-plot .main-svg .hoverlayer text { fill: #222 !important; }
@media (max-width: 700px) {
  main { padding: 1rem .9rem 3rem; }
  .grid { grid-template-columns: minmax(0, 1fr); }
  table { font-size: .8rem; }
  th, td { padding-right: .4rem; }
  tbody mark { padding: 0; }
}
@media (max-width: 480px) {
  table { font-size: .7rem; }
  th, td { padding-right: .25rem; }
  th:first-child, .facts td { min-width: 4.5rem; }
}
@media print {
  :root { color-scheme: light; --ink: #000; --soft: #444; --rule: #bbb; --paper: #fff; --mark: #ffe2a8; }
  main { padding: 0; max-width: none; }
  h2, h3, section p { break-after: avoid; break-inside: avoid; }
  tr { break-inside: avoid; }
  mark { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
}
"""

# Figures follow the window by themselves, but not the paper: they are drawn again for its width.
PRINT = """
const figures = () => document.querySelectorAll('.js-plotly-plot').forEach(figure => Plotly.Plots.resize(figure));
matchMedia('print').addEventListener('change', figures);
"""


NO_SCRIPT = "The figures are drawn by JavaScript, which is switched off here; the tables are complete without it."


def plotly_is_here() -> bool:
    return importlib.util.find_spec("plotly") is not None


def require_plotly() -> None:
    if not plotly_is_here():
        raise TimeDiffError("a report needs plotly, which is not installed: pip install 'timediff-icu[evaluate]'")


def document(
    title: str,
    about: str,
    facts: Mapping[str, str],
    sections: Sequence[str],
    *,
    above: str = "",
    style: str = "",
    script: str = "",
    figures: bool = True,
) -> str:
    """A whole page: its policy, style and the drawing library; `about`, `above` and sections are HTML already."""
    library = ""
    if figures:
        from plotly.offline import get_plotlyjs

        library = f"<script>{get_plotlyjs()}</script>"
    body = "\n".join(sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title)}</title>
<style>{STYLE}{style}</style>
{library}
</head>
<body>
<main>
<h1>{html.escape(title)}</h1>
{above}<p>{about}</p>
<noscript><p>{NO_SCRIPT}</p></noscript>
{facts_table(facts)}
{body}
</main>
<script>{PRINT}{script}</script>
</body>
</html>
"""


class EmbeddedFigures:
    """Figures as HTML, numbered so that the same cohorts give the same bytes."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, figure: Any, says: str) -> str:
        self.count += 1
        drawing = figure.to_html(
            full_html=False,
            include_plotlyjs=False,
            div_id=f"figure-{self.count}",
            config={"responsive": True, "displayModeBar": False},
        )
        return f'<figure role="group" aria-label="{html.escape(says)}">{drawing}</figure>'


def section(heading: str, content: str) -> str:
    return f"<section>\n<h2>{heading}</h2>\n{content}\n</section>"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, kind: str = "") -> str:
    """Headings are text; the cells of a row are elements already, as `header` and `cell` make them."""
    head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in headings)
    above = f"<thead><tr>{head}</tr></thead>\n" if headings else ""
    body = "\n".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    name = f' class="{kind}"' if kind else ""
    whole = f"<table{name}>\n{above}<tbody>\n{body}\n</tbody></table>"
    return f'<div class="wide" tabindex="0" role="region" aria-label="table">{whole}</div>' if headings else whole


def header(content: str) -> str:
    """The first cell of a row."""
    return f'<th scope="row">{content}</th>'


def cell(content: str) -> str:
    return f"<td>{content}</td>"


def facts_table(facts: Mapping[str, str]) -> str:
    rows = [[header(html.escape(name)), cell(html.escape(value))] for name, value in facts.items()]
    return table((), rows, kind="facts") if rows else ""
