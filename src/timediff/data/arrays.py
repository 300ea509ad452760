"""Names for the types of NumPy arrays."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Units = npt.NDArray[np.int64]  # the unit of each stay, (N,), numbered from 0: who is drawn together


def carried(values: Floats) -> Floats:
    """The last value carried forward, then the first one backward; (N, L), NaN = missing."""
    steps = np.arange(values.shape[1])
    last = np.maximum.accumulate(np.where(np.isnan(values), 0, steps), axis=1)
    forward = np.take_along_axis(values, last, axis=1)
    first = np.argmin(np.isnan(values), axis=1)
    start = np.take_along_axis(values, first[:, None], axis=1)
    return np.where(np.isnan(forward), start, forward)
