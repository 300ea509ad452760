"""An attack of another package, as it would be registered: what counts for the privacy verdict beside copies."""

from collections.abc import Iterator
from contextlib import contextmanager

from timediff.evaluation.registry import METRICS, Meaning, metric
from timediff.evaluation.score import Score

NAME = "foreign"


@contextmanager
def installed() -> Iterator[None]:
    metric(NAME, "private", title="Foreign", numbers={"auc": Meaning("foreign attack", no_leak=0.5)})(lambda given: [])
    try:
        yield
    finally:
        METRICS._parts.pop(NAME)


def found(value: float = 0.5, half: float = 0.01, floor: float = 0.5) -> Score:
    """What it says."""
    return Score(NAME, "auc", value, n=500, low=value - half, high=value + half, floor=floor, floor_high=floor + half)
