"""The paper, table by table, in one folder that grows: data, trainings, what was measured, and one report.

The numbers follow from data, settings, seeds and the plan alone, which is written down before anything is trained:
neither a stop nor what runs beside them changes them. What fails leaves a hole, and the rest goes on.
"""

import json
import shutil
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from timediff.errors import Stopped, TimeDiffError
from timediff.reproduction.budget import GRACE, SIMULATED, Scale, probe
from timediff.reproduction.cells import ReproductionCell
from timediff.reproduction.datasets import Found, find, folder_of
from timediff.reproduction.experiments.base import Experiment
from timediff.reproduction.experiments.registry import chosen
from timediff.reproduction.fits import Fit
from timediff.reproduction.lines import Told
from timediff.reproduction.places import FORMAT, ReproductionFolder
from timediff.reproduction.preparation import Preparation
from timediff.reproduction.results import Described, Reproduction, UsedDataSet
from timediff.reproduction.study import DataSet, Study, Wanted
from timediff.reproduction.tasks import GPU_LOST, StudyTask, carry_out, carry_out_in_process, device
from timediff.runtime.files import explained, locked, require_new, write_atomically
from timediff.runtime.parsing import Unreadable, read_json
from timediff.runtime.pool import carry_out_all, carry_out_here
from timediff.runtime.progress import Say, Watch, silent, unheard, unwatched
from timediff.runtime.stored import restored
from timediff.runtime.worker import Ended, sentence

KEPT = "What is finished is kept, and --resume goes on from there"
OUT_OF_BUDGET = "left out: the budget is too small for it"
OUT_OF_TIME = "left out: the time was up; --resume goes on with it"
JOBS_ON_GPU = 8
LONGEST = 10**7  # minutes


@dataclass(frozen=True)
class Plan:
    """What was decided before the first training, so that whoever resumes does the same."""

    format: int
    version: str
    experiments: list[str]
    budget: float | None
    data: dict[str, str]  # where each data set's cohort is
    scale: Scale = field(default_factory=Scale)
    dropped: list[str] = field(default_factory=list)

    def same_request(self, other: "Plan") -> bool:
        asked = [(one.format, one.version, one.experiments, one.budget, one.data) for one in (self, other)]
        return asked[0] == asked[1]


def reproduce(
    out: str | Path,
    data: str | Path | None = None,
    *,
    only: Sequence[str] = (),
    budget: float | None = None,
    jobs: int | None = None,
    resume: bool = False,
    watch: Watch = unwatched,
    say: Say = unheard,
) -> Reproduction:
    """Runs the paper's experiments on the data sets under the folder `data`, and writes the folder `out`.

    `only` names experiments; `budget` is in minutes. `jobs` trainings and measurements are done at once, each in a
    process of its own; 0 does all in this process.
    """
    experiments = chosen(list(only))
    if budget is not None and not 0 < budget <= LONGEST:
        raise TimeDiffError(f"budget is {budget:g}; expected minutes, more than 0 and at most {LONGEST:,}.")
    if jobs is not None and not 0 <= jobs <= 1000:
        raise TimeDiffError(f"jobs is {jobs}; expected a whole number from 0 to 1,000.")
    places, found = ReproductionFolder(Path(out)), find(folder_of(data))
    if places.out.exists() or places.out.is_symlink():
        _require_resumable(places, resume)
    else:
        require_new(places.out)
    with explained(places.out, kept=KEPT), locked(places.out, places.out):
        work = _Work(places, experiments, found, budget, jobs, watch, say)
        try:
            return work.all()
        except (Stopped, KeyboardInterrupt) as stop:
            raise Stopped(f"stopped. {KEPT}") from stop


def _require_resumable(places: ReproductionFolder, resume: bool) -> None:
    if not places.plan.is_file():
        begun = places.out.is_dir() and {path.name for path in places.out.iterdir()} <= {"data"}
        if begun and resume:
            return
        if not begun:
            raise TimeDiffError(f"{places.out} exists and is no reproduction: choose another name, or remove it.")
    if not resume:
        raise TimeDiffError(f"{places.out} was begun: add --resume to go on, or choose another name.")


class _Work:
    """One call, from data to report."""

    def __init__(
        self, places: ReproductionFolder, experiments: Sequence[Experiment], found: Sequence[Found],
        budget: float | None, jobs: int | None, watch: Watch, say: Say,
    ) -> None:  # fmt: skip
        self.places, self.experiments, self.budget, self.watch, self.say = places, experiments, budget, watch, say
        self.begun = time.monotonic()
        self.device = device()
        self.jobs = (JOBS_ON_GPU if self.device == "cuda" else 1) if jobs is None else jobs
        self.failures: dict[str, str] = {}
        names = {experiment.name for experiment in experiments}
        others = any(not experiment.own_data for experiment in experiments)
        self.found = [one for one in found if (set(one.kind.only) & names if one.kind.only else others)]

    def all(self) -> Reproduction:
        datasets = self._extracted()
        used = [one for one in datasets if not one.why] if any(one.arms for one in self.experiments) else []
        for dataset in used:
            dataset.require_parts()
            self.say(f"{dataset.kind.title}: {dataset.why}") if dataset.why else None
        study = Study(self.experiments, datasets, self.places)
        plan = self._plan(study)
        study = replace(study, dropped=frozenset(plan.dropped))
        write_atomically(self.places.plan, json.dumps(asdict(plan), indent=1))
        for dataset in used:
            if not dataset.why:
                dataset.split_at(plan.scale.stays)
        left_out = dict.fromkeys(plan.dropped, OUT_OF_BUDGET)
        left_out |= self._carried_out(study, plan, left_out)
        told = Told(study, plan.scale, self.failures, left_out)
        results = self._results(study, plan, told)
        self._write(results)
        return results

    def _extracted(self) -> list[DataSet]:
        """The data sets as cohorts; one that cannot be read says why."""
        simulated = SIMULATED[0] if self.budget is not None and self.budget < 60 else SIMULATED[1]
        tasks = [Preparation(one, self.places, simulated) for one in self.found]
        if not tasks:
            raise TimeDiffError(
                "none of the data sets that were found is for these experiments: static needs the tables of MIMIC-IV."
            )
        self._run([task for task in tasks if not task.done])
        return [self._dataset(task) for task in tasks]

    def _dataset(self, task: Preparation) -> DataSet:
        found = DataSet(task)
        try:
            if task.done:
                len(found.cohort)
                return found
            found.why = self.failures.get(task.name, OUT_OF_TIME)
        except TimeDiffError as error:  # it was damaged since
            found.why = self._without_place(sentence(error))
        found.readable = False
        return found

    def _plan(self, study: Study) -> Plan:
        from timediff import __version__

        data = {one.kind.name: one.preparation.folder.name for one in study.datasets if one.readable}
        names = [one.name for one in self.experiments]
        asked = Plan(FORMAT, __version__, names, self.budget, data)
        if self.places.plan.is_file():
            with suppress(Unreadable):  # damaged: decided again
                before = restored(Plan, read_json(self.places.plan), str(self.places.plan))
                if before.same_request(asked):
                    return before
        if self.budget is None or not study.wanted:
            return asked
        self.say("planning: how much of it the budget allows")
        left = 60 * self.budget - (time.monotonic() - self.begun)
        choice = study.choice(max(left, 1.0), probe(), max(self.jobs, 1))
        return replace(asked, scale=choice.scale, dropped=[str(name) for name in dict.fromkeys(choice.dropped)])

    def _carried_out(self, study: Study, plan: Plan, left_out: dict[str, str]) -> dict[str, str]:
        """Trains and measures; returns what was not begun when the time was up."""
        wanted = [one for one in study.wanted if one.name not in left_out and not one.dataset.why]
        for rank in sorted({one.rank for one in wanted}):
            now = [one for one in wanted if one.rank == rank]
            fits = _unlike(fit for one in now for fit in study.fits(one, plan.scale, max(self.jobs, 1)))
            self._run([fit for fit in fits if not fit.done])
            cells = _unlike(cell for one in now if (cell := study.cell(one, plan.scale)))
            self._run([cell for cell in cells if all(fit.done for fit in cell.fits) and not cell.done])
        return {one.name: OUT_OF_TIME for one in wanted if self._late and not self._is_done(study, plan, one)}

    def _is_done(self, study: Study, plan: Plan, one: Wanted) -> bool:
        """Also of what failed, which has its own reason."""
        cell, fits = study.cell(one, plan.scale), study.fits(one, plan.scale, 1)
        tasks: list[StudyTask] = [*fits, *([cell] if cell else [])]
        return any(task.name in self.failures for task in tasks) or all(task.done for task in tasks)

    @property
    def _late(self) -> bool:
        return self.budget is not None and time.monotonic() - self.begun > 60 * self.budget * GRACE

    def _run(self, tasks: Sequence[StudyTask]) -> None:
        """So many at once, until the time is up; each that fails says why."""
        done, bar = 0, self.watch(f"{tasks[0].stage}, {len(tasks)} in all") if tasks else silent

        def ended(task: StudyTask, end: Ended) -> None:
            nonlocal done
            done += 1
            bar(done, len(tasks))
            if end.failure:
                lost = GPU_LOST in end.details or GPU_LOST in end.failure
                self.failures[task.name] = why = GPU_LOST if lost else self._without_place(end.failure)
                self.say(f"{task.name}: failed: {why}")
            else:
                self.say(f"{task.name}: done in {end.seconds:,.1f} s")

        def may_begin(busy: int) -> bool:
            return not self._late

        if self.jobs == 0:
            carry_out_here(carry_out_in_process, tasks, self.device, self.watch, self.say, ended, may_begin)
        else:
            carry_out_all(carry_out, tasks, self.device, self.jobs, self.watch, self.say, ended, may_begin)

    def _without_place(self, why: str) -> str:
        """The sentence as a report may hold it, which says of no folder where it lies."""
        for path in (self.places.out, *(one.path for one in self.found if one.path)):
            for text in (f"{path.resolve()}", f"{path}"):
                why = why.replace(f"{text}/", "").replace(text, path.name)
        return why

    def _results(self, study: Study, plan: Plan, told: Told) -> Reproduction:
        from timediff import __version__

        facts = {
            "version": f"timediff {__version__}",
            "budget": "none" if self.budget is None else f"{self.budget:g} minutes",
            "device": self.device,
            "at once": f"{max(self.jobs, 1)}",
            "date": time.strftime("%Y-%m-%d"),
        }
        cuts = plan.scale.cuts()
        if plan.dropped:
            cuts.append(f"{len(plan.dropped)} of {len({one.name for one in study.wanted})} cells, shown as left out")
        if late := sum(why == OUT_OF_TIME for why in told.left_out.values()):
            cuts.append(f"{late} cells that were not begun when the time was up; --resume goes on with them")
        return Reproduction(
            [Described(one.name, one.title, one.place, one.differs) for one in self.experiments],
            [_source(one) for one in study.datasets],
            [line for one in self.experiments for line in told.lines(one)],
            [figure for one in self.experiments for figure in told.figures(one)],
            cuts,
            facts,
            time.monotonic() - self.begun,
        )

    def _write(self, results: Reproduction) -> None:
        from timediff.report.reproduction_page import write_reproduction

        write_atomically(self.places.out / "results.json", results.to_json())
        write_atomically(self.places.out / "rows.csv", results.to_csv())
        folder = self.places.out / "figures"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for number, drawn in enumerate(results.figures):
            about = {"experiment": drawn.experiment, "dataset": drawn.dataset, "method": drawn.method}
            write_atomically(folder / f"{number:04}.json", json.dumps(about | {"figure": drawn.figure.to_json()}))
        write_reproduction(self.places.out / "report.html", results)


def _unlike(tasks: Iterable[Any]) -> list[Any]:
    """Each training and measurement once, whoever asks for it."""
    found: dict[object, Fit | ReproductionCell] = {}
    for task in tasks:
        found.setdefault(task.file if isinstance(task, ReproductionCell) else task.task.cohort, task)
    return list(found.values())


def _source(one: DataSet) -> UsedDataSet:
    kind = one.kind
    stays = len(one.cohort) if one.readable else None
    return UsedDataSet(kind.name, kind.title, kind.paper, kind.stand_in, stays, one.why)
