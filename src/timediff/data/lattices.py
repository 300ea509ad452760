"""Lattices: which multiples recorded values keep to, such as whole numbers, tenths or thirds."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats

THIRD, EIGHTEENTH = 1 / 3, 1 / 18
# From coarse to fine. Thirds: a mean of three numbers. Eighteenths: tenths of a degree Fahrenheit, brought to Celsius.
WORDS: Mapping[float, str] = {
    100.0: "hundreds",
    50.0: "fifties",
    25.0: "multiples of 25",
    20.0: "twenties",
    10.0: "tens",
    5.0: "fives",
    2.0: "even numbers",
    1.0: "whole numbers",
    1 / 2: "halves",
    THIRD: "thirds",
    1 / 4: "quarters",
    1 / 5: "fifths",
    1 / 10: "tenths",
    EIGHTEENTH: "eighteenths",
    1 / 20: "twentieths",
    1 / 100: "hundredths",
}
ROUNDED = THIRD, EIGHTEENTH  # which are recorded with two decimals, if with few
SOME = 0.02  # fraction of values that makes a lattice worth a look
DIFFERENT = 0.005  # by which a finer lattice must hold more values than the one before
NEARLY_ALL = 0.995
MOST_TELLING = 6
FEWEST_POINTS = 8  # of a lattice within the range; on fewer, values are popular for what they are
WORTH = 0.03  # fraction of values, and
BEYOND_CHANCE = (
    1.25  # times as many as the next finer lattice would have there by chance: such a lattice tells something
)


def on_lattice(values: Array, step: float, decimals: int | None = 2) -> npt.NDArray[np.bool_]:
    """Which values, recorded with so many decimals or (None) in full, are multiples of `step`. NaN is none."""
    there: npt.NDArray[np.bool_] = np.abs(values - np.rint(values / step) * step) <= _slack(values, step, decimals)
    return there


def _slack(values: Array, step: float, decimals: int | None) -> Floats:
    """How far from a multiple a value may be."""
    if step in ROUNDED:
        return np.full(np.shape(values), 0.0051 if decimals == 2 else 1e-6)
    return np.asarray(1e-3 * step + 1e-7 * np.abs(values))  # also of what was once single precision


def lattices(values: Floats) -> list[float]:
    """The lattices that tell something of these values, from coarse to fine, up to the first that holds nearly all."""
    found, held = [], 0.0
    for step in WORDS:
        fraction = float(on_lattice(values, step).mean()) if len(values) else 0.0
        if fraction >= SOME and abs(fraction - held) > DIFFERENT:
            found.append(step)
            held = fraction
        if fraction >= NEARLY_ALL:
            break
    return found


def telling_lattices(values: Floats, decimals: int | None) -> tuple[float | None, tuple[float, ...]]:
    """The coarsest lattice that nearly all values keep to, if there is one; and, from coarse to fine, it and those that
    hold more values than the finer ones would give them by chance.
    """
    values = values[values != 0]  # which is on every lattice
    if len(values) == 0:
        return None, ()
    span = float(values.max() - values.min())
    # Where nearly everything would pass for a multiple, or all values are near one, there is no lattice to speak of.
    known = {step: span >= step and float(_slack(values, step, decimals).max()) <= step / 4 for step in WORDS}
    held = {step: float(on_lattice(values, step, decimals).mean()) if known[step] else 0.0 for step in WORDS}
    base = next((step for step in WORDS if held[step] >= NEARLY_ALL), None)
    chosen = [] if base is None else [base]
    for step in reversed([step for step in WORDS if base is None or step > base]):
        by_chance = float(np.minimum(2 * _slack(values, step, decimals) / step, 1).mean())
        by_chance = max([by_chance, *(held[finer] * finer / step for finer in chosen if _contains(finer, step))])
        named = any(_contains(step, coarser) and held[coarser] >= held[step] - DIFFERENT for coarser in _before(step))
        if held[step] >= max(WORTH, BEYOND_CHANCE * by_chance) and span / step >= FEWEST_POINTS and not named:
            chosen.append(step)
    chosen = _beside_each_other(sorted(chosen, reverse=True), held)
    if len(chosen) > MOST_TELLING:  # those that add the most values, and the base
        added = [held[one] - held.get(coarser, 0.0) for coarser, one in zip([0.0, *chosen], chosen, strict=False)]
        best = sorted(range(len(chosen)), key=lambda i: (chosen[i] == base, added[i]))[-MOST_TELLING:]
        chosen = [chosen[i] for i in sorted(best)]
    return base, tuple(chosen)


def _beside_each_other(chosen: list[float], held: Mapping[float, float]) -> list[float]:
    """Without those that hold more than chance only because a coarser one does; from coarse to fine."""
    for step in chosen[:-1]:
        coarser = next((one for one in reversed(chosen) if one > step and _contains(step, one)), None)
        finer = next((one for one in chosen if one < step and _contains(one, step)), None)
        if coarser is None or finer is None:
            continue
        density = (1 / step - 1 / coarser) / (1 / finer - 1 / coarser)
        if held[step] - held[coarser] < BEYOND_CHANCE * density * (held[finer] - held[coarser]):
            return _beside_each_other([one for one in chosen if one != step], held)
    return chosen


def _before(step: float) -> list[float]:
    return [coarser for coarser in WORDS if coarser > step]


def _contains(fine: float, coarse: float) -> bool:
    """Whether points of the coarse lattice lie on the fine one; of some as they are recorded, with two decimals."""
    ratio = coarse / fine
    return abs(ratio - round(ratio)) < 1e-6 or (coarse in ROUNDED and fine <= 0.01)
