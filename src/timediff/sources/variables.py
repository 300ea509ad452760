"""What a vital sign is, whatever the database: its feature, its limits, the schema of its cohort."""

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import ibis

from timediff.data.schema import Feature, Relation, Schema, Split

COMPARISONS = {"above": operator.gt, "at_least": operator.ge, "below": operator.lt, "at_most": operator.le}
NO_LIMITS = {"above": -inf, "at_least": -inf, "below": inf, "at_most": inf}


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The plausible range of a measurement: above < value < below, at_least ≤ value ≤ at_most."""

    above: float | None = None
    at_least: float | None = None
    below: float | None = None
    at_most: float | None = None

    def given(self) -> dict[str, float]:
        """The limits that are set, by name."""
        limits = {name: getattr(self, name) for name in COMPARISONS}
        return {name: limit for name, limit in limits.items() if limit is not None}

    def within(self, value: Any) -> Any:
        """An Ibis column's values, null where they are not plausible."""
        limits = self.given()
        return ibis.ifelse(plausible(value, limits), value, ibis.null()) if limits else value


def plausible(value: Any, limits: Mapping[str, Any]) -> Any:
    """Whether values lie within limits, which are numbers or columns by the names that `Limits` has."""
    return functools.reduce(operator.and_, (COMPARISONS[name](value, limit) for name, limit in limits.items()))


@dataclass(frozen=True, kw_only=True)
class ChartedLimits(Limits):
    """The same where values may be written in °F; the limits are in °F too."""

    fahrenheit: bool = False


@dataclass(frozen=True, kw_only=True)
class VitalSign:
    name: str
    unit: str | None = None
    bounds: tuple[float, float] | None = None
    resolution: float | None = None

    @property
    def feature(self) -> Feature:
        return Feature(self.name, "continuous", unit=self.unit, bounds=self.bounds, resolution=self.resolution)


def schema_of(
    variables: Sequence[VitalSign], steps: int, step: str, test: float, relations: tuple[Relation, ...] = ()
) -> Schema:
    """Variables over time, the patient, and death as the label."""
    static = (
        Feature("patient", "categorical", "static", role="patient"),
        Feature("died", "binary", "static", role="label"),
    )
    features = (*(v.feature for v in variables), *static)
    return Schema(features, steps, step, Split(test, "died", "patient"), relations)
