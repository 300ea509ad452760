"""The marginals as text: what a cell says and whether it is marked, and the table for the terminal."""

import math
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from timediff.data.privacy_limits import HIDDEN, MIN_AGGREGATE
from timediff.evaluation.metrics.marginals import Marginal

SHIFT = 0.2  # marked beyond this, in real standard deviations
GAP = 0.05  # marked beyond this difference of missing rates
HEADINGS = ("feature", "real", "synthetic", "shift", "missing, real", "missing, synthetic")
LEGEND = (
    f"Mean ± standard deviation, or fraction of a class. Shift: difference of the means in real standard deviations. "
    f"▲ ▼ mark a shift beyond {SHIFT:g} or missing rates more than {GAP * 100:g} points apart; "
    f"hidden: fewer than {MIN_AGGREGATE} real stays have a value, the class or another class; – is no value."
)


@dataclass(frozen=True)
class Cell:
    text: str
    mark: str = ""  # "▲" or "▼" where synthetic lies far above or below real


def cells(record: Marginal) -> tuple[Cell, ...]:
    """One row under `HEADINGS`."""
    shown, enough = record.real_shown, record.real_stays >= MIN_AGGREGATE
    none = HIDDEN if record.real_stays else "–"
    unit = f" ({record.unit})" if record.unit else ""
    name = f"{record.feature}{unit}" if record.level is None else f"{record.feature}: {record.level}"
    shift = record.shift if shown else math.nan
    gap = record.synthetic_missing - record.real_missing if enough else math.nan
    return (
        Cell(name),
        Cell(_value(record, record.real_mean, record.real_sd) if shown else none),
        Cell(_value(record, record.synthetic_mean, record.synthetic_sd)),
        Cell(_signed(shift) if shown else none, _mark(shift, SHIFT)),
        Cell(_percent(record.real_missing) if enough or not record.real_stays else none),
        Cell(_percent(record.synthetic_missing), _mark(gap, GAP)),
    )


def marginals_table(records: list[Marginal]) -> Table:
    """The marginals for the terminal, far-off cells marked."""
    table = Table(caption=LEGEND, caption_justify="left")
    table.add_column(HEADINGS[0], overflow="fold")
    for heading in HEADINGS[1:]:
        table.add_column(heading.replace(", ", "\n"), justify="right", no_wrap=True)
    for record in records:
        # Text, not markup: a feature called "[red]" is a name.
        table.add_row(*(Text(f"{c.text} {c.mark}".rstrip(), "bold yellow" if c.mark else "") for c in cells(record)))
    return table


def _value(record: Marginal, mean: float, sd: float) -> str:
    if math.isnan(mean):
        return "–"
    if record.level is not None:
        return _percent(mean)
    scale = sd if record.real_stays < MIN_AGGREGATE or not record.real_sd > 0 else record.real_sd  # one precision a row
    if not 1e-4 < scale < 1e6:
        return f"{mean:.4g} ± {sd:.2g}"
    decimals = max(1, 1 - math.floor(math.log10(scale))) if scale < 1000 else 0
    return f"{mean:.{decimals}f} ± {sd:.{decimals}f}"


def _percent(fraction: float) -> str:
    return "–" if math.isnan(fraction) else f"{100 * fraction:.1f} %"


def _signed(shift: float) -> str:
    if math.isnan(shift):
        return "–"
    return f"{shift:+z.2f}".replace("-", "−")  # z: no negative zero


def _mark(difference: float, most: float) -> str:
    if not abs(difference) > most:
        return ""
    return "▲" if difference > 0 else "▼"
