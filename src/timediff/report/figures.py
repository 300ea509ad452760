"""Figures: real stays as aggregates of at least ten, synthetic stays also one by one.

Numbers enter a figure as short plain lists: what a page discloses can then be read in its source.
"""

import html
import textwrap
from collections.abc import Mapping, Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from timediff.cohort import Cohort
from timediff.describe import Distribution, missing_by_step
from timediff.metrics.marginals import levels, marginals, require_same_features
from timediff.report.terminal import FEWEST
from timediff.schema import Feature, Schema
from timediff.tables import Array, Floats

REAL, SYNTHETIC = "#0072B2", "#D55E00"  # told apart by colour-blind readers as well
MISSING = "#8a8f98"
STAYS = ("#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#0072B2")
FAINT = "rgba(128, 128, 128, 0.25)"  # grid lines on white and on black
DASH = {"real": "solid", "synthetic": "dash"}  # and told apart in black and white


def trajectories(real: Cohort, synthetic: Cohort, feature: str) -> go.Figure:
    """Mean ± SD over stays at each step, or the share of each class; a gap where fewer than ten stays are observed."""
    require_same_features(real.schema, synthetic.schema)
    described = real.schema[feature]
    rows = levels(described)
    figure = make_subplots(rows=len(rows), shared_xaxes=True, vertical_spacing=0.2 / len(rows))
    empty = True
    for row, level in enumerate(rows, start=1):
        for name, cohort, colour in (("real", real, REAL), ("synthetic", synthetic, SYNTHETIC)):
            values = cohort.series[feature]
            if level is not None:
                values = np.where(np.isnan(values), np.nan, values == level)
            mean, sd = _by_step(values)
            empty &= bool(np.isnan(mean).all())
            if level is None:
                figure.add_trace(_band(name, colour, mean - sd, mean + sd, filled=name == "real"), row=row, col=1)
            line = _line(name, colour, mean, dash=DASH[name], legendgroup=name, showlegend=row == 1)
            figure.add_trace(line, row=row, col=1)
        figure.update_yaxes(title_text=_axis(described, level), row=row, col=1)
    if empty:
        figure.update_yaxes(showticklabels=False)
        figure.add_annotation(
            text=f"fewer than {FEWEST} stays at every step", x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False
        )
    elif described.discrete:
        figure.update_yaxes(tickformat=".0%", rangemode="tozero", nticks=4)
    figure.update_xaxes(range=_width(max(real.schema.steps, synthetic.schema.steps)))
    figure.update_xaxes(title_text=_step(real.schema), row=len(rows), col=1)
    return _dress(figure, 280 if len(rows) == 1 else 110 + 110 * len(rows))


def single_stays(synthetic: Cohort, features: Sequence[str] | None = None, count: int = 4) -> go.Figure:
    """A few synthetic stays, evenly taken from the cohort: one row a continuous feature, one line a stay."""
    names = [f.name for f in synthetic.schema.temporal if not f.discrete] if features is None else list(features)
    chosen = np.unique(np.linspace(0, len(synthetic) - 1, min(count, len(synthetic))).round().astype(int))
    rows = max(1, len(names))
    titles = [_label(synthetic.schema[name]) for name in names]
    height = 130 + 130 * rows
    figure = make_subplots(rows=rows, shared_xaxes=True, subplot_titles=titles, vertical_spacing=34 / height)
    figure.update_annotations(x=0, xanchor="left", font_size=13)
    for row, name in enumerate(names, start=1):
        for place, stay in enumerate(chosen):
            label = f"stay {html.escape(str(synthetic.stay_id[stay]), quote=False)}"
            line = _line(label, STAYS[place % len(STAYS)], synthetic.series[name][stay], width=1.5)
            line.update(mode="lines+markers", marker_size=4, legendgroup=str(place), showlegend=row == 1)
            figure.add_trace(line, row=row, col=1)
    figure.update_yaxes(nticks=4)
    figure.update_xaxes(range=_width(synthetic.schema.steps))
    figure.update_xaxes(title_text=_step(synthetic.schema), row=rows, col=1)
    return _dress(figure, height).update_layout(margin_t=84)  # the legend may need two lines


def missingness(real: Cohort, synthetic: Cohort) -> go.Figure:
    """Missing rates by feature, real beside synthetic."""
    records = {record.feature: record for record in reversed(marginals(real, synthetic))}
    features = [f for f in real.schema.features if f.generated]
    shown = [records[f.name] for f in features]
    bars = {
        "real": [record.real_missing if record.real_stays >= FEWEST else np.nan for record in shown],
        "synthetic": [record.synthetic_missing for record in shown],
    }
    figure = go.Figure()
    for name, colour in (("real", REAL), ("synthetic", SYNTHETIC)):
        pattern = {"shape": "" if name == "real" else "/", "fillmode": "overlay", "fgcolor": "#ffffff", "size": 6}
        places = list(range(len(shown)))
        figure.add_trace(
            go.Bar(
                name=name,
                y=places,
                x=_plain(np.array(bars[name])),
                orientation="h",
                marker={"color": colour, "pattern": pattern},
            )
        )
    # Features by place, not by name: two long names may be cut to the same text.
    texts = [_cut(feature.name) for feature in features]
    figure.update_yaxes(tickvals=list(range(len(shown))), ticktext=texts, autorange="reversed", showgrid=False)
    figure.update_xaxes(title_text="missing", tickformat=".0%", rangemode="tozero")
    figure.update_traces(hovertemplate="%{x:.1%}")
    figure.update_layout(barmode="group", bargap=0.3)
    return _dress(figure, 110 + 34 * len(shown)).update_layout(hovermode="y unified")


def distribution(cohort: Cohort, known: Distribution) -> go.Figure:
    """One feature of a real cohort: its histogram or classes and, over time, how much of it is missing."""
    temporal = known.feature.scope == "temporal"
    above = 240 if known.shown else 120
    if known.shares:
        above = max(200, 90 + 24 * (len(known.shares) + 1))
    heights = [above, 130] if temporal else [above]
    figure = make_subplots(
        rows=len(heights), row_heights=heights, vertical_spacing=70 / sum(heights) if temporal else 0
    )
    if known.shares:
        _classes(figure, known)
    elif known.shown:
        figure.add_trace(_bins(known), row=1, col=1)
        figure.update_yaxes(tickformat=".0%", rangemode="tozero", nticks=5, row=1, col=1)
        figure.update_yaxes(title_text="of values", row=1, col=1)
        figure.update_xaxes(title_text=html.escape(known.feature.unit or "value", quote=False), row=1, col=1)
    else:
        few = f"fewer than {FEWEST} stays have a value" if known.stays else "no value was observed"
        if known.stays >= FEWEST:
            few = "too few stays for a histogram"
        place = {"x": 0.5, "y": 0.85 if temporal else 0.5, "xref": "paper", "yref": "paper"}
        figure.add_annotation(text=few, showarrow=False, **place)
        figure.update_xaxes(visible=False, row=1, col=1)
        figure.update_yaxes(visible=False, row=1, col=1)
    if temporal:
        rates = missing_by_step(cohort, known.feature, FEWEST)
        line = _line("missing", MISSING, rates, showlegend=False, hovertemplate="%{y:.1%} missing<extra></extra>")
        figure.add_trace(line, row=2, col=1)
        figure.update_yaxes(title_text="missing", tickformat=".0%", range=[-0.03, 1.03], nticks=3, row=2, col=1)
        figure.update_xaxes(title_text=_step(cohort.schema), range=_width(cohort.schema.steps), row=2, col=1)
    return _dress(figure, sum(heights) + 30).update_layout(margin_t=12, hovermode="closest", bargap=0)


def missing_map(cohort: Cohort) -> go.Figure:
    """Missing rates of all temporal features at every step, a row a feature."""
    features = [feature for feature in cohort.schema.temporal if feature.generated]
    rates = [_plain(missing_by_step(cohort, feature, FEWEST)) for feature in features]
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
    figure.update_xaxes(title_text=_step(cohort.schema), showgrid=False)
    return _dress(figure, 140 + 26 * len(features)).update_layout(margin_t=16, hovermode="closest")


def _bins(known: Distribution) -> go.Bar:
    """Bars over the bins, a gap where fewer than ten stays have a value."""
    low, high = known.edges[:-1], known.edges[1:]
    inner = (known.spacing or 0) / 2  # a bin is named by the values in it, not by the edges half-way between values
    names = [f"{a + inner:.4g} to {b - inner:.4g}" for a, b in zip(low, high, strict=True)]
    if known.spacing and (high - low)[0] < 1.5 * known.spacing:
        names = [f"{a + inner:.4g}" for a in low]
    return go.Bar(
        x=_plain((low + high) / 2, digits=6),
        y=_plain(known.heights),
        width=float(f"{(high - low)[0]:.6g}"),
        marker={"color": REAL, "line": {"color": "rgba(255, 255, 255, 0.6)", "width": 0.5}},
        text=names,
        textposition="none",
        hovertemplate="%{text}: %{y:.1%}<extra></extra>",
        showlegend=False,
    )


def _classes(figure: go.Figure, known: Distribution) -> None:
    """A bar a class that at least ten stays have, and one for all the others."""
    shares, names = list(known.shares.values()), [_cut(name) for name in known.shares]
    if known.rare is not None:
        shares, names = [*shares, known.rare], [*names, f"<i>fewer than {FEWEST} stays</i>"]
    figure.add_trace(
        go.Bar(
            x=_plain(np.array(shares)),
            y=list(range(len(shares))),
            orientation="h",
            width=0.7,
            marker={"color": [REAL] * len(known.shares) + [MISSING] * (known.rare is not None)},
            hovertemplate="%{x:.1%}<extra></extra>",
            showlegend=False,
        ),
        row=1,
        col=1,
    )
    figure.update_yaxes(tickvals=list(range(len(shares))), ticktext=names, showgrid=False, row=1, col=1)
    figure.update_yaxes(range=[len(shares) - 0.5, -0.5], row=1, col=1)
    figure.update_xaxes(title_text="of values", tickformat=".0%", range=[0, 1.02], nticks=6, row=1, col=1)


def _by_step(values: Floats) -> tuple[Floats, Floats]:
    """Mean and SD over stays at each step, (L,); NaN where fewer than `FEWEST` stays are observed."""
    observed = ~np.isnan(values)  # (N, L)
    count = observed.sum(axis=0)
    divisor = np.where(count >= FEWEST, count, np.nan)
    mean = np.where(observed, values, 0).sum(axis=0) / divisor
    sd = np.sqrt(np.where(observed, (values - mean) ** 2, 0).sum(axis=0) / divisor)
    return mean, sd


def _line(
    name: str, colour: str, values: Floats, *, dash: str = "solid", width: float = 2, **more: object
) -> go.Scatter:
    there = np.isfinite(values)
    alone = there & ~np.r_[False, there[:-1]] & ~np.r_[there[1:], False]  # between two gaps a line would be invisible
    return go.Scatter(
        name=name,
        x=list(range(len(values))),
        y=_plain(values),
        mode="lines+markers" if alone.any() else "lines",
        line={"color": colour, "width": width, "dash": dash},
        marker={"color": colour, "size": np.where(alone, 5, 0).tolist() if alone.any() else None},
        **more,
    )


def _band(name: str, colour: str, low: Floats, high: Floats, *, filled: bool) -> go.Scatter:
    """The area between two curves, filled or outlined (two fills would blend into grey); a gap in them parts it."""
    x: list[int | None] = []
    y: list[float | None] = []
    steps = np.flatnonzero(np.isfinite(low))
    for run in np.split(steps, np.flatnonzero(np.diff(steps) > 1) + 1):
        if filled:
            x += [*run.tolist(), *run[::-1].tolist(), None]
            y += [*_plain(high[run]), *_plain(low[run][::-1]), None]
        else:
            x += [*run.tolist(), None, *run.tolist(), None]
            y += [*_plain(high[run]), None, *_plain(low[run]), None]
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


def _plain(values: Array, digits: int = 4) -> list[float | None]:
    """Four significant digits, null where missing."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values.tolist()]


def _cut(name: str) -> str:
    """A name beside an axis, not longer than there is room for."""
    return html.escape(name if len(name) <= 28 else f"{name[:27]}…", quote=False)


def _label(feature: Feature) -> str:
    # A figure's text knows a few HTML tags and entities, so names are escaped here too.
    return html.escape(f"{feature.name} ({feature.unit})" if feature.unit else feature.name, quote=False)


def _axis(feature: Feature, level: int | None) -> str:
    """The title beside a vertical axis, broken where it would outgrow it."""
    text = f"{feature.name} ({feature.unit})" if feature.unit else feature.name
    if level is not None:
        text = f"{feature.name}: {feature.classes[level]}"
    lines = textwrap.wrap(text, 14 if feature.kind == "categorical" else 26)
    return "<br>".join(html.escape(line, quote=False) for line in lines)


def _width(steps: int) -> list[float]:
    return [-0.5, steps - 0.5]  # half a step of air for the marks at both ends


def _step(schema: Schema) -> str:
    return "hour" if schema.step == "1h" else f"step of {html.escape(schema.step, quote=False)}"


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


def overlay(known: Distribution, synthetic: Cohort) -> go.Figure:
    """One feature's distribution, real as far as at least ten stays say it, and synthetic on the same bins."""
    values = np.asarray(synthetic.values(known.feature.name), np.float64).ravel()
    observed = values[~np.isnan(values)]
    if known.shares:
        return _overlaid_classes(known, observed)
    figure = go.Figure()
    if not known.shown:
        few = f"too few real stays have a value (at least {FEWEST} are needed)"
        figure.add_annotation(text=few, x=0.5, y=0.5, xref="paper", yref="paper", showarrow=False)
        figure.update_xaxes(visible=False)
        figure.update_yaxes(visible=False)
        return _dress(figure, 120)
    counts, _ = np.histogram(observed, known.edges)
    shares = counts / max(1, len(observed))
    figure.add_trace(_bins(known).update(name="real", showlegend=True, hovertemplate=None, hoverinfo="y+name"))
    left, right = known.edges[:1], known.edges[-1:]
    line = {"color": SYNTHETIC, "width": 2, "shape": "hvh"}  # a staircase: its steps are the bins
    middles = np.concatenate([left, (known.edges[:-1] + known.edges[1:]) / 2, right])
    heights = np.concatenate([shares[:1], shares, shares[-1:]])
    figure.add_trace(
        go.Scatter(name="synthetic", x=_plain(middles, digits=6), y=_plain(heights), mode="lines", line=line)
    )
    figure.update_traces(selector={"name": "real"}, marker_opacity=0.55)
    figure.update_xaxes(title_text=html.escape(known.feature.unit or "value", quote=False))
    figure.update_yaxes(title_text="of values", tickformat=".0%", rangemode="tozero", nticks=5)
    return _dress(figure, 250).update_layout(hovermode="closest", bargap=0)


def _overlaid_classes(known: Distribution, observed: Floats) -> go.Figure:
    """Shares of the classes that at least ten real stays have, and of all others together where they may be told."""
    shown = [observed == place for place, name in enumerate(known.feature.classes) if str(name) in known.shares]
    counts = [int(these.sum()) for these in shown]
    others = known.rare is not None and not np.isnan(known.rare)
    real, names = list(known.shares.values()), [_cut(name) for name in known.shares]
    if others and known.rare is not None:
        counts, real = [*counts, len(observed) - sum(counts)], [*real, known.rare]
        names.append(f"<i>fewer than {FEWEST} real stays</i>")
    synthetic = np.array(counts) / max(1, sum(counts))
    figure = go.Figure()
    for name, shares, colour in (("real", np.array(real), REAL), ("synthetic", synthetic, SYNTHETIC)):
        pattern = {"shape": "" if name == "real" else "/", "fillmode": "overlay", "fgcolor": "#ffffff", "size": 6}
        bar = {"x": _plain(shares), "y": list(range(len(names))), "orientation": "h"}
        figure.add_trace(go.Bar(name=name, marker={"color": colour, "pattern": pattern}, **bar))
    figure.update_traces(hovertemplate="%{x:.1%}")
    figure.update_yaxes(tickvals=list(range(len(names))), ticktext=names, autorange="reversed", showgrid=False)
    figure.update_xaxes(title_text="of values", tickformat=".0%", range=[0, 1.02], nticks=6)
    return _dress(figure, 110 + 44 * len(names)).update_layout(barmode="group", hovermode="y unified")


SETS = {"train": REAL, "test": "#009E73", "synthetic": SYNTHETIC}
SET_NAMES = {"train": "real, training", "test": "real, unseen", "synthetic": "synthetic"}


def density_figure(
    densities: Mapping[str, Floats], edges_x: Floats, edges_y: Floats, most: float | None = None
) -> go.Figure:
    """Shares of each set's stays on a map of all stays, by x, then y, a panel a set; NaN = too few stays, left blank.

    `most` is the share that has the full colour, so that maps beside each other can be compared.
    """
    names = list(densities)
    titles = [SET_NAMES.get(name, html.escape(name, quote=False)) for name in names]
    several = titles if len(names) > 1 else None
    figure = make_subplots(cols=max(1, len(names)), shared_yaxes=True, subplot_titles=several)
    for place, name in enumerate(names, start=1):
        colour = SETS.get(name, MISSING)
        figure.add_trace(
            go.Heatmap(
                name=titles[place - 1],
                x=_plain((edges_x[:-1] + edges_x[1:]) / 2),
                y=_plain((edges_y[:-1] + edges_y[1:]) / 2),
                z=[_plain(row) for row in densities[name].T],  # a heatmap's rows are y
                colorscale=[[0, _faded(colour)], [1, colour]],
                zmin=0,
                zmax=most,
                showscale=False,
                hoverongaps=False,
                hovertemplate="%{z:.1%} of these stays<extra></extra>",
            ),
            row=1,
            col=place,
        )
    for axis, edges in ((figure.update_xaxes, edges_x), (figure.update_yaxes, edges_y)):
        axis(showticklabels=False, showgrid=False, range=[float(f"{edges[0]:.4g}"), float(f"{edges[-1]:.4g}")])
        axis(showline=True, mirror=True, linecolor=FAINT, ticks="")
    return _dress(figure, 300).update_layout(hovermode="closest", margin_t=34 if several else 12)


def points_figure(points: Floats, which: Sequence[str]) -> go.Figure:
    """Every stay a point on the map: for the eyes of those who may see single real stays."""
    figure = go.Figure()
    chosen = np.asarray(which)
    for name, colour in SETS.items():
        these = points[chosen == name]
        marker = {"color": colour, "size": 4, "opacity": 0.5}
        figure.add_trace(
            go.Scatter(
                name=SET_NAMES[name], x=_plain(these[:, 0]), y=_plain(these[:, 1]), mode="markers", marker=marker
            )
        )
    figure.update_traces(hoverinfo="name")
    figure.update_xaxes(showticklabels=False)
    figure.update_yaxes(showticklabels=False)
    return _dress(figure, 480).update_layout(hovermode="closest")


def _faded(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, 0.08)"
