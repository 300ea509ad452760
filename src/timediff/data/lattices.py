"""Lattices: which multiples recorded values keep to, such as whole numbers, tenths or thirds."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats

THIRD = 1 / 3
# From coarse to fine. Thirds: a mean of three numbers.
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
    1 / 20: "twentieths",
    1 / 100: "hundredths",
}
SOME = 0.02  # fraction of values that makes a lattice worth a look
DIFFERENT = 0.005  # by which a finer lattice must hold more values than the one before
NEARLY_ALL = 0.995


def on_lattice(values: Array, step: float) -> npt.NDArray[np.bool_]:
    """Which values are multiples of `step`; of thirds, as they are recorded with two decimals. NaN is none."""
    slack = 0.0051 if step == THIRD else 1e-3 * step + 1e-7 * np.abs(values)  # also of what was once single precision
    there: npt.NDArray[np.bool_] = np.abs(values - np.rint(values / step) * step) <= slack
    return there


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
