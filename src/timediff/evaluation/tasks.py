"""Tasks of an evaluation: one metric of one cohort each, and where its numbers are kept once they are measured."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from timediff.data.cohort import Cohort
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.figure_data import FigureData
from timediff.evaluation.registry import METRICS, Metric
from timediff.evaluation.results import read_score, write_score
from timediff.evaluation.score import Score
from timediff.runtime.files import write_atomically
from timediff.runtime.parsing import Unreadable, read_json
from timediff.runtime.progress import Progress
from timediff.runtime.stored import restored

FLOOR = "real against real"


@dataclass(frozen=True)
class Task:
    """One metric of one cohort, or its floor."""

    metric: Metric
    given: Measurement
    number: int = 0  # which of that generator's cohorts; of a floor, how many stays stand in for synthetic ones
    key: str = ""  # a hash of all that its numbers follow from

    @property
    def cost(self) -> float:
        once, each = self.metric.cost
        return once + each * self.given.settings.repetitions

    @property
    def of(self) -> tuple[str, int]:
        return self.given.generator, self.number

    @property
    def file(self) -> str:
        """Where it is kept; no generator's name can lead elsewhere, and no other cohort or setting gives this one."""
        return f"{re.sub(r'[^a-z0-9]', '-', self.metric.name)}-{self.key[:32]}.json"

    def run(self, progress: Progress) -> "Measured":
        found = self.metric.measure(replace(self.given, progress=progress))
        scores = [one for one in found if isinstance(one, Score)]
        return Measured(scores, [one for one in found if isinstance(one, FigureData)])


@dataclass(frozen=True)
class Measured:
    """What metrics found of one cohort."""

    scores: list[Score] = field(default_factory=list)
    figures: list[FigureData] = field(default_factory=list)


@dataclass(frozen=True)
class StoredPart:
    """The same on disk, of one metric."""

    scores: list[dict[str, Any]]
    figures: list[dict[str, Any]]


def tasks(case: Case, cohorts: Mapping[str, Sequence[Cohort]]) -> Iterator[Task]:
    """Metric after metric; the floors of each before what they are the floors of.

    A metric that gets its floor here sees as many synthetic stays as training stays can stand in for.
    """
    train, keys = len(case.train), Keys(case)
    compared = {name: [case.some(cohort, train) for cohort in several] for name, several in cohorts.items()}
    sizes = sorted({len(cohort) for several in compared.values() for cohort in several})
    for metric in map(METRICS, case.settings.metrics):
        if metric.floored:
            for size in sizes:
                given = Measurement(case, case.stand_in(size), FLOOR, floor=True)
                yield Task(metric, given, size, keys.of(metric, FLOOR, str(size)))
        for name, several in (compared if metric.floored else cohorts).items():
            for number, cohort in enumerate(several):
                given = Measurement(case, cohort, name)
                yield Task(metric, given, number, keys.of(metric, name, keys.digest(cohort)))


class Keys:
    """Hashes of what a measurement follows from: real stays, settings, and the cohort that is measured."""

    def __init__(self, case: Case) -> None:
        from timediff import __version__

        settings = {name: value for name, value in asdict(case.settings).items() if name not in ("only", "skip")}
        self._case = [__version__, case.train.digest(), case.test.digest(), settings]
        self._digests: dict[int, tuple[Cohort, str]] = {}  # with the cohort, so that no other one gets its id

    def digest(self, cohort: Cohort) -> str:
        if id(cohort) not in self._digests:
            self._digests[id(cohort)] = cohort, cohort.digest()
        return self._digests[id(cohort)][1]

    def of(self, metric: Metric, generator: str, what: str) -> str:
        key = json.dumps([*self._case, metric.name, generator, what], sort_keys=True)
        return hashlib.sha256(key.encode()).hexdigest()


def kept(parts: Path | None, task: Task) -> Measured | None:
    file = None if parts is None else parts / task.file
    if file is None or not file.exists():
        return None
    try:
        stored = restored(StoredPart, read_json(file, finite=False), str(file))
        scores = [read_score(score, str(file)) for score in stored.scores]
        return Measured(scores, [FigureData.from_json(figure, str(file)) for figure in stored.figures])
    except Unreadable:  # damaged: measured again
        return None


def keep(parts: Path | None, task: Task, measured: Measured) -> None:
    if parts is not None:
        figures = [figure.to_json() for figure in measured.figures]
        table = {"scores": [write_score(score) for score in measured.scores], "figures": figures}
        write_atomically(parts / task.file, json.dumps(table))
