"""One page that shows what a cohort holds: only aggregates of at least ten stays, no network."""

import html
import math
from pathlib import Path

import numpy as np

from timediff.data.cohort import Cohort
from timediff.data.describe import Distribution, Extracted, distribution, statistics
from timediff.data.privacy_limits import HIDDEN, MIN_AGGREGATE
from timediff.report.page import EmbeddedFigures, cell, document, header, require_plotly, section, table
from timediff.runtime.files import explained, refuse_existing, write_atomically

HEADINGS = ("feature", "kind", "missing", "mean ± SD, or classes", "1st to 99th percentile")
MOST_CLASSES = 6  # named in the table; the figure has them all
HASH = 12  # characters of a hash that a person compares

ABOUT = (
    f"What is in this cohort of {{stays:,}} stays. Everything here is an aggregate of at least {MIN_AGGREGATE} stays: "
    "what fewer have is left out, and so are the extremes, which are single patients'."
)
FEW = (
    f"This cohort has fewer than {MIN_AGGREGATE} stays: too few to show anything of their values. "
    "In the terminal, <code>timediff describe</code> shows them to you alone."
)
LEGEND = (
    "Missing: fraction of the steps within each stay, or of the stays. "
    f"Hidden: fewer than {MIN_AGGREGATE} stays have a value, or have another class than all others. "
    "–: nobody has a value. "
    f"A percentile beyond which fewer than {MIN_AGGREGATE} stays lie is moved inwards until {MIN_AGGREGATE} do."
)
MAP = f"Fraction of stays without a value at each step; blank where fewer than {MIN_AGGREGATE} stays are left to count."
FIGURES = (
    "The distribution of the observed values and, below it, the missing rate at each step. "
    f"Hatched bins are hidden: fewer than {MIN_AGGREGATE} stays, or none, have a value there."
)


def write_cohort_page(path: Path, cohort: Cohort, *, title: str, extraction: Extracted | None = None) -> None:
    """Writes one HTML file with everything in it: facts, rules, features, missingness, a figure a feature."""
    require_plotly()
    refuse_existing(path)
    facts = statistics(cohort, MIN_AGGREGATE)
    sections = []
    if cohort.provenance is not None:
        facts |= cohort.provenance.facts()
    if extraction is not None:
        facts |= {_spoken(name): _shortened(name, value) for name, value in extraction.facts.items()}
        rows = [[header(html.escape(rule)), cell(html.escape(count))] for rule, count in extraction.rows()]
        sections.append(section("From all stays to these", table(("rule", "stays"), rows)))
    sections += _features(cohort) if len(cohort) >= MIN_AGGREGATE else [section("Features", f"<p>{FEW}</p>")]
    content = document(f"Cohort {title}: what is in it", ABOUT.format(stays=len(cohort)), facts, sections)
    with explained(path):
        path.parent.resolve().mkdir(parents=True, exist_ok=True)
    write_atomically(path, content)


def _features(cohort: Cohort) -> list[str]:
    from timediff.report import figures

    known = [distribution(cohort, feature, MIN_AGGREGATE) for feature in cohort.schema.features if feature.generated]
    embedded = EmbeddedFigures()
    pictures = missing = ""
    if any(one.feature.scope == "temporal" for one in known):
        missing = embedded(figures.missing_map(cohort), "missing rates by feature and step")
    for one in known:
        figure = embedded(figures.distribution(cohort, one), f"{one.feature.name}: distribution")
        words = f'<p class="note">{html.escape(_beyond(one))}</p>' if _beyond(one) else ""
        pictures += f"<div>\n<h3>{html.escape(_name(one))}</h3>\n{figure}\n{words}</div>\n"
    rows = [[header(name), *map(cell, values)] for name, *values in (map(html.escape, _row(one)) for one in known)]
    return [
        section("Features", table(HEADINGS, rows) + f'<p class="note">{LEGEND}</p>'),
        section("What is missing", f"<p>{MAP}</p>\n{missing}"),
        section("Each feature by itself", f'<p>{FIGURES}</p>\n<div class="grid">\n{pictures}</div>'),
    ]


def _row(known: Distribution) -> tuple[str, ...]:
    """One row under `HEADINGS`."""
    feature = known.feature
    few = HIDDEN if known.stays else "–"
    missing = few if math.isnan(known.missing) else f"{known.missing:.1%}"
    value, span = few, "" if feature.discrete else few
    if known.class_rates:
        texts = [f"{name}: {rate:.1%}" for name, rate in list(known.class_rates.items())[:MOST_CLASSES]]
        more = len(known.class_rates) - MOST_CLASSES
        value = ", ".join(texts) + (f" and {more} more" if more > 0 else "")
    elif not math.isnan(known.mean) and not feature.discrete:
        value = f"{known.mean:.4g} ± {known.sd:.3g}"
    if known.shown and not feature.discrete:
        span = f"{known.low:.4g} to {known.high:.4g}"
    return _name(known), f"{feature.kind}, {feature.role or feature.scope}", missing, value, span


def _beyond(known: Distribution) -> str:
    """In words what a figure leaves out."""
    if known.rare is not None and not known.class_rates:
        return ""  # the figure says it
    if known.rare is not None and math.isnan(known.rare):
        return f"Classes that fewer than {MIN_AGGREGATE} stays have are not counted."
    if known.rare is not None:
        return f"Classes that fewer than {MIN_AGGREGATE} stays have are counted together."
    if len(known.edges) and known.undrawn > 0.0005:
        low, high = known.edges[[0, -1]] + np.array([0.5, -0.5]) * (known.spacing or 0)
        few = f"or in a bin of fewer than {MIN_AGGREGATE} stays"
        return f"{known.undrawn:.1%} of values are not shown: below {low:.4g}, above {high:.4g}, {few}."
    return ""


def _name(known: Distribution) -> str:
    unit = known.feature.unit
    return f"{known.feature.name} ({unit})" if unit else known.feature.name


def _spoken(name: str) -> str:
    return {"version": "timediff", "source_sha256": "source, SHA-256", "settings_sha256": "settings, SHA-256"}.get(
        name, name.replace("_", " ")
    )


def _shortened(name: str, value: str) -> str:
    return f"{value[:HASH]}…" if name.endswith("sha256") and len(value) > HASH else value
