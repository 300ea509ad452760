"""How the simulated ICU is charted: what a record shows besides the patient, and a classifier sees at once.

- Blood pressure is measured by an arterial line or by a cuff. Nothing in the record says which, but all values show it.
- People round: numbers that they prefer are charted more often than others.
- People chart a value again that they charted last.
- What is measured together is missing together, and a gap lasts.

How often is chosen by what MIMIC and PhysioNet 2012 show, a little more of it where cohorts of a few stays should too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from timediff.data.arrays import Array, Floats


@dataclass(frozen=True)
class Habit:
    """How people chart what they measure."""

    decimals: int = 0
    preferred: float = 1
    rounded: float = 0  # fraction of values that are rounded to a multiple of `preferred`, on average over stays
    again: float = 0  # fraction of values that are the last one, charted again
    dropped: float = 0  # fraction of values that are missing although what is measured with them is there


HABITS = {
    "heart_rate": Habit(preferred=10, rounded=0.03, again=0.04, dropped=0.01),
    "resp_rate": Habit(preferred=2, rounded=0.25, again=0.12, dropped=0.05),
    "spo2": Habit(again=0.08, dropped=0.03),
    "temperature": Habit(decimals=1, preferred=0.5, rounded=0.12, again=0.10),
}
LINE, CUFF = Habit(again=0.03), Habit(preferred=10, rounded=0.15, again=0.03)
# Missing rates of a stay of average severity. What stands in one row is charted together, as the pressures are.
GAPS = {("heart_rate", "resp_rate", "spo2"): 0.05, ("temperature",): 0.66}
LINE_GAPS, CUFF_GAPS = 0.05, 0.20
EVER_LINE = 1.6  # log odds: about four stays of five have a line at some time
LATE, EARLY = 0.12, 0.25  # of these, it is placed after the stay has begun, and taken out before the stay ends


def line_in_place(rng: np.random.Generator, severity: Floats, steps: int) -> Array:
    """At which steps an arterial line measures the pressure, (N, L); the sicker a stay (N,), the likelier it is."""
    stays = len(severity)
    ever = rng.logistic(size=stays) < EVER_LINE + severity
    begin = np.where(rng.random(stays) < LATE, rng.uniform(0, 0.3, stays), 0)
    end = np.where(rng.random(stays) < EARLY, rng.uniform(0.4, 1, stays), 1)
    middle = (np.arange(steps) + 0.5) / steps
    return ever[:, None] & (middle >= begin[:, None]) & (middle < end[:, None])


def charts(
    rng: np.random.Generator,
    true: dict[str, Floats],  # what the patients have, (N, L) by name; taken out one by one, to save memory
    line: Array,
    severity: Floats,
    spell: Callable[[], Floats],  # something that lasts: standard normal, autocorrelated
) -> dict[str, Floats]:
    """What is charted of them, NaN where nothing is."""
    names = list(true)
    pressures = {name: true.pop(name) for name in ("sbp", "dbp", "mbp")}
    found = chart_pressures(rng, pressures, line, gaps(rng, np.where(line, LINE_GAPS, CUFF_GAPS), severity, spell()))
    for together, rate in GAPS.items():
        gap = gaps(rng, rate, severity, spell())
        for name in together:
            found[name] = chart(rng, true.pop(name), gap, HABITS[name])
    return {name: found[name] for name in names}


def gaps(rng: np.random.Generator, rate: Floats | float, severity: Floats, spells: Floats) -> Array:
    """Where nobody charted, (N, L). The sicker, the more is charted; and a gap lasts, as part of its odds do."""
    odds = np.log(rate / (1 - rate)) - 0.6 * severity + spells - 0.2
    return rng.logistic(size=severity.shape) < odds


def chart(rng: np.random.Generator, true: Floats, gap: Array, habit: Habit) -> Floats:
    """One feature as it is charted."""
    measured = ~gap & (rng.random(gap.shape) >= habit.dropped)
    shown = np.round(rounded(rng, true, habit), habit.decimals)
    values = np.take_along_axis(shown, charted_again(rng, measured, habit.again), axis=1)
    values[~measured] = np.nan
    return values


def chart_pressures(rng: np.random.Generator, true: Mapping[str, Floats], line: Array, gap: Array) -> dict[str, Floats]:
    """Systolic, diastolic and mean pressure, charted together.

    A line shows whole numbers. Its mean is read off, so it is only near to what follows from the other two. The mean of
    a cuff is calculated, (SBP + 2 DBP) / 3, from the numbers that were charted, and kept with two decimals.
    """
    sbp, dbp, read = (nearest(true[name], 1) for name in ("sbp", "dbp", "mbp"))
    sbp, dbp = (np.where(line, pressure, rounded(rng, pressure, CUFF)) for pressure in (sbp, dbp))
    mbp = np.where(line, np.clip(read, dbp + 1, sbp - 1), np.round((sbp + 2 * dbp) / 3, 2))

    source = charted_again(rng, ~gap, np.where(line, LINE.again, CUFF.again))
    # What the line showed is no reading of the cuff, nor the other way round.
    same = np.take_along_axis(line, source, axis=1) == line
    source = np.where(same, source, np.arange(line.shape[1]))
    found = {"sbp": sbp, "dbp": dbp, "mbp": mbp}
    return {name: np.where(gap, np.nan, np.take_along_axis(found[name], source, axis=1)) for name in found}


def rounded(rng: np.random.Generator, values: Floats, habit: Habit) -> Floats:
    """Some values at the nearest preferred number; in some stays people round more than in others."""
    if not habit.rounded:
        return values
    fraction = 2 * habit.rounded * rng.random((len(values), 1))
    return np.where(rng.random(values.shape) < fraction, nearest(values, habit.preferred), values)


def nearest(values: Floats, step: float) -> Floats:
    """The nearest multiples. A half goes up, never to the even one, so that numbers `step` apart remain so."""
    return np.floor(values / step + 0.5) * step


def charted_again(rng: np.random.Generator, measured: Array, again: Floats | float) -> Array:
    """The step whose value is charted at each step, (N, L): that step, or the last one before that has its own."""
    steps = np.arange(measured.shape[1])
    own = rng.random(measured.shape) >= again
    last = np.maximum.accumulate(np.where(measured & own, steps, -1), axis=1)
    return np.where(own | (last < 0), steps, last)
