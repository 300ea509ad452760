"""One page that shows real against synthetic stays. It needs no network, and its policy forbids it any."""

import html
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from timediff.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.files import write_atomically
from timediff.metrics.marginals import Marginal, marginals
from timediff.report.terminal import FEWEST, HEADINGS, LEGEND, Cell, cells

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
main { max-width: 72rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .75rem; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .5rem; }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
p { max-width: 44rem; margin: 0 0 1rem; }
.note { color: var(--soft); font-size: .875rem; margin-top: .6rem; }
.wide { overflow-x: auto; }
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


def require_plotly() -> None:
    if importlib.util.find_spec("plotly") is None:
        raise TimeDiffError("a report needs plotly, which is not installed: pip install 'timediff[evaluate]'")


def write_comparison(path: Path, real: Cohort, synthetic: Cohort, *, title: str, facts: Mapping[str, str]) -> None:
    """Writes one HTML file with everything in it: facts, marginals, trajectories, synthetic stays, missingness."""
    require_plotly()
    from timediff.report import figures

    records = marginals(real, synthetic)
    temporal = [feature for feature in real.schema.temporal if feature.generated]
    drawn = Drawn()
    grid = "\n".join(
        drawn(figures.trajectories(real, synthetic, feature.name), f"{feature.name} by step") for feature in temporal
    )
    sections = [
        section("Each feature by itself", _table(records) + f'<p class="note">{html.escape(LEGEND)}</p>'),
        section("Over time", f'<p>{TRAJECTORIES}</p>\n<div class="grid">\n{grid}\n</div>'),
    ]
    if any(not feature.discrete for feature in temporal):
        stays = drawn(figures.single_stays(synthetic), "single synthetic stays")
        sections.append(section("Single synthetic stays", f"<p>{STAYS}</p>\n{stays}"))
    missing = drawn(figures.missingness(real, synthetic), "missing rates by feature")
    sections.append(section("What is missing", f"<p>{MISSING}</p>\n{missing}"))
    about = ABOUT.format(real=len(real), synthetic=len(synthetic))
    write_atomically(path, document(title, about, facts, sections))


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


ABOUT = (
    "This page compares {real:,} real stays that the generator never saw with {synthetic:,} synthetic stays it made. "
    f"Real stays appear only as aggregates of at least {FEWEST}; every single stay shown is synthetic."
)
TRAJECTORIES = (
    "Mean over stays at each step and one standard deviation either side (real a band, synthetic dotted lines), "
    "or the share of a class. "
    f"Steps at which fewer than {FEWEST} stays have a value are left out."
)
STAYS = "A few synthetic stays, evenly taken from the cohort. Each colour is one stay; a gap is a missing measurement."
NO_SCRIPT = "The figures are drawn by JavaScript, which is switched off here; the tables are complete without it."
MISSING = "Share of missing values by feature, within the length of each stay."


class Drawn:
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


def facts_table(facts: Mapping[str, str]) -> str:
    rows = "\n".join(
        f'<tr><th scope="row">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>'
        for name, value in facts.items()
    )
    return f'<table class="facts"><tbody>\n{rows}\n</tbody></table>' if rows else ""


def _table(records: list[Marginal]) -> str:
    head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in HEADINGS)
    rows = "\n".join(_row(cells(record)) for record in records)
    return f'<div class="wide"><table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>'


def _row(row: tuple[Cell, ...]) -> str:
    name, *values = row
    return f'<tr><th scope="row">{html.escape(name.text)}</th>{"".join(_cell(cell) for cell in values)}</tr>'


def _cell(cell: Cell) -> str:
    # "85.2 ± 14.1" may break before the sign on a narrow screen, and nowhere else.
    text = " ".join(f'<span class="part">{html.escape(part)}</span>' for part in _parts(cell.text))
    return f"<td><mark>{text} {cell.mark}</mark></td>" if cell.mark else f"<td>{text}</td>"


def _parts(text: str) -> list[str]:
    mean, sign, spread = text.partition(" ± ")
    return [mean, f"± {spread}"] if sign else [text]
