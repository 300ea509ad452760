"""A study: which cells each experiment has on each data set, with which trainings, and how long they may take."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from timediff.comparison.rows import Planned, Row, planned
from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import TimeDiffError
from timediff.reproduction.budget import SCALES, START, Choice, Job, Machine, Scale, choose
from timediff.reproduction.cells import ReproductionCell
from timediff.reproduction.datasets import Kind
from timediff.reproduction.experiments.base import Arm, Experiment
from timediff.reproduction.fits import FIRST_SEED, Fit
from timediff.reproduction.measures import MEASURES, seconds_of
from timediff.reproduction.methods import (
    ABLATION,
    CDE,
    FAST,
    FULL_STEPS,
    LAMBDAS,
    REAL,
    STATIC,
    TIMEDIFF,
    Method,
    row_of,
)
from timediff.reproduction.places import ReproductionFolder
from timediff.reproduction.preparation import SOME, Preparation, PreparedSplit, parts, split
from timediff.runtime.worker import sentence

LARGE = 10**8  # parameters of a network that is not built just to count them again
FIRST, SECOND = (TIMEDIFF, STATIC, REAL), (FAST, *ABLATION, *LAMBDAS, CDE)


@dataclass
class DataSet:
    """A data set that was extracted, or why it was not."""

    preparation: Preparation
    why: str = ""  # it cannot be read, or cannot be split
    readable: bool = True
    parts: PreparedSplit | None = None
    sizes: dict[str, int] = field(default_factory=dict)  # stays of each part
    digests: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> Kind:
        return self.preparation.kind

    @cached_property
    def cohort(self) -> Cohort:
        return read_cohort(self.preparation.cohort)

    def require_parts(self) -> None:
        """Says why nothing can be trained and measured on it, where it is too small."""
        try:
            split(self.cohort, self.kind)
        except TimeDiffError as error:
            self.why = sentence(error)

    def split_at(self, stays: int | None) -> None:
        """Writes training and test stays, at most so many together."""
        try:
            self.parts = parts(self.preparation, stays)
        except Exception as error:
            self.why = sentence(error)
            return
        for name in ("train", "test", "some"):
            part = read_cohort(getattr(self.parts, name))
            self.sizes[name], self.digests[name] = len(part), part.digest()


@dataclass(frozen=True)
class Wanted:
    """One measure (empty: only the training) of one method on one data set, for one experiment."""

    experiment: Experiment
    arm: Arm
    dataset: DataSet
    method: Method
    measure: str

    @property
    def name(self) -> str:
        """What is the same for other experiments has the same name."""
        return "/".join((self.dataset.kind.name, self.method.name, self.arm.part, self.measure))

    @property
    def training(self) -> str:
        return self.name.rpartition("/")[0]

    @property
    def rank(self) -> int:
        return 0 if self.method in FIRST else 1 if self.method in SECOND else 2


@dataclass(frozen=True)
class Study:
    experiments: Sequence[Experiment]
    datasets: Sequence[DataSet]
    places: ReproductionFolder
    dropped: frozenset[str] = frozenset()  # names of what the budget does not allow
    _rows: dict[tuple[str, str, Scale], Row] = field(default_factory=dict)
    _most: dict[Scale, dict[str, int]] = field(default_factory=dict)  # stays to sample, by the key of a training

    def of(self, experiment: Experiment) -> list[DataSet]:
        """The data sets that it runs on."""
        own = [one for one in self.datasets if experiment.name in one.kind.only]
        return own if experiment.own_data else [one for one in self.datasets if not one.kind.only]

    @cached_property
    def listed(self) -> list[Wanted]:
        """Everything, experiment by experiment, data set by data set."""
        return list(self._wanted())

    @cached_property
    def wanted(self) -> list[Wanted]:
        """Everything, what matters most first: the paper's method, then data set by data set."""
        order = {one.kind.name: number for number, one in enumerate(self.datasets)}
        return sorted(self.listed, key=lambda one: (one.rank, order[one.dataset.kind.name]))

    def _wanted(self) -> Iterator[Wanted]:
        for experiment in self.experiments:
            for arm in experiment.arms:
                for dataset in self.of(experiment):
                    if arm.records_only and dataset.kind.windows:
                        continue
                    methods = (*arm.methods, REAL) if experiment.real == "measured" else arm.methods
                    for method in methods:
                        for measure in arm.measures or ("",):
                            yield Wanted(experiment, arm, dataset, method, measure)

    def fits(self, one: Wanted, scale: Scale, at_once: int) -> tuple[Fit, ...]:
        """Its trainings, which sample as many stays as any experiment asks for."""
        if scale not in self._most:
            most: dict[str, int] = {}
            for other in self.listed:
                for fit in () if other.name in self.dropped else self._fits(other, scale, 1):
                    most[fit.key] = max(fit.stays, most.get(fit.key, 0))
            self._most[scale] = most
        found = self._fits(one, scale, at_once)
        return tuple(replace(fit, stays=self._most[scale].get(fit.key, fit.stays)) for fit in found)

    def _fits(self, one: Wanted, scale: Scale, at_once: int) -> tuple[Fit, ...]:
        """The same for itself alone."""
        dataset, kind, part = one.dataset, one.dataset.kind, one.arm.part
        if one.method == REAL or dataset.parts is None or dataset.why:
            return ()
        most = MEASURES[one.measure].synthetic if one.measure else 1
        which = kind.name, one.method.name, scale
        if which not in self._rows:
            self._rows[which] = row_of(one.method, kind, scale)
        row = self._rows[which]
        return tuple(
            Fit(
                kind.name, kind.title, one.method.title, row, FIRST_SEED + number, getattr(dataset.parts, part),
                dataset.digests[part], most * dataset.sizes[part], self.places, at_once,
            )
            for number in range(scale.seeds)
        )  # fmt: skip

    def cell(self, one: Wanted, scale: Scale, at_once: int = 1) -> ReproductionCell | None:
        """What is to be measured; None of a training that is only timed, and of a data set that cannot be had."""
        dataset, kind, part = one.dataset, one.dataset.kind, one.arm.part
        if not one.measure or dataset.parts is None or dataset.why:
            return None
        return ReproductionCell(
            one.measure, kind.name, kind.title, one.method.title, getattr(dataset.parts, part), dataset.parts.test,
            (dataset.digests[part], dataset.digests["test"]), dataset.sizes[part] * MEASURES[one.measure].synthetic,
            self.fits(one, scale, at_once), scale.repetitions, kind.mir_threshold, self.places,
        )  # fmt: skip

    def choice(self, seconds: float, machine: Machine, jobs: int) -> Choice:
        """What fits into so many seconds."""
        costs = Costs(machine, jobs)
        return choose({scale: [costs.job(one, scale) for one in self.wanted] for scale in SCALES}, seconds)


class Costs:
    """About how long things take, from the sizes of networks and data sets."""

    def __init__(self, machine: Machine, jobs: int) -> None:
        self.machine, self.jobs = machine, jobs
        self._planned: dict[tuple[str, str], Planned] = {}
        self._large: dict[str, Planned] = {}  # by preset

    def job(self, one: Wanted, scale: Scale) -> Job:
        if one.dataset.why:
            return Job(one.name, 0.0)
        stays = self._stays(one.dataset, scale)
        train = round(stays * (1 - one.dataset.kind.test))
        train = min(train, SOME) if one.arm.part == "some" else train
        steps = one.dataset.cohort.schema.steps
        own = seconds_of(one.measure, train, steps, scale.repetitions, self.machine.slower) if one.measure else 0.0
        own *= scale.seeds if one.measure and one.method != REAL else 1
        needs = () if one.method == REAL else ((one.training, scale.seeds * self._fit(one, scale, train) / self.jobs),)
        return Job(one.name, own / self.jobs, needs)

    def _stays(self, dataset: DataSet, scale: Scale) -> int:
        return min(len(dataset.cohort), scale.stays or len(dataset.cohort))

    def _fit(self, one: Wanted, scale: Scale, train: int) -> float:
        found = self._plan(one)
        settings: Any = row_of(one.method, one.dataset.kind, scale).settings
        if found.refused or "parameters" not in found.sizes:
            return START
        steps, parameters = one.dataset.cohort.schema.steps, int(found.sizes["parameters"])
        calls = 1
        if hasattr(settings.sampling, "steps"):
            calls = settings.sampling.steps or getattr(settings.diffusion, "steps", None) or FULL_STEPS
        stays = train * (MEASURES[one.measure].synthetic if one.measure else 1)
        an_update = int(found.sizes["stays an update"])
        training = self.machine.training(settings.training.steps, parameters, an_update, steps)
        return training + self.machine.sampling(calls, parameters, stays, steps)

    def _plan(self, one: Wanted) -> Planned:
        """What its network is like on that data set; the largest ones are built once."""
        key = one.dataset.kind.name, one.method.name
        if key not in self._planned:
            if one.method.preset in self._large:
                return self._large[one.method.preset]
            found = planned(
                row_of(one.method, one.dataset.kind, Scale()), split(one.dataset.cohort, one.dataset.kind)[0]
            )
            self._planned[key] = found
            if found.sizes.get("parameters", 0) > LARGE:
                self._large[one.method.preset] = found
        return self._planned[key]
