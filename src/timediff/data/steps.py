"""One feature of many stays, (N, L), and its measured values one after the other; sums and means that skip gaps."""

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats

Mask = npt.NDArray[np.bool_]


class Steps:
    """Values with NaN = missing. `packed` has each stay's measured ones first, `when` the steps they were taken at."""

    def __init__(self, values: Array) -> None:
        self.values: Floats = np.asarray(values, np.float64)
        self.observed: Mask = ~np.isnan(self.values)
        self.count = self.observed.sum(axis=1)
        self.when = np.argsort(~self.observed, axis=1, kind="stable")
        self.packed = np.take_along_axis(self.values, self.when, axis=1)
        self.inside: Mask = np.arange(self.values.shape[1]) < self.count[:, None]

    @property
    def changes(self) -> tuple[Floats, Mask]:
        """Each measured value minus the one before it, (N, L − 1), and which of them there are."""
        return np.nan_to_num(np.diff(self.packed, axis=1)), self.inside[:, 1:]

    @property
    def gaps(self) -> tuple[Floats, Mask]:
        """Steps from each measurement to the next."""
        return np.diff(self.when, axis=1).astype(np.float64), self.inside[:, 1:]

    @property
    def ranked(self) -> Floats:
        """Each stay's measured values from the least to the greatest; NaN behind them."""
        return np.sort(self.values, axis=1)


def mean(values: Array, inside: Mask, least: int = 1) -> Floats:
    """Mean of each row over what is `inside`; NaN where that is fewer than `least` values."""
    count = inside.sum(axis=1)
    return divided(np.where(inside, values, 0.0).sum(axis=1), count, count >= least)


def deviation(values: Array, inside: Mask) -> Floats:
    """Standard deviation of each row over what is `inside`, two values at least."""
    middle = np.nan_to_num(mean(values, inside))[:, None]
    return np.sqrt(mean((np.where(inside, values, 0.0) - middle) ** 2, inside, least=2))


def divided(above: Array, below: Array, defined: Mask | None = None) -> Floats:
    """above / below; NaN where it is not defined."""
    defined = below != 0 if defined is None else defined & (below != 0)
    out = np.full(np.shape(above), np.nan)
    np.divide(above, below, out=out, where=defined)
    return out


def longest_run(marked: Mask) -> Floats:
    """The longest run of marked entries of each row."""
    longest, current = np.zeros(len(marked)), np.zeros(len(marked))
    for column in marked.T:
        current = np.where(column, current + 1, 0)
        longest = np.maximum(longest, current)
    return longest


def correlation(a: Floats, b: Floats, both: Mask, least: int = 4) -> Floats:
    """Pearson's correlation of two features within each stay, over the steps at which there are both."""
    means = (np.nan_to_num(mean(x, both))[:, None] for x in (a, b))
    x, y = (np.where(both, np.nan_to_num(v) - m, 0.0) for v, m in zip((a, b), means, strict=True))
    spread = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    return divided((x * y).sum(axis=1), spread, (both.sum(axis=1) >= least) & (spread > 1e-12))
