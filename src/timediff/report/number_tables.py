"""Tables of what there are many of: one table a number, one row a feature or classifier, generators side by side.

A cell holds one number. Real against real and intervals have columns of their own, so no table needs a scroll bar.
"""

import html
import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from timediff.evaluation.score import Score
from timediff.report.meanings import meaning
from timediff.report.page import header, table
from timediff.report.score_tables import best, marked, notes, number, sort_key, spread, whole

FLOOR, INTERVAL, LARGEST = "real", "95 % interval", "largest"
FIRST, EACH = 12.0, 11.0  # rem that a table needs for the names of rows, and for a generator
FEW = 2  # generators: tables of so many have room beside each other on paper
NONE = "<td>–</td>"
Known = Mapping[str, Sequence[Score]]  # by generator


def by_number(scores: Known, row: Callable[[Score], str], heading: str) -> str:
    """A table for each number; they stand beside each other where there is room."""
    numbers = list(dict.fromkeys((s.metric, s.what) for known in scores.values() for s in known))
    tables = [
        _table({name: [s for s in known if (s.metric, s.what) == one] for name, known in scores.items()}, row, heading)
        for one in numbers
    ]
    least = FIRST + EACH * len(scores)
    below = notes([s for known in scores.values() for s in known])
    kind = "numbers few" if len(scores) <= FEW else "numbers"
    return f'<div class="{kind}" style="--least: {least:g}rem">\n{"".join(tables)}</div>{below}' if tables else ""


def _table(scores: Known, row: Callable[[Score], str], heading: str) -> str:
    """One number, with what it means above it."""
    every = [s for known in scores.values() for s in known]
    says = meaning(every[0])
    found: dict[str, dict[str, list[Score]]] = {}
    for name, known in scores.items():
        for s in known:
            found.setdefault(row(s), {}).setdefault(name, []).append(s)
    floors, reasons = any(not math.isnan(s.floor) for s in every), list[str]()
    several = [cell for cells in found.values() for cell in cells.values() if len(cell) > 1]
    features = any(s.feature is not None for cell in several for s in cell)
    ends = LARGEST if features else INTERVAL
    shown = features or (not several and any(not math.isnan(s.low) for s in every))
    columns = [heading, *([FLOOR] if floors else [])]
    for name in scores:
        columns += [name, *([ends] if shown else [])]
    body = []
    for title, cells in found.items():
        line = [header(html.escape(title))]
        line += [_floor([s for several in cells.values() for s in several])] if floors else []
        for name in scores:
            known = cells.get(name, [])
            line += [_value(known, reasons), *([_ends(known)] if shown else [])]
        body.append(line)
    above = f"<h4>{html.escape(says.title)}</h4>"
    above += f'<p class="note">{html.escape(best(says))}</p>' if says.sentence else ""
    below = "".join(
        f'<p class="note"><sup>{place}</sup> not available: {html.escape(why)}</p>'
        for place, why in enumerate(reasons, start=1)
    )
    return f"<div>{above}{table(columns, body, kind='sortable')}{below}</div>\n"


def _value(scores: Sequence[Score], reasons: list[str]) -> str:
    """The number, or the mean of several: of features that of absolute values. Why there is none stands below."""
    if not scores:
        return NONE
    known = [s for s in scores if not math.isnan(s.value)]
    if not known:
        why = scores[0].note or "no reason was given"
        if why not in reasons:
            reasons.append(why)
        return f'<td class="absent">not available <sup>{reasons.index(why) + 1}</sup></td>'
    if len(scores) > 1:
        mean = fmean(s.value if s.feature is None else abs(s.value) for s in known)
        return f"<td{sort_key(mean)}>{number(mean)}</td>"
    text = f'<span class="part">{whole(known[0]) or number(known[0].value)}</span>'
    return f"<td{sort_key(known[0].value)}>{marked(known[0], text)}{spread(known[0])}</td>"


def _ends(scores: Sequence[Score]) -> str:
    """Its interval or, of several features, the largest and which one that is."""
    known = [s for s in scores if not math.isnan(s.value)]
    if len(scores) > 1 and known:
        worst = max(known, key=lambda s: abs(s.value))
        return f'<td class="soft">{number(worst.value)}, {html.escape(worst.feature or "")}</td>'
    if not known or math.isnan(known[0].low) or math.isnan(known[0].high):
        return NONE
    return f'<td class="soft">{number(known[0].low)} to {number(known[0].high)}</td>'


def _floor(scores: Sequence[Score]) -> str:
    """The same for real stays; a range where it differs between generators of which each has one score."""
    floors = [s for s in scores if not math.isnan(s.floor)]
    if not floors:
        return NONE
    if len({(s.feature, s.classifier) for s in floors}) > 1:
        mean = fmean(s.floor if s.feature is None else abs(s.floor) for s in floors)
        return f'<td class="soft">{number(mean)}</td>'
    low, high = (pick(s.floor for s in floors) for pick in (min, max))
    text = number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"
    return f'<td class="soft"{sort_key(low)}>{text}</td>'
