"""Generators that take no time, for comparisons: one that works, and some that fail in every way there is.

Another process finds them here; the registry knows them as soon as this module is imported.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.errors import TimeDiffError
from timediff.generators.registry import GENERATORS
from timediff.generators.simple import SimpleGenerator, State
from timediff.settings.base import GeneratorSettings


@dataclass(frozen=True)
class NoisySettings(GeneratorSettings):
    noise: float = 0.1  # in standard deviations


@GENERATORS.register("noisy")
class Noisy(SimpleGenerator):
    """Training stays with noise on what is continuous."""

    name = "noisy"
    Settings = NoisySettings

    def train(self, cohort: Cohort, rng: np.random.Generator) -> State:
        state = {}
        for feature in cohort.schema.generated().features:
            values = cohort.values(feature.name)
            noise = 0 if feature.discrete else self.settings.noise * np.nanstd(values)
            low, high = feature.bounds or (-np.inf, np.inf)
            state[feature.name] = np.clip(values + noise * rng.normal(size=values.shape), low, high)
        return state

    def generate(self, n: int, schema: Schema, state: State, rng: np.random.Generator) -> Cohort:
        picked = rng.integers(len(next(iter(state.values()))), size=n)
        series = {feature.name: state[feature.name][picked] for feature in schema.temporal}
        static = {feature.name: state[feature.name][picked] for feature in schema.static}
        return Cohort(schema, np.arange(n), series, static)


@GENERATORS.register("refusing")
class Refusing(Noisy):
    name = "refusing"

    def train(self, cohort: Cohort, rng: np.random.Generator) -> State:
        raise TimeDiffError("this cohort is not to its taste.")


@GENERATORS.register("raising")
class Raising(Noisy):
    name = "raising"

    def train(self, cohort: Cohort, rng: np.random.Generator) -> State:
        raise ValueError(f"a cell holds {cohort.series['heart_rate'][0, 0]!r}")


@GENERATORS.register("dying")
class Dying(Noisy):
    name = "dying"

    def train(self, cohort: Cohort, rng: np.random.Generator) -> State:
        print("out of luck", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        return {}


@GENERATORS.register("sleeping")
class Sleeping(Noisy):
    """Says which process it is, and then nothing for a long time."""

    name = "sleeping"

    def train(self, cohort: Cohort, rng: np.random.Generator) -> State:
        Path(os.environ["SLEEPING"]).write_text(str(os.getpid()))
        time.sleep(100)
        return {}
