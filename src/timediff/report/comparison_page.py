"""One page that shows real against synthetic stays."""

import html
from collections.abc import Mapping
from pathlib import Path

from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.evaluation.figure_data import course_over_time, missing_rates, single_stays
from timediff.evaluation.metrics.marginals import Marginal, marginals
from timediff.evaluation.single_stays import copies_of, why_withheld
from timediff.report.page import EmbeddedFigures, cell, document, header, require_plotly, section, table
from timediff.report.terminal import HEADINGS, LEGEND, Cell, cells
from timediff.runtime.files import write_atomically

ABOUT = (
    "This page compares {real:,} real stays that the generator never saw with {synthetic:,} synthetic stays it made. "
    f"Real stays appear only as aggregates of at least {MIN_AGGREGATE}."
)
TRAJECTORIES = (
    "Mean over stays at each step and one standard deviation either side (real a band, synthetic dotted lines), "
    "or the fraction of a class. "
    f"Steps at which fewer than {MIN_AGGREGATE} stays have a value are left out."
)
STAYS = (
    "A few synthetic stays, evenly taken from the cohort. Each colour is one stay; a gap is a missing measurement. "
    "They are shown only of cohorts in which no copy of a real stay was found."
)
MISSING = "Fraction of missing values by feature, within the length of each stay."


def write_comparison(
    path: Path, real: Cohort, synthetic: Cohort, *, title: str, facts: Mapping[str, str], train: Cohort | None = None
) -> None:
    """Writes one HTML file with everything in it: facts, marginals, trajectories, synthetic stays, missingness.

    Single stays are shown only if `train`, what the generator was trained on, is given and no copies are found.
    """
    require_plotly()
    from timediff.report import figures

    records = marginals(real, synthetic)
    temporal = [feature for feature in real.schema.temporal if feature.generated]
    embedded = EmbeddedFigures()
    grid = "\n".join(
        embedded(figures.draw(course_over_time(real, synthetic, feature.name)), f"{feature.name} by step")
        for feature in temporal
    )
    sections = [
        section("Each feature by itself", features_table(records) + f'<p class="note">{html.escape(LEGEND)}</p>'),
        section("Over time", f'<p>{TRAJECTORIES}</p>\n<div class="grid">\n{grid}\n</div>'),
    ]
    if any(not feature.discrete for feature in temporal):
        why = why_withheld(copies_of(train, real, synthetic) if train is not None else ())
        drawn = "" if why else embedded(figures.draw(single_stays(synthetic)), "single synthetic stays")
        words = html.escape(f"They are withheld: {why}") if why else STAYS
        sections.append(section("Single synthetic stays", f"<p>{words}</p>\n{drawn}"))
    missing = embedded(figures.draw(missing_rates(real, synthetic)), "missing rates by feature")
    sections.append(section("What is missing", f"<p>{MISSING}</p>\n{missing}"))
    about = ABOUT.format(real=len(real), synthetic=len(synthetic))
    write_atomically(path, document(title, about, facts, sections))


def features_table(records: list[Marginal]) -> str:
    """One row a feature or class, real beside synthetic."""
    return table(HEADINGS, [_row(cells(record)) for record in records])


def _row(row: tuple[Cell, ...]) -> list[str]:
    name, *values = row
    return [header(html.escape(name.text)), *map(_cell, values)]


def _cell(shown: Cell) -> str:
    # "85.2 ± 14.1" may break before the sign on a narrow screen, and nowhere else.
    text = " ".join(f'<span class="part">{html.escape(part)}</span>' for part in _parts(shown.text))
    return cell(f"<mark>{text} {shown.mark}</mark>" if shown.mark else text)


def _parts(text: str) -> list[str]:
    mean, sign, sd = text.partition(" ± ")
    return [mean, f"± {sd}"] if sign else [text]
