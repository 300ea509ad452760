"""One shadow model: fitted and sampled by the same functions as any other, in this process or in a worker."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from timediff.data.cohort import Cohort, read_cohort
from timediff.evaluation.attacks.case import Flags, Shadow
from timediff.generators.base import Generator
from timediff.generators.registry import load
from timediff.generators.run import Run
from timediff.generators.streaming import sample_to
from timediff.runtime.progress import Progress, Say, Watch, silent
from timediff.settings.base import GeneratorSettings


@dataclass(frozen=True, eq=False)
class ShadowTask:
    """What is trained on whom. A worker has the candidates, and is told by flags which of them these are."""

    number: int
    of: int
    kind: type[Generator]
    settings: GeneratorSettings
    trained: Flags  # (candidates,)
    seed: int
    size: int  # stays of the synthetic cohort; 0 = none is needed
    folder: Path | None = None  # where run and cohort are written; None = they stay in memory

    @property
    def name(self) -> str:
        return f"shadow model {self.number + 1} of {self.of}"

    @property
    def run(self) -> Path | None:
        return self.folder and self.folder / f"shadow-{self.number}"

    @property
    def cohort(self) -> Path | None:
        return self.folder and self.folder / f"shadow-{self.number}-cohort"

    @property
    def done(self) -> bool:
        sampled = not self.size or (self.cohort is not None and self.cohort.is_dir())
        return sampled and _finished(self.run)


def carry_out(task: ShadowTask, candidates: Cohort, watch: Watch, say: Say) -> None:
    """In a worker, whose shadow model others read from the folder."""
    made(task, candidates, watch(task.name))


def made(task: ShadowTask, candidates: Cohort, progress: Progress = silent) -> Shadow:
    """Fits and samples what is not there yet, from where it was stopped."""
    cohort, model = candidates.take(np.flatnonzero(task.trained)), task.kind(settings=task.settings)
    model = trained_or_kept(model, cohort, task.seed, task.run, progress)
    return Shadow(model, task.trained, _synthetic(task, model) if task.size else None)


def trained_or_kept(
    model: Generator, cohort: Cohort, seed: int, path: Path | None, progress: Progress = silent
) -> Generator:
    """Fitted, or the finished run that is there; training goes on where it was stopped."""
    if path is not None and _finished(path):
        return load(path)
    return model.fit(cohort, seed=seed, run=path, resume=path is not None, progress=progress)


def _synthetic(task: ShadowTask, model: Generator) -> Cohort:
    if task.cohort is None:
        return model.sample(task.size, seed=task.seed, progress=False)
    if not task.cohort.is_dir():
        sample_to(model, task.cohort, task.size, seed=task.seed, resume=True, progress=False)
    return read_cohort(task.cohort)


def _finished(run: Path | None) -> bool:
    return run is not None and run.exists() and Run.open(run).finished
