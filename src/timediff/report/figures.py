"""Figures: real stays as aggregates of at least ten, synthetic stays also one by one.

Numbers enter a figure as short plain lists: what a page discloses can then be read in its source.
"""

import html
import textwrap
from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from timediff.cohort import Cohort
from timediff.metrics.marginals import levels, marginals, require_same_features
from timediff.report.terminal import FEWEST
from timediff.schema import Feature, Schema
from timediff.tables import Array, Floats

REAL, SYNTHETIC = "#0072B2", "#D55E00"  # told apart by colour-blind readers as well
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
    texts = [html.escape(f.name if len(f.name) <= 28 else f"{f.name[:27]}…", quote=False) for f in features]
    figure.update_yaxes(tickvals=list(range(len(shown))), ticktext=texts, autorange="reversed", showgrid=False)
    figure.update_xaxes(title_text="missing", tickformat=".0%", rangemode="tozero")
    figure.update_traces(hovertemplate="%{x:.1%}")
    figure.update_layout(barmode="group", bargap=0.3)
    return _dress(figure, 110 + 34 * len(shown)).update_layout(hovermode="y unified")


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


def _plain(values: Array) -> list[float | None]:
    """Four significant digits, null where missing."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values.tolist()]


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
