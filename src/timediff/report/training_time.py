"""Quality against training time: what each generator of a comparison took to train, and what came of it."""

import html
import math
from collections.abc import Sequence
from itertools import count
from typing import Any

from rich.table import Table
from rich.text import Text

from timediff.evaluation.results import Results
from timediff.evaluation.score import Score
from timediff.evaluation.trainings import Runtime, runtimes
from timediff.report.gallery import placed
from timediff.report.meanings import classifier, meaning
from timediff.report.page import cell, header, plotly_is_here, section, table
from timediff.report.summary import shown

TITLE = "Quality against training time"
ABOUT = (
    "Seconds by the clock on the wall, from the first to the last moment of fitting; sampling includes writing to "
    "disk. ± is one standard deviation over training seeds. Times of different hardware cannot be compared."
)
HEADLINES = {"strict": ("auc", "worst"), "paper": ("score", "paper")}  # of the discriminative metric, by protocol
AT_ONCE = "Several trainings shared the machine, so each took longer than it would have alone."
RESUMED = "Stopped and continued, so that some of it was computed, and counted, twice."
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # for colour-blind readers too
SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "cross", "star")
LONG = 10  # the longest time, in shortest ones: beyond this an axis has equal steps for equal ratios


def training_time(results: Results, numbers: "count[int]") -> str:
    """The section; empty where nothing was timed and nothing failed."""
    known = runtimes(results.trainings)
    if not any(not math.isnan(one.seconds) or one.failures for one in known):
        return ""
    drawn = figure(results, known) if plotly_is_here() else None
    picture = placed(drawn, _caption(results), numbers) if drawn else ""
    return section(TITLE, f"<p>{ABOUT}</p>\n{picture}\n{_table(known)}")


def marks(one: Runtime) -> str:
    """Signs beside a time that must not be compared as it is."""
    return "*" * (one.at_once > 1) + "†" * one.resumed


def notes(known: Sequence[Runtime]) -> list[tuple[str, str]]:
    """The signs, and what they mean."""
    found = [("*", AT_ONCE)] if any(one.at_once > 1 for one in known) else []
    return found + ([("†", RESUMED)] if any(one.resumed for one in known) else [])


def first_timed(known: Sequence[Runtime]) -> str:
    """The generator that the others' times are divided by."""
    return next((one.generator for one in known if not math.isnan(one.seconds)), "")


def _table(known: Sequence[Runtime]) -> str:
    ratio = f"ratio to {first_timed(known)}" if first_timed(known) else "ratio"
    headings = ["generator", "trainings", "training, s", ratio, "updates", "stays a second", ratio, "hardware"]
    rows = []
    for one in known:
        failed = "".join(f'<span class="what">failed: {html.escape(why)}</span>' for why in one.failures)
        time, rate = (f'<span class="part">{text}{marks(one)}</span>' for text in _time_and_rate(one))
        rows.append([
            header(html.escape(one.generator) + failed),
            cell(str(one.trainings)),
            cell(time),
            cell(times(one.ratio)),
            cell(amount(one.updates)),
            cell(rate),
            cell(times(one.sampling_ratio)),
            cell(html.escape(one.hardware or "–")),
        ])  # fmt: skip
    below = "".join(f'<p class="note">{sign} {what}</p>' for sign, what in notes(known))
    return table(headings, rows, kind="matrix") + below


def times_table(results: Results) -> Table:
    """The same for the terminal."""
    known = runtimes(results.trainings)
    found = Table(caption=" ".join(f"{sign} {what}" for sign, what in notes(known)) or None)
    found.add_column("generator", overflow="fold")
    for heading in ("training, s", f"ratio to {first_timed(known)}", "updates", "stays sampled a second"):
        found.add_column(Text(heading), justify="right")
    for one in known:
        time, rate = (f"{text}{marks(one)}" for text in _time_and_rate(one))
        found.add_row(*map(Text, (one.generator, time, times(one.ratio), amount(one.updates), rate)))
    return found


def _time_and_rate(one: Runtime) -> tuple[str, str]:
    return amount(one.seconds, one.std), amount(one.sampling, one.sampling_std)


def amount(value: float, std: float = math.nan) -> str:
    """Seconds, updates or stays, with as many digits as they are worth."""
    if math.isnan(value):
        return "–"
    digits = 0 if value >= 100 or value == round(value) else 1 if value >= 1 else 3
    text = f"{value:,.{digits}f}"
    return text if math.isnan(std) else f"{text} ± {std:,.{digits}f}"


def times(ratio: float) -> str:
    return "–" if math.isnan(ratio) else f"{ratio:.3g} ×" if ratio < 1000 else f"{ratio:,.0f} ×"


def headline(results: Results) -> tuple[Any, ...] | None:
    """The key of the number that the protocol is known by; without it, of the first one of whole cohorts."""
    every = [score for name in results.generators for score in results.scores[name]]
    whole = [score for score in every if shown(score) and not math.isnan(score.value)]
    wanted = HEADLINES.get(str(results.settings.get("protocol")))
    mine = [one for one in whole if one.metric == "discriminative" and (one.what, one.classifier) == wanted]
    return next((score.key for score in (*mine, *whole)), None)


def _found(results: Results) -> dict[str, Score]:
    key = headline(results)
    every = [(name, score) for name in results.generators for score in results.scores[name]]
    return {name: score for name, score in every if score.key == key and not math.isnan(score.value)}


def _caption(results: Results) -> str:
    first = next(iter(_found(results).values()))
    who = classifier(first)
    return f"{meaning(first).title}{f' ({who})' if who else ''} by seconds of training; dashed: real against real"


def figure(results: Results, known: Sequence[Runtime]) -> dict[str, Any] | None:
    """A point a generator, ± SD over training seeds both ways, and the floor, as a Plotly figure."""
    scores = _found(results)
    there = [one for one in known if one.generator in scores and one.seconds > 0]
    if not there:
        return None
    data: list[dict[str, Any]] = []
    for place, one in enumerate(there):
        score, colour = scores[one.generator], COLOURS[place % len(COLOURS)]
        data.append({
            "type": "scatter", "mode": "markers", "name": html.escape(one.generator, quote=False),
            "x": [_short(one.seconds)], "y": [_short(score.value)],
            "error_x": _error(one.std, colour), "error_y": _error(score.std.get("cohort", math.nan), colour),
            "marker": {"color": colour, "size": 11, "symbol": SYMBOLS[place % len(SYMBOLS)]},
            "hovertemplate": "%{x} s, %{y}",
        })  # fmt: skip
    floors = sorted({_short(score.floor) for score in scores.values() if not math.isnan(score.floor)})
    lines = [
        {"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": floor, "y1": floor, "line": _DASHED}
        for floor in floors
    ]
    values = [one.seconds for one in there]
    first = next(iter(scores.values()))
    reach = [score.value for score in scores.values()] + floors
    axis = {"gridcolor": "rgba(128, 128, 128, 0.25)", "zeroline": False, "fixedrange": True, "automargin": True}
    layout = {
        "height": 340,
        "font": {"family": "system-ui, sans-serif", "size": 12},
        "margin": {"l": 8, "r": 12, "t": 48, "b": 8},
        "paper_bgcolor": "rgba(0, 0, 0, 0)",
        "plot_bgcolor": "rgba(0, 0, 0, 0)",
        "shapes": lines,
        "xaxis": {**axis, **_seconds_axis(values)},
        "yaxis": {**axis, "title": {"text": html.escape(meaning(first).title, quote=False)}, "range": _room(reach)},
        "legend": {"orientation": "h", "x": 0, "y": 1, "yref": "container", "yanchor": "top"},
        "showlegend": True,
        "dragmode": False,
    }
    return {"data": data, "layout": layout}


_DASHED = {"color": "#8a8f98", "dash": "dash", "width": 1.5}


def _seconds_axis(values: Sequence[float]) -> dict[str, Any]:
    title = {"title": {"text": "training, seconds"}}
    low, high = min(values), max(values)
    if high > LONG * low:
        powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
        ticks = [_short(digit * 10.0**power) for power in powers for digit in (1, 2, 5)]
        marked = {"tickvals": ticks, "ticktext": [f"{tick:,g}" for tick in ticks]}
        return {**title, **marked, "type": "log", "range": [math.log10(low) - 0.15, math.log10(high) + 0.15]}
    return {**title, "range": [0, 1.15 * high]}


def _room(values: Sequence[float]) -> list[float]:
    """From the least to the most, and some air."""
    low, high = min(values), max(values)
    air = max(0.15 * (high - low), 0.02 * max(abs(low), abs(high)), 1e-3)
    return [_short(low - air), _short(high + air)]


def _error(std: float, colour: str) -> dict[str, Any]:
    return {"type": "data", "array": [_short(std)], "color": colour, "visible": True} if std > 0 else {"visible": False}


def _short(value: float) -> float:
    return float(f"{value:.4g}")
