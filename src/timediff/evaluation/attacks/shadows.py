"""Shadow models: trained like the attacked one, each on a random half of all candidates."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.attacks.case import Flags, Shadow
from timediff.evaluation.statistics.bootstrap import Units
from timediff.generators.base import Generator
from timediff.generators.registry import load
from timediff.generators.run import WEIGHTS
from timediff.runtime.progress import Progress, Say, part, silent, unheard
from timediff.runtime.seeding import stream
from timediff.settings.resolve import resolve

FEWEST = 4  # models; of fewer hardly a stay has some that were trained on it and some that were not
SHADOW = 51  # a part of the evaluation stream


def halves(units: Units, models: int, seed: int) -> Flags:
    """Who each model is trained on, (models, candidates): each patient by half of the models, chosen at random."""
    rng, patients = stream("evaluation", seed, SHADOW), int(units.max(initial=-1)) + 1
    places = rng.random((models, patients)).argsort(axis=0).argsort(axis=0)
    return np.asarray((places < models // 2)[:, units])


@dataclass(frozen=True)
class ShadowPlan:
    """How shadow models are trained."""

    like: Generator  # of its kind, with its settings
    candidates: Cohort
    units: Units
    models: int
    seed: int
    size: int  # stays of their synthetic cohorts
    changes: Mapping[str, Any]  # settings that differ, such as a narrower network
    minutes: float | None = None  # no further model is begun that would not be done by then

    def generator(self) -> Generator:
        """One that is not trained yet."""
        settings = resolve(self.like.settings, assignments=self.changes)
        try:
            return type(self.like)(settings=settings)
        except TypeError as error:
            raise TimeDiffError(
                f"the generator {self.like.name} cannot be trained again by an audit: attack its synthetic cohort "
                "alone, with --attack distance or --attack domias."
            ) from error


def shadow_models(
    plan: ShadowPlan, folder: Path | None, progress: Progress = silent, say: Say = unheard
) -> list[Shadow]:
    """Trained, or found in `folder`, where each is a run folder; training goes on where it was stopped."""
    return list(_each(plan, folder, progress, say))


def _each(plan: ShadowPlan, folder: Path | None, progress: Progress, say: Say) -> Iterator[Shadow]:
    trained, started = halves(plan.units, plan.models, plan.seed), time.monotonic()
    longest = 0.0
    for number, on in enumerate(trained):
        begun = time.monotonic()
        if plan.minutes is not None and number >= FEWEST and begun - started + longest > 60 * plan.minutes:
            say(f"{number} of {plan.models} shadow models fit into {plan.minutes:g} minutes")
            return
        path = None if folder is None else folder / f"shadow-{number}"
        cohort, seed = plan.candidates.take(np.flatnonzero(on)), plan.seed + 1 + number
        model = trained_or_kept(plan.generator(), cohort, seed, path, part(progress, number, plan.models))
        synthetic = model.sample(plan.size, seed=seed)
        longest = max(longest, time.monotonic() - begun)
        say(f"shadow model {number + 1} of {plan.models}, {time.monotonic() - begun:.0f} s")
        yield Shadow(model, on, synthetic)


def trained_or_kept(
    model: Generator, cohort: Cohort, seed: int, path: Path | None, progress: Progress = silent
) -> Generator:
    """Fitted, or the finished run that is there; training goes on where it was stopped."""
    if path is not None and (path / WEIGHTS).exists():
        return load(path)
    return model.fit(cohort, seed=seed, run=path, resume=path is not None, progress=progress)
