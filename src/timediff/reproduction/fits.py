"""Trainings: one generator on one data set with one seed, shared by all experiments that look at it."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from timediff.comparison.folder import Record, read_record
from timediff.comparison.rows import Row
from timediff.comparison.training import TrainingTask, carry_out
from timediff.data.cohort import Cohort, read_cohort
from timediff.reproduction.places import FitFolder, ReproductionFolder, key
from timediff.runtime.progress import Say, Watch

FIRST_SEED = 2023  # the paper's


@dataclass(frozen=True)
class Fit:
    """A training and its synthetic cohort, a task of a worker."""

    dataset: str
    title: str  # of the data set
    method: str  # in words
    row: Row
    seed: int
    train: Path
    digest: str  # of the training cohort
    stays: int  # to sample
    places: ReproductionFolder
    at_once: int = 1

    @property
    def name(self) -> str:
        return f"{self.title}, {self.method}, seed {self.seed}"

    @property
    def key(self) -> str:
        """Of the run: a hash of all that it follows from."""
        from timediff import __version__

        return key(__version__, self.digest, self.row.kind.name, self.row.settings.to_toml(), self.seed)

    @property
    def task(self) -> TrainingTask:
        folder = FitFolder(self.places.out, self.dataset, self.key, self.stays)
        return TrainingTask(self.row, self.seed, self.stays, folder, self.at_once)

    @property
    def done(self) -> bool:
        return self.task.done

    @property
    def record(self) -> Record:
        return read_record(self.task.record)

    def cohort(self, stays: int) -> Cohort:
        """The first of its synthetic stays."""
        import numpy as np

        whole = read_cohort(self.task.cohort)
        return whole if len(whole) <= stays else whole.take(np.arange(stays))

    @property
    def stage(self) -> str:
        return "training"

    @property
    def on_gpu(self) -> bool:
        return True

    def carry_out(self, watch: Watch, say: Say) -> None:
        carry_out(self.task, training_stays(self.train), lambda what: watch(f"{self.name}{_what(what)}"), say)


@lru_cache(maxsize=2)
def training_stays(path: Path) -> Cohort:
    """Kept by a worker for the next training on them."""
    return read_cohort(path)


def _what(what: str) -> str:
    """What is done, of a comparison's "NAME, seed 0, fitting"."""
    return f", {what.rsplit(', ', 1)[-1]}"
