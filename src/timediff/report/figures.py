"""Figures in Plotly, from the numbers of an evaluation (`figure_data`) or of a cohort's description."""

import html
import json
import textwrap
from collections.abc import Sequence
from typing import Any, assert_never

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from timediff.data.cohort import Cohort
from timediff.data.describe import Distribution, missing_by_step
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.evaluation.figure_data import (
    Charts,
    ClassFractions,
    Content,
    Course,
    DensityMap,
    ExtremeValues,
    Histogram,
    MissingRates,
    Numbers,
    PlotlyFigure,
    Points,
    RateBars,
    SingleStays,
    SurvivalCurves,
    bin_names,
    plain,
)

REAL, SYNTHETIC = "#0072B2", "#D55E00"  # for colour-blind readers too
MISSING = "#8a8f98"
STAYS = ("#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#0072B2")
ONE_CLASS = f"hidden: fewer than {MIN_AGGREGATE} stays have any other class than the most frequent one"
FAINT = "rgba(128, 128, 128, 0.25)"  # grid lines on white and on black
SETS = {"train": REAL, "test": "#009E73", "synthetic": SYNTHETIC}
MARKS = {"train": "circle-open", "test": "circle", "synthetic": "diamond"}  # and in black and white
SET_NAMES = {"train": "real, training", "test": "real, unseen", "synthetic": "synthetic"}
DASH = {"real": "solid", "synthetic": "dash"}  # and in black and white


def draw(content: Content) -> go.Figure:
    """The figure that shows these numbers."""
    match content:
        case Course():
            return _course(content)
        case Histogram():
            return _histogram(content)
        case ClassFractions():
            return _class_fractions(content)
        case SingleStays():
            return _single_stays(content)
        case MissingRates():
            return _rates("fraction missing", content.features, content.real, content.synthetic)
        case RateBars():
            return _rates(content.what, content.rows, content.real, content.synthetic)
        case ExtremeValues():
            return _quantiles(content)
        case SurvivalCurves():
            return _survival_curves(content)
        case Charts():
            raise ValueError("charts are tables, which report.chart_tables writes")
        case DensityMap():
            return _density_map(content)
        case Points():
            return _points(content)
        case PlotlyFigure():
            return go.Figure(content.figure)
    assert_never(content)


def figure_json(content: Content) -> dict[str, Any]:
    """The figure as a page holds it."""
    if isinstance(content, PlotlyFigure):
        return content.figure
    drawn: dict[str, Any] = json.loads(draw(content).to_json())
    return drawn


def _course(content: Course) -> go.Figure:
    """Mean ± SD over stays at each step, or the fraction of each class."""
    rows = max(1, len(content.classes))
    figure = make_subplots(rows=rows, shared_xaxes=True, vertical_spacing=0.2 / rows)
    for row in range(rows):
        for name, colour in (("real", REAL), ("synthetic", SYNTHETIC)):
            if not content.classes:
                band = _band(name, colour, content.low[name][row], content.high[name][row], filled=name == "real")
                figure.add_trace(band, row=row + 1, col=1)
            mean = content.mean[name][row]
            line = _line(name, colour, mean, dash=DASH[name], legendgroup=name, showlegend=row == 0)
            figure.add_trace(line, row=row + 1, col=1)
        figure.update_yaxes(title_text=_axis(content, row), row=row + 1, col=1)
    if all(value is None for panels in content.mean.values() for panel in panels for value in panel):
        figure.update_yaxes(showticklabels=False)
        _say(figure, f"fewer than {MIN_AGGREGATE} stays at every step")
    elif content.classes:
        figure.update_yaxes(tickformat=".0%", rangemode="tozero", nticks=4)
    figure.update_xaxes(range=_width(content.steps))
    figure.update_xaxes(title_text=_step(content.step), row=rows, col=1)
    return _dress(figure, 280 if rows == 1 else 110 + 110 * rows)


def _histogram(content: Histogram) -> go.Figure:
    figure = go.Figure()
    if not content.middles:
        return _empty(f"hidden: too few real stays have a value (at least {MIN_AGGREGATE} are needed)")
    bars = _bins(content.middles, content.real, content.width, content.bins)
    figure.add_trace(bars.update(name="real", showlegend=True, hovertemplate=None, hoverinfo="y+name"))
    line = {"color": SYNTHETIC, "width": 2, "shape": "hvh"}  # a staircase: its steps are the bins
    places = [content.ends[0], *content.middles, content.ends[1]]
    heights = [content.synthetic[0], *content.synthetic, content.synthetic[-1]]
    figure.add_trace(go.Scatter(name="synthetic", x=places, y=heights, mode="lines", line=line))
    figure.update_traces(selector={"name": "real"}, marker_opacity=0.55)
    figure.add_traces(_hidden(content.middles, content.real, content.width, content.bins, heights))
    figure.update_xaxes(title_text=html.escape(content.unit or "value", quote=False))
    figure.update_yaxes(title_text="fraction of values", tickformat=".0%", rangemode="tozero", nticks=5)
    return _dress(figure, 250).update_layout(hovermode="closest", bargap=0, barmode="overlay")


def _class_fractions(content: ClassFractions) -> go.Figure:
    names = [_cut(name) for name in content.classes]
    if not names:
        return _empty(ONE_CLASS)
    if content.others:
        names.append(f"<i>fewer than {MIN_AGGREGATE} real stays</i>")
    figure = go.Figure(_paired_bars(content.real, content.synthetic))
    figure.update_traces(hovertemplate="%{x:.1%}")
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed", showgrid=False)
    figure.update_xaxes(title_text="fraction of values", tickformat=".0%", range=[0, 1.02], nticks=6)
    return _dress(figure, 110 + 44 * len(names)).update_layout(barmode="group", hovermode="y unified")


def _paired_bars(real: Numbers, synthetic: Numbers) -> list[go.Bar]:
    """Lying bars, real beside synthetic, by place and not by name: two long names may be cut to the same text."""
    bars = []
    for name, colour, values in (("real", REAL, real), ("synthetic", SYNTHETIC, synthetic)):
        pattern = {"shape": "" if name == "real" else "/", "fillmode": "overlay", "fgcolor": "#ffffff", "size": 6}
        marker = {"color": colour, "pattern": pattern}
        bars.append(go.Bar(name=name, x=values, y=list(range(len(values))), orientation="h", marker=marker))
    return bars


def _single_stays(content: SingleStays) -> go.Figure:
    """One row a feature, one line a stay."""
    rows = max(1, len(content.features))
    titles = [_with_unit(name, unit) for name, unit in zip(content.features, content.units, strict=True)]
    height = 130 + 130 * rows
    figure = make_subplots(rows=rows, shared_xaxes=True, subplot_titles=titles, vertical_spacing=34 / height)
    figure.update_annotations(x=0, xanchor="left", font_size=13)
    for row, values in enumerate(content.values, start=1):
        for place, stay in enumerate(content.stays):
            label = f"stay {html.escape(stay, quote=False)}"
            line = _line(label, STAYS[place % len(STAYS)], values[place], width=1.5)
            line.update(mode="lines+markers", marker_size=4, legendgroup=str(place), showlegend=row == 1)
            figure.add_trace(line, row=row, col=1)
    figure.update_yaxes(nticks=4)
    figure.update_xaxes(range=_width(content.steps))
    figure.update_xaxes(title_text=_step(content.step), row=rows, col=1)
    return _dress(figure, height).update_layout(margin_t=84)  # the legend may need two lines


def _rates(what: str, rows: Sequence[str], real: Numbers, synthetic: Numbers) -> go.Figure:
    figure = go.Figure(_paired_bars(real, synthetic))
    places, texts = list(range(len(rows))), [_cut(name) for name in rows]
    figure.update_yaxes(tickvals=places, ticktext=texts, autorange="reversed", showgrid=False)
    figure.update_xaxes(title_text=what, tickformat=".0%", rangemode="tozero")
    figure.update_traces(hovertemplate="%{x:.1%}")
    figure.update_layout(barmode="group", bargap=0.3)
    return _dress(figure, 110 + 34 * len(places)).update_layout(hovermode="y unified")


def _quantiles(content: ExtremeValues) -> go.Figure:
    """A row a quantile, in it the sets below one another."""
    if all(value is None for values in content.values.values() for value in values):
        return _empty(f"hidden: fewer than {MIN_AGGREGATE} stays have a value so far out")
    figure, names = go.Figure(), [_extreme(fraction) for fraction in content.fractions]
    for place, (name, colour) in enumerate(SETS.items()):
        y = [row + 0.27 * (place - 1) for row in range(len(names))]
        marker = {"color": colour, "symbol": MARKS[name], "size": 9, "line": {"color": colour, "width": 2}}
        points = go.Scatter(name=SET_NAMES[name], x=content.values[name], y=y, mode="markers", marker=marker)
        figure.add_trace(points.update(text=names, hovertemplate="%{text}: %{x}"))
    rows = {"tickvals": list(range(len(names))), "ticktext": names, "range": [len(names) - 0.5, -0.5]}
    figure.update_yaxes(**rows, showgrid=False)
    figure.update_xaxes(title_text=html.escape(content.unit or "value", quote=False))
    return _dress(figure, 90 + 44 * len(names)).update_layout(hovermode="closest")


def _extreme(fraction: float) -> str:
    """A quantile in words."""
    side, tail = ("lowest", fraction) if fraction < 0.5 else ("highest", 1 - fraction)
    return f"{side} {100 * tail:.3g} %"


def _survival_curves(content: SurvivalCurves) -> go.Figure:
    """Two lines between the steps that are known."""
    figure = go.Figure()
    for name, colour in (("real", REAL), ("synthetic", SYNTHETIC)):
        line = {"color": colour, "width": 2, "dash": DASH[name]}
        steps, values = content.steps[name], content.values[name]
        mode = "lines+markers" if len(steps) == 1 else "lines"
        figure.add_trace(go.Scatter(name=name, x=steps, y=values, mode=mode, line=line))
    if not any(content.steps.values()):
        _say(figure, f"fewer than {MIN_AGGREGATE} stays")
    figure.update_yaxes(title_text=html.escape(content.fraction, quote=False), tickformat=".0%", nticks=5)
    figure.update_xaxes(
        title_text="hours" if content.step == "1h" else f"steps of {html.escape(content.step, quote=False)}"
    )
    return _dress(figure, 250)


def _density_map(content: DensityMap) -> go.Figure:
    """Fractions of a set's stays on a map of all stays; blank = too few stays."""
    colour = SETS.get(content.stays, MISSING)
    figure = go.Figure(
        go.Heatmap(
            name=SET_NAMES.get(content.stays, html.escape(content.stays, quote=False)),
            x=content.x,
            y=content.y,
            z=[list(row) for row in zip(*content.fractions, strict=True)],  # a heatmap's rows are y
            colorscale=[[0, _faded(colour)], [1, colour]],
            zmin=0,
            zmax=content.most,
            showscale=False,
            hoverongaps=False,
            hovertemplate="%{z:.1%} of these stays<extra></extra>",
        )
    )
    for axis, ends in ((figure.update_xaxes, content.x_ends), (figure.update_yaxes, content.y_ends)):
        axis(showticklabels=False, showgrid=False, range=ends)
        axis(showline=True, mirror=True, linecolor=FAINT, ticks="")
    return _dress(figure, 300).update_layout(hovermode="closest", margin_t=12)


def _points(content: Points) -> go.Figure:
    figure = go.Figure()
    for name, colour in SETS.items():
        chosen = [i for i, stays in enumerate(content.stays) if stays == name]
        x, y = ([axis[i] for i in chosen] for axis in (content.x, content.y))
        marker = {"color": colour, "size": 4, "opacity": 0.5}
        figure.add_trace(go.Scatter(name=SET_NAMES[name], x=x, y=y, mode="markers", marker=marker))
    figure.update_traces(hoverinfo="name")
    figure.update_xaxes(showticklabels=False)
    figure.update_yaxes(showticklabels=False)
    return _dress(figure, 480).update_layout(hovermode="closest")


def distribution(cohort: Cohort, known: Distribution) -> go.Figure:
    """One feature of a real cohort: its histogram or classes and, over time, how much of it is missing."""
    temporal = known.feature.scope == "temporal"
    above = 240 if known.shown else 120
    if known.class_rates:
        above = max(200, 90 + 24 * (len(known.class_rates) + 1))
    heights = [above, 130] if temporal else [above]
    figure = make_subplots(
        rows=len(heights), row_heights=heights, vertical_spacing=70 / sum(heights) if temporal else 0
    )
    if known.class_rates:
        _classes(figure, known)
    elif known.shown:
        low, high = known.edges[:-1], known.edges[1:]
        bars = _bins(
            plain((low + high) / 2, digits=6),
            plain(known.heights),
            float(f"{(high - low)[0]:.6g}"),
            bin_names(known),
        )
        figure.add_trace(bars, row=1, col=1)
        for hidden in _hidden(bars.x, bars.y, bars.width, bars.text, ()):
            figure.add_trace(hidden.update(showlegend=False), row=1, col=1)
        figure.update_yaxes(tickformat=".0%", rangemode="tozero", nticks=5, row=1, col=1)
        figure.update_yaxes(title_text="fraction of values", row=1, col=1)
        figure.update_xaxes(title_text=html.escape(known.feature.unit or "value", quote=False), row=1, col=1)
    else:
        few = f"fewer than {MIN_AGGREGATE} stays have a value" if known.stays else "no value was observed"
        if known.stays >= MIN_AGGREGATE:
            few = ONE_CLASS if known.feature.discrete else "too few stays for a histogram"
        place = {"x": 0.5, "y": 0.85 if temporal else 0.5, "xref": "paper", "yref": "paper"}
        figure.add_annotation(text=few, showarrow=False, **place)
        figure.update_xaxes(visible=False, row=1, col=1)
        figure.update_yaxes(visible=False, row=1, col=1)
    if temporal:
        rates = missing_by_step(cohort, known.feature, MIN_AGGREGATE)
        line = _line(
            "missing", MISSING, plain(rates), showlegend=False, hovertemplate="%{y:.1%} missing<extra></extra>"
        )
        figure.add_trace(line, row=2, col=1)
        figure.update_yaxes(
            title_text="fraction missing", tickformat=".0%", range=[-0.03, 1.03], nticks=3, row=2, col=1
        )
        figure.update_xaxes(title_text=_step(cohort.schema.step), range=_width(cohort.schema.steps), row=2, col=1)
    return _dress(figure, sum(heights) + 30).update_layout(
        margin_t=12, hovermode="closest", bargap=0, barmode="overlay"
    )


def missing_map(cohort: Cohort) -> go.Figure:
    """Missing rates of all temporal features at every step, a row a feature."""
    features = [feature for feature in cohort.schema.temporal if feature.generated]
    rates = [plain(missing_by_step(cohort, feature, MIN_AGGREGATE)) for feature in features]
    figure = go.Figure(
        go.Heatmap(
            z=rates,
            x=list(range(cohort.schema.steps)),
            y=list(range(len(features))),
            zmin=0,
            zmax=1,
            colorscale=[[0, "#e8eef4"], [0.5, "#5b9bc8"], [1, "#08306b"]],
            xgap=1 if cohort.schema.steps <= 100 else 0,
            ygap=2,
            hoverongaps=False,
            text=[[_cut(feature.name)] * cohort.schema.steps for feature in features],
            hovertemplate="%{text}, step %{x}: %{z:.1%} missing<extra></extra>",
            colorbar={"tickformat": ".0%", "title": "missing", "thickness": 12, "outlinewidth": 0, "nticks": 3},
        )
    )
    texts = [_cut(feature.name) for feature in features]
    figure.update_yaxes(tickvals=list(range(len(features))), ticktext=texts, autorange="reversed", showgrid=False)
    figure.update_xaxes(title_text=_step(cohort.schema.step), showgrid=False)
    return _dress(figure, 140 + 26 * len(features)).update_layout(margin_t=16, hovermode="closest")


def _bins(middles: Numbers, heights: Numbers, width: float, names: list[str]) -> go.Bar:
    """Bars over the bins, a gap where fewer than ten stays have a value."""
    return go.Bar(
        x=middles,
        y=heights,
        width=width,
        marker={"color": REAL, "line": {"color": "rgba(255, 255, 255, 0.6)", "width": 0.5}},
        text=names,
        textposition="none",
        hovertemplate="%{text}: %{y:.1%}<extra></extra>",
        showlegend=False,
    )


def _hidden(
    middles: Sequence[float | None],
    heights: Sequence[float | None],
    width: float,
    names: Sequence[str],
    others: Sequence[float | None],
) -> list[go.Bar]:
    """Hatched bars as high as the figure where a bin is hidden, so that it is not taken for one without values."""
    hidden = [place for place, height in enumerate(heights) if height is None]
    if not hidden:
        return []
    pattern = {"shape": "/", "fillmode": "overlay", "fgcolor": MISSING, "size": 5, "solidity": 0.25}
    bars = go.Bar(
        name=f"hidden: fewer than {MIN_AGGREGATE} real stays",
        x=[middles[place] for place in hidden],
        y=[max((height for height in (*heights, *others) if height is not None), default=1.0)] * len(hidden),
        width=width,
        marker={"color": "rgba(0, 0, 0, 0)", "line": {"width": 0}, "pattern": pattern},
        text=[names[place] for place in hidden],
        textposition="none",
        hovertemplate="%{text}: hidden<extra></extra>",
    )
    return [bars]


def _classes(figure: go.Figure, known: Distribution) -> None:
    """A bar a class that at least ten stays have, and one for all the others."""
    rates, names = list(known.class_rates.values()), [_cut(name) for name in known.class_rates]
    if known.rare is not None:
        rates, names = [*rates, known.rare], [*names, f"<i>fewer than {MIN_AGGREGATE} stays</i>"]
    figure.add_trace(
        go.Bar(
            x=plain(np.array(rates)),
            y=list(range(len(rates))),
            orientation="h",
            width=0.7,
            marker={"color": [REAL] * len(known.class_rates) + [MISSING] * (known.rare is not None)},
            hovertemplate="%{x:.1%}<extra></extra>",
            showlegend=False,
        ),
        row=1,
        col=1,
    )
    figure.update_yaxes(tickvals=list(range(len(rates))), ticktext=names, showgrid=False, row=1, col=1)
    figure.update_yaxes(range=[len(rates) - 0.5, -0.5], row=1, col=1)
    figure.update_xaxes(title_text="fraction of values", tickformat=".0%", range=[0, 1.02], nticks=6, row=1, col=1)


def _line(
    name: str, colour: str, values: Numbers, *, dash: str = "solid", width: float = 2, **more: object
) -> go.Scatter:
    there = np.array([value is not None for value in values])
    alone = there & ~np.r_[False, there[:-1]] & ~np.r_[there[1:], False]  # between two gaps a line would be invisible
    return go.Scatter(
        name=name,
        x=list(range(len(values))),
        y=values,
        mode="lines+markers" if alone.any() else "lines",
        line={"color": colour, "width": width, "dash": dash},
        marker={"color": colour, "size": np.where(alone, 5, 0).tolist() if alone.any() else None},
        **more,
    )


def _band(name: str, colour: str, low: Numbers, high: Numbers, *, filled: bool) -> go.Scatter:
    """The area between two curves, filled or outlined (two fills would blend into grey); a gap in them parts it."""
    x: list[int | None] = []
    y: list[float | None] = []
    steps = np.flatnonzero([value is not None for value in low])
    for run in np.split(steps, np.flatnonzero(np.diff(steps) > 1) + 1):
        there = run.tolist()
        above, below = [high[step] for step in there], [low[step] for step in there]
        if filled:
            x += [*there, *there[::-1], None]
            y += [*above, *below[::-1], None]
        else:
            x += [*there, None, *there, None]
            y += [*above, None, *below, None]
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return go.Scatter(
        x=x,
        y=y,
        fill="toself" if filled else "none",
        fillcolor=f"rgba({red}, {green}, {blue}, 0.2)",
        line={"width": 0 if filled else 1, "color": colour, "dash": "dot"},
        mode="lines",
        hoverinfo="skip",
        legendgroup=name,
        showlegend=False,
    )


def _empty(text: str) -> go.Figure:
    """A sentence in place of a figure."""
    figure = go.Figure()
    _say(figure, text)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    return _dress(figure, 120)


def _say(figure: go.Figure, text: str) -> None:
    """A sentence in place of what cannot be shown."""
    figure.add_annotation(text=text, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)


def _cut(name: str) -> str:
    """A name beside an axis, not longer than there is room for."""
    return html.escape(name if len(name) <= 28 else f"{name[:27]}…", quote=False)


def _with_unit(name: str, unit: str | None) -> str:
    # A figure's text knows a few HTML tags and entities, so names are escaped here too.
    return html.escape(f"{name} ({unit})" if unit else name, quote=False)


def _axis(content: Course, row: int) -> str:
    """The title beside a vertical axis, broken where it would outgrow it."""
    text = f"{content.feature} ({content.unit})" if content.unit else content.feature
    if content.classes:
        text = f"{content.feature}: {content.classes[row]}"
    lines = textwrap.wrap(text, 14 if len(content.classes) > 1 else 26)
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def _width(steps: int) -> list[float]:
    return [-0.5, steps - 0.5]  # half a step of air for the marks at both ends


def _step(step: str) -> str:
    return "hour" if step == "1h" else f"step of {html.escape(step, quote=False)}"


def _dress(figure: go.Figure, height: int) -> go.Figure:
    """The look all figures share: transparent, legend above, no zooming (a finger on the figure scrolls the page)."""
    figure.update_xaxes(fixedrange=True, automargin=True, gridcolor=FAINT, zeroline=False, title_standoff=6)
    figure.update_yaxes(fixedrange=True, automargin=True, gridcolor=FAINT, zeroline=False, title_standoff=6)
    return figure.update_layout(
        template="none",
        height=height,
        margin={"l": 8, "r": 12, "t": 44, "b": 8, "pad": 2},
        legend={"orientation": "h", "x": 0, "xanchor": "left", "y": 1, "yref": "container", "yanchor": "top"},
        font={"family": "system-ui, sans-serif", "size": 12},
        paper_bgcolor="rgba(0, 0, 0, 0)",
        plot_bgcolor="rgba(0, 0, 0, 0)",
        hoverlabel={"bgcolor": "#ffffff", "font": {"color": "#222222"}},
        hovermode="x unified",
        dragmode=False,
    )


def _faded(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.08)"
