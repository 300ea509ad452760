"""Cells: one measure of one method on one data set. What is finished is kept by a hash of all that it follows from."""

import json
import time
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from timediff.data.cohort import Cohort, read_cohort
from timediff.evaluation.figure_data import FigureData
from timediff.evaluation.results import read_score, write_score
from timediff.reproduction.fits import Fit
from timediff.reproduction.measures import MEASURES, Asked, MeasuredScores
from timediff.reproduction.places import ReproductionFolder, key
from timediff.runtime.files import write_atomically
from timediff.runtime.parsing import Unreadable, read_json
from timediff.runtime.progress import Say, Watch
from timediff.runtime.stored import restored

ON_CPU = ("tsne", "umap", "courses")  # measures that need no GPU


@dataclass(frozen=True)
class ReproductionCell:
    """A task of a worker. Without trainings the real training stays are measured in place of synthetic ones."""

    measure: str
    dataset: str
    title: str  # of the data set
    method: str  # in words
    train: Path
    test: Path
    digests: tuple[str, str]  # of both
    stays: int  # synthetic ones
    fits: tuple[Fit, ...]
    repetitions: int
    mir_threshold: float
    places: ReproductionFolder

    @property
    def name(self) -> str:
        return f"{self.title}, {self.method}, measuring: {self.measure}"

    @property
    def key(self) -> str:
        from timediff import __version__

        fits = [fit.key for fit in self.fits]
        how = [self.repetitions, self.mir_threshold, self.stays]
        return key(__version__, self.measure, self.digests, fits, how)

    @property
    def file(self) -> Path:
        return self.places.cells / f"{self.dataset}-{self.measure}-{self.key}.json"

    @property
    def done(self) -> bool:
        return self.outcome() is not None

    @property
    def stage(self) -> str:
        return "measuring"

    @property
    def on_gpu(self) -> bool:
        return self.measure not in ON_CPU

    def carry_out(self, watch: Watch, say: Say) -> None:
        if self.done:
            return
        train, test = _real(self.train), _real(self.test)
        cohorts = [fit.cohort(self.stays) for fit in self.fits] or [train]
        self.places.measured.mkdir(parents=True, exist_ok=True)
        begun = time.monotonic()
        progress = watch(self.name)
        asked = Asked(
            train, test, cohorts, self.repetitions, self.mir_threshold, self.places.measured, progress
        )  # fmt: skip
        answer = MEASURES[self.measure].function(asked)
        self.keep(answer, time.monotonic() - begun)

    def keep(self, answer: MeasuredScores, seconds: float) -> None:
        stored = {
            "seconds": round(seconds, 1),
            "scores": [write_score(score) for score in answer.scores],
            "figures": [figure.to_json() for figure in answer.figures],
        }
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.file, json.dumps(stored))

    def outcome(self) -> "Outcome | None":
        """What was measured; None where it is not there, or damaged."""
        return _outcome(self.file)


@dataclass(frozen=True)
class Outcome:
    answer: MeasuredScores
    seconds: float


@dataclass(frozen=True)
class StoredCell:
    """An outcome on disk."""

    seconds: float
    scores: list[dict[str, Any]] = field(default_factory=list)
    figures: list[dict[str, Any]] = field(default_factory=list)


def _outcome(file: Path) -> Outcome | None:
    if not file.is_file():
        return None
    try:
        stored = restored(StoredCell, read_json(file, finite=False), str(file))
        scores = [read_score(score, str(file)) for score in stored.scores]
        figures = [FigureData.from_json(figure, str(file)) for figure in stored.figures]
    except Unreadable:  # measured again
        return None
    return Outcome(MeasuredScores(scores, figures), stored.seconds)


@lru_cache(maxsize=4)
def _real(path: Path) -> Cohort:
    return read_cohort(path)
