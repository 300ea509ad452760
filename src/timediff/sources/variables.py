"""What a vital sign is, whatever the database: its feature, the limits of what counts, the cohort it is part of."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import ibis

from timediff.schema import Feature, Schema, Split


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What of a measurement counts: above < value < below, value ≤ at_most."""

    above: float | None = None
    below: float | None = None
    at_most: float | None = None

    @property
    def limits(self) -> tuple[float, float, float]:
        """above, below, at_most; without a limit it is infinite."""

        def given(limit: float | None, otherwise: float) -> float:
            return otherwise if limit is None else limit

        return given(self.above, -inf), given(self.below, inf), given(self.at_most, inf)

    def within(self, value: Any) -> Any:
        """An Ibis column's values, null where they do not count."""
        if self.limits == (-inf, inf, inf):
            return value
        above, below, at_most = self.limits
        return ibis.ifelse((value > above) & (value < below) & (value <= at_most), value, ibis.null())


@dataclass(frozen=True, kw_only=True)
class Charted(Limits):
    """The same where values may be written in °F; the limits are in °F too."""

    fahrenheit: bool = False


@dataclass(frozen=True, kw_only=True)
class Variable:
    name: str
    unit: str | None = None
    bounds: tuple[float, float] | None = None
    resolution: float | None = None

    @property
    def feature(self) -> Feature:
        return Feature(self.name, "continuous", unit=self.unit, bounds=self.bounds, resolution=self.resolution)


def schema_of(variables: Sequence[Variable], steps: int, step: str, test: float) -> Schema:
    """Variables over time, the patient, and death as the label."""
    static = (
        Feature("patient", "categorical", "static", role="patient"),
        Feature("died", "binary", "static", role="label"),
    )
    return Schema((*(v.feature for v in variables), *static), steps, step, Split(test, "died", "patient"))
