"""Galleries: the figures of an evaluation's page, drawn when they are seen, with menus where there is a choice."""

import html
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import count
from statistics import fmean
from typing import Any

from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.evaluation.figure_data import Charts, FigureData
from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.evaluation.single_stays import why_withheld
from timediff.report.page import section

GALLERIES = {
    "trajectories": (
        "Over time",
        "Mean over stays at each step and one standard deviation either side (real a band, synthetic dotted lines), or "
        f"the fraction of a class. Steps at which fewer than {MIN_AGGREGATE} stays have a value are left out.",
    ),
    "distributions": (
        "Distributions",
        "Fraction of the observed values, real and synthetic on the same bins; "
        f"hatched bins are hidden, since fewer than {MIN_AGGREGATE} real stays, or none, have a value there; the "
        "outermost values are left out.",
    ),
    "missingness": ("What is missing", "Fraction of missing values by feature."),
    "stays": (
        "Single synthetic stays",
        "Stays that the generator made, evenly taken from the cohort. Each colour is one stay; a gap is a missing "
        "measurement. They are shown only of cohorts in which no copy of a real stay was found.",
    ),
    "digits": (
        "How values are written down",
        "The coarsest lattice on which each value lies (60 is a multiple of 10, 64 of 1), and its last digit, counted "
        f"in the feature's own steps. What fewer than {MIN_AGGREGATE} real stays have has no real bar.",
    ),
    "repeats": (
        "Repeats",
        "Of the values of each feature, the fraction that equals the one measured before it in the same stay. What "
        f"fewer than {MIN_AGGREGATE} real stays do, or do not, has no real bar.",
    ),
    "extremes": (
        "The most extreme values",
        "The values that 0.1 % and 1 % of all values lie below, or above: of real stays, unseen and training, and "
        f"of synthetic ones. What fewer than {MIN_AGGREGATE} stays of a set have a value beyond is left out.",
    ),
    "order": (
        "What no patient can have",
        "Of the steps at which both were measured, the fraction at which what the schema says is the higher one is the "
        f"lower. What fewer than {MIN_AGGREGATE} real stays have has no real bar.",
    ),
    "stay statistics": (
        "How stays differ from one another",
        "Mean, SD and slope over time of the values within each stay, a value a stay; "
        f"bins of fewer than {MIN_AGGREGATE} real stays are left out, and so are the outermost values.",
    ),
    "gaps": (
        "Lengths of gaps",
        "Of the gaps between measurements, the fraction that is longer. A curve goes on while at least "
        f"{MIN_AGGREGATE} stays have a longer gap.",
    ),
    "events": (
        "Time to event",
        "Fraction of stays without the event, as Kaplan and Meier estimate it; stays without one are censored at their "
        f"end. A curve moves on with every {MIN_AGGREGATE} stays that have the event.",
    ),
    "embeddings": (
        "Maps of all stays",
        "Every stay has a place on the map, similar stays near each other. The darker, the more stays; blank where "
        f"there are fewer than {MIN_AGGREGATE}. Synthetic stays should cover the same places as real ones. "
        "Distances on such maps must not be measured.",
    ),
}
BESIDE = 2  # generators that have room beside each other; of more, a menu chooses one
ONE_FEATURE = ("trajectories", "digits", "stay statistics", "gaps")  # a menu chooses the feature
LAYOUTS = {
    "distributions": "grid",
    "digits": "grid",
    "extremes": "grid",
    "embeddings": "thirds",
    "stay statistics": "thirds",
}


def galleries(results: Results, numbers: "count[int]") -> list[str]:
    """All figures that may be shown, those of known sections first; another section's name is its heading.

    Charts are no figures.
    """
    whys = withheld(results)
    figures = [f for f in results.figures if not _is_withheld(f, whys) and not isinstance(f.content, Charts)]
    sections = [figure.section for figure in figures]
    results = replace(results, figures=figures)
    drawn = [gallery(results, kind, numbers) for kind in dict.fromkeys((*GALLERIES, *sections)) if kind in sections]
    absent = "".join(f"<p>{html.escape(f'Stays of {name} are withheld: {why}')}</p>" for name, why in whys.items())
    return [*drawn, section("Single stays that are not shown", absent)] if whys else drawn


def withheld(results: Results) -> dict[str, str]:
    """The generators of which no single stay is shown, and why."""
    whys = {name: why_withheld(results.scores.get(name, ())) for name in results.generators}
    return {name: why for name, why in whys.items() if why}


def _is_withheld(figure: FigureData, whys: Mapping[str, str]) -> bool:
    """Whether it shows single stays that are withheld, or nobody knows whose."""
    return figure.single and bool(whys) and (figure.generator is None or figure.generator in whys)


def gallery(results: Results, kind: str, numbers: "count[int]") -> str:
    """The figures of one section, with menus where there is something to choose."""
    from timediff.report.figures import figure_json

    shown = [figure for figure in results.figures if figure.section == kind]
    title, about = GALLERIES.get(kind, (html.escape(kind), ""))
    order = {name: place for place, name in enumerate(results.generators)}
    shown.sort(key=lambda figure: order.get(figure.generator or "", -1))
    whose, features = _distinct(shown, "generator"), _distinct(shown, "feature")
    beside = 1 < len(whose) <= BESIDE
    if beside and LAYOUTS.get(kind) == "grid":  # the same feature of each generator in one row
        shown.sort(key=lambda figure: features.index(figure.feature))
    menus = ""
    if kind in ONE_FEATURE:
        menus += _menu("feature", features)
    if not beside:
        menus += _menu("generator", whose)
    places = {name: {one: str(i) for i, one in enumerate(_distinct(shown, name))} for name in ("feature", "generator")}
    drawn = "\n".join(
        placed(
            figure_json(figure.content),
            f"{figure.title}{f' ({figure.generator})' if len(places['generator']) > 1 else ''}",
            numbers,
            f' data-feature="{places["feature"].get(figure.feature, "")}"'
            f' data-generator="{places["generator"].get(figure.generator, "")}"',
        )
        for figure in shown
    )
    layout = LAYOUTS.get(kind, "grid" if beside else "")
    chooser = f'<div class="chooser">{menus}</div>' if menus else ""
    body = f'<div class="gallery" id="{html.escape(kind)}">{chooser}\n<div class="{layout}">\n{drawn}\n</div></div>'
    return section(title, f"<p>{about}</p>\n{body}")


def _distinct(shown: Sequence[FigureData], name: str) -> list[str | None]:
    return list(dict.fromkeys(getattr(figure, name) for figure in shown))


def _menu(name: str, values: Sequence[str | None]) -> str:
    """A menu of what there is; its values are places, so that no name can be mistaken for markup."""
    known = list(dict.fromkeys(values))
    if len(known) < 2:
        return ""
    options = "".join(f'<option value="{i}">{html.escape(one or "all")}</option>' for i, one in enumerate(known))
    return f'<label>{name} <select name="{name}" autocomplete="off">{options}</select></label>'


def placed(figure: Mapping[str, Any], title: str, numbers: "count[int]", about: str = "") -> str:
    """A place for a figure and its content as JSON, which the page draws when it is seen."""
    name = f"picture-{next(numbers)}"
    content = json.dumps(figure, ensure_ascii=True).replace("<", "\\u003c")  # no text can end the script
    return (
        f'<figure data-picture="{name}"{about}><figcaption>{html.escape(title)}</figcaption><div class="canvas"></div>'
        f'<script type="application/json" id="{name}">{content}</script></figure>'
    )


def augmentation(scores: Mapping[str, Sequence[Score]]) -> dict[str, Any]:
    """Mean AUROC over classifiers against the fraction of synthetic stays, as a Plotly figure."""
    lines: dict[tuple[str, bool], dict[int, list[float]]] = {}
    for name, known in scores.items():
        for s in known:
            percent = re.search(r"(\d+) %", s.what)
            if percent and math.isfinite(s.value):
                line = lines.setdefault((name, "all real" in s.what), {})
                line.setdefault(int(percent[1]), []).append(s.value)
    colours = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
    names = list(scores)
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": html.escape(f"{name}, {'all real stays' if every else 'fixed number of real stays'}", quote=False),
            "x": sorted(points),
            "y": [float(f"{fmean(points[percent]):.4g}") for percent in sorted(points)],
            "line": {"color": colours[names.index(name) % len(colours)], "dash": "dash" if every else "solid"},
        }
        for (name, every), points in lines.items()
    ]
    axis = {"gridcolor": "rgba(128, 128, 128, 0.25)", "zeroline": False, "fixedrange": True, "automargin": True}
    layout = {
        "height": 320,
        "font": {"family": "system-ui, sans-serif", "size": 12},
        "margin": {"l": 8, "r": 12, "t": 64, "b": 8},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "xaxis": {**axis, "title": {"text": "fraction of synthetic stays"}, "ticksuffix": " %"},
        "yaxis": {**axis, "title": {"text": "AUROC on real stays"}},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top"},
        "showlegend": True,
        "dragmode": False,
    }
    return {"data": data, "layout": layout}
