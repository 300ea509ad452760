"""A generator that leaks as much as it is told to: stays of its training data, with noise; and one that dies.

Another process finds them here; the registry knows them as soon as this module is imported.
"""

import os
import signal
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.generators.registry import GENERATORS
from timediff.generators.simple import SimpleGenerator, State
from timediff.runtime.progress import Progress, silent
from timediff.settings.base import GeneratorSettings


@dataclass(frozen=True)
class LeakySettings(GeneratorSettings):
    noise: float = 0.01  # of a synthetic value, in standard deviations
    loss_noise: float = 0.01  # of a stay's loss, in those of losses


@GENERATORS.register("leaky")
class Leaky(SimpleGenerator):
    name: ClassVar[str] = "leaky"
    Settings = LeakySettings
    settings: LeakySettings

    def train(self, cohort: Cohort, rng: np.random.Generator) -> State:
        return {feature.name: cohort.values(feature.name) for feature in cohort.schema.generated().features}

    def generate(self, n: int, schema: Schema, state: State, rng: np.random.Generator) -> Cohort:
        picked = rng.integers(len(next(iter(state.values()))), size=n)
        static = {feature.name: state[feature.name][picked] for feature in schema.static}
        series = {}
        for feature in schema.temporal:
            values = state[feature.name][picked]
            scale = 0.0 if feature.discrete else self.settings.noise * np.nanstd(state[feature.name])
            low, high = feature.bounds or (-np.inf, np.inf)
            series[feature.name] = np.clip(values + scale * rng.standard_normal(values.shape), low, high)
        return Cohort(schema, np.arange(n), series, static)

    def stay_losses(self, cohort: Cohort, *, seed: int = 0, progress: Progress = silent) -> dict[str, Floats]:
        """Near 1, and near 0 of a training stay; two levels, of which the second says nothing."""
        rng = np.random.default_rng([seed, int(self.identity[:8], 16)])  # each model rounds in its own way
        first = cohort.schema.temporal[0].name
        known = {row.tobytes() for row in np.nan_to_num(self._state()[1][first])}
        trained = np.array([row.tobytes() in known for row in np.nan_to_num(cohort.series[first])])
        losses = 1.0 - 0.5 * trained + self.settings.loss_noise * rng.standard_normal(len(cohort))
        return {"values": np.stack([np.abs(losses), np.abs(rng.standard_normal(len(cohort)))], axis=1)}


@dataclass(frozen=True)
class MortalSettings(LeakySettings):
    dies_from: int = 1000  # the first training seed with which its process dies


@GENERATORS.register("mortal")
class Mortal(Leaky):
    name = "mortal"
    Settings = MortalSettings
    settings: MortalSettings

    def fit(self, cohort: Cohort, *, seed: int | None = None, **options: Any) -> Self:
        if (seed or 0) >= self.settings.dies_from:
            print("out of luck", flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(cohort, seed=seed, **options)
