"""A generator: training stays, resampled with replacement. It copies patients: a baseline for privacy metrics."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.generators.simple import SimpleGenerator, State
from timediff.settings.base import GeneratorSettings


@dataclass(frozen=True)
class BootstrapSettings(GeneratorSettings):
    stays: int | None = None  # that are kept; unset = all


class Bootstrap(SimpleGenerator):
    name: ClassVar[str] = "example-bootstrap"
    Settings = BootstrapSettings

    def train(self, cohort: Cohort, rng: np.random.Generator) -> State:
        kept = cohort.take(rng.permutation(len(cohort))[: self.settings.stays])
        return {feature.name: kept.values(feature.name) for feature in kept.schema.generated().features}

    def generate(self, n: int, schema: Schema, state: State, rng: np.random.Generator) -> Cohort:
        picked = rng.integers(len(next(iter(state.values()))), size=n)
        series = {feature.name: state[feature.name][picked] for feature in schema.temporal}
        static = {feature.name: state[feature.name][picked] for feature in schema.static}
        return Cohort(schema, np.arange(n), series, static)
