"""A comparison: every generator × training seed fitted and sampled, all of them evaluated, and one report of it.

The numbers follow from cohorts, settings and seeds alone: neither a stop, nor the order, nor what runs beside them
changes them. What takes time is kept as it is finished, and taken from there by whoever resumes.
"""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from timediff.comparison.folder import FORMAT, Folder, Request, StoredRow, read_record, seconds, write_record
from timediff.comparison.rows import Given, Planned, Row, planned, rows_of
from timediff.comparison.tables import tables
from timediff.comparison.training import TrainingTask, carry_out
from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import Stopped, TimeDiffError
from timediff.evaluation.evaluate import FEWEST, evaluate, require_real, require_synthetic
from timediff.evaluation.own_metrics import requested
from timediff.evaluation.results import Results
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.trainings import Training, runtimes
from timediff.runtime import devices
from timediff.runtime.files import explained, locked, write_atomically
from timediff.runtime.pool import can_be_sent, carry_out_all, carry_out_here
from timediff.runtime.progress import Say, Watch, unheard, unwatched
from timediff.runtime.seeding import MAX_SEED
from timediff.runtime.worker import Ended, sentence

MOST_SEEDS, MOST_JOBS = 1000, 1000
KEPT = "What is finished is kept, and --resume goes on from there"


def compare(
    train: Cohort,
    test: Cohort,
    out: str | Path,
    generators: Given,
    *,
    seeds: int = 3,
    stays: int | None = None,
    settings: EvaluationSettings | None = None,
    jobs: int = 1,
    resume: bool = False,
    watch: Watch = unwatched,
    say: Say = unheard,
    **changes: Any,
) -> Results:
    """Fits, samples and evaluates every generator with training seeds 0 … seeds − 1, and writes the folder `out`.

    `generators` are names of generators or presets, or a mapping from names of your own to such names or to generators
    that are not fitted. `stays` is the size of each synthetic cohort, as many as there are to train on if not given.
    `changes` are settings of the evaluation, such as protocol="paper", quick=True or metrics=[mine]. What failed is in
    `Results.trainings`.
    """
    asked = requested(settings, **changes)
    comparison = Comparison.of(
        train, test, Path(out), rows_of(generators), seeds=seeds, stays=stays, settings=asked, jobs=jobs, resume=resume
    )
    return comparison.run(watch, say)


@dataclass(frozen=True)
class Comparison:
    """What is to be done, checked before any of it is."""

    train: Cohort
    test: Cohort
    folder: Folder
    rows: tuple[Planned, ...]
    seeds: int
    stays: int
    settings: EvaluationSettings
    jobs: int
    resume: bool

    @staticmethod
    def of(
        train: Cohort, test: Cohort, out: Path, rows: Sequence[Row], *, seeds: int, stays: int | None,
        settings: EvaluationSettings, jobs: int, resume: bool,
    ) -> "Comparison":  # fmt: skip
        """Says what cannot be, and writes nothing."""
        settings.check()
        require_real(train, test, settings)
        stays = len(train) if stays is None else stays
        for name, value, least, most in (
            ("seeds", seeds, 1, MOST_SEEDS), ("jobs", jobs, 1, MOST_JOBS), ("stays", stays, FEWEST, MAX_SEED),
        ):  # fmt: skip
            if not least <= value <= most:
                raise TimeDiffError(f"{name} is {value:,}; expected a whole number from {least} to {most:,}.")
        if devices.processes() > 1:
            raise TimeDiffError("a comparison starts its own processes: run it by itself, with --jobs N for several.")
        comparison = Comparison(
            train, test, Folder(out), tuple(planned(row, train) for row in rows), seeds, stays, settings, jobs, resume
        )
        comparison.folder.require(comparison.request, comparison.rows, resume)
        return comparison

    @property
    def request(self) -> Request:
        from timediff import __version__

        stored = [StoredRow(one.row.name, one.row.kind.name, one.settings.to_toml()) for one in self.rows]
        return Request(FORMAT, __version__, self.train.digest(), self.test.digest(), self.stays, stored)

    def tasks(self, one: Planned) -> list[TrainingTask]:
        return [TrainingTask(one.row, seed, self.stays, self.folder) for seed in range(self.seeds)]

    def to_do(self, one: Planned) -> str:
        """What of a row is not there yet, in words."""
        todo = [task for task in self.tasks(one) if not task.done]
        if not todo:
            return "done"
        if one.refused:
            return f"fails: {one.refused}"
        fitted = sum(map(_is_fitted, todo))
        fit = f"fit {len(todo) - fitted}, " if fitted < len(todo) else ""
        return f"{fit}sample {len(todo)} of {self.seeds}"

    def run(self, watch: Watch = unwatched, say: Say = unheard) -> Results:
        """All that is not done yet; results without generators where every training failed."""
        folder, path = self.folder, self.folder.path
        with explained(path, kept=KEPT):
            if not path.exists():
                folder.create(self.request)
            with locked(path, path):
                folder.begin(self.request)
                failures = self._train(watch, say)
                try:
                    results = self._evaluated(failures, watch, say)
                except KeyboardInterrupt as stop:
                    raise Stopped(f"stopped. {KEPT}") from stop
                for name, text in tables(results).items():
                    write_atomically(path / name, text)
                return results

    def _train(self, watch: Watch, say: Say) -> dict[tuple[str, int], str]:
        """Fits and samples; returns why, of what could not be."""
        failures: dict[tuple[str, int], str] = {}
        todo = []
        for one in self.rows:
            tasks = [task for task in self.tasks(one) if not task.done]
            for task in self.tasks(one):
                if task.done:
                    task.tidy()
            if one.refused:
                failures |= {(one.row.name, task.seed): one.refused for task in tasks}
                say(f"{one.row.name}: failed: {one.refused}") if tasks else None
            else:
                todo += tasks

        def ended(task: TrainingTask, end: Ended) -> None:
            if end.failure:
                end = end._replace(failure=_without_place(end.failure, task))
                failures[task.row.name, task.seed] = end.failure
                _note_failure(task, end)
            else:
                _details(task).unlink(missing_ok=True)
            say(f"{task.name}: {_told(task, end)}")

        sent = [task for task in todo if can_be_sent(task)]
        at_once = min(self.jobs, len(sent))
        try:
            carry_out_here(carry_out, [task for task in todo if task not in sent], self.train, watch, say, ended)
            sent = [replace(task, at_once=at_once) for task in sent]
            carry_out_all(carry_out, sent, self.train, self.jobs, watch, say, ended)
        except (Stopped, KeyboardInterrupt) as stop:
            raise Stopped(f"stopped. {KEPT}") from stop
        return failures

    def _evaluated(self, failures: dict[tuple[str, int], str], watch: Watch, say: Say) -> Results:
        """The results of all that was sampled; those of before, where nothing has come since."""
        cohorts: dict[str, list[Cohort]] = {}
        for one in self.rows:
            for task in self.tasks(one):
                if (one.row.name, task.seed) in failures:
                    continue
                try:
                    cohort = read_cohort(task.cohort)
                    require_synthetic(self.test, one.row.name, cohort, self.settings)
                    cohorts.setdefault(one.row.name, []).append(cohort)
                except TimeDiffError as error:
                    why = failures[one.row.name, task.seed] = _without_place(sentence(error), task)
                    say(f"{task.name}: failed: {why}")
        trainings = [self._training(task, failures) for one in self.rows for task in self.tasks(one)]
        if not cohorts:
            return Results((), {}, asdict(self.settings), {}, trainings=trainings)
        key = self._key(cohorts, trainings)
        results = self.folder.results_of(key)
        if results is None:
            self.folder.measured.mkdir(exist_ok=True)
            results = evaluate(
                self.train, self.test, cohorts, settings=self.settings, parts=self.folder.measured,
                progress=watch("evaluating"), say=say,
            )  # fmt: skip
            facts = {"training seeds": ", ".join(map(str, range(self.seeds)))}
            failed = [f"{one.generator} failed, {why}" for one in runtimes(trainings) for why in one.failures]
            results = replace(
                results, facts={**results.facts, **facts}, warnings=[*failed, *results.warnings], trainings=trainings
            )
            self.folder.replace_results(results, key)
        return results

    def _training(self, task: TrainingTask, failures: dict[tuple[str, int], str]) -> Training:
        record, failure = read_record(task.record), failures.get((task.row.name, task.seed), "")
        spent = seconds(record.sample_seconds, record.sample_ended)
        return Training(
            task.row.name,
            task.seed,
            round(seconds(record.fit_seconds, record.fit_ended), 3),
            record.updates,
            round(task.stays / spent if spent > 0 else math.nan, 1),
            record.hardware,
            record.at_once,
            max(record.fit_tries, record.sample_tries) > 1,
            failure,
        )

    def _key(self, cohorts: dict[str, list[Cohort]], trainings: Sequence[Training]) -> str:
        """A hash of all that the results say."""
        from timediff import __version__

        digests = {name: [cohort.digest() for cohort in several] for name, several in cohorts.items()}
        real = [self.train.digest(), self.test.digest()]
        told = [__version__, real, digests, asdict(self.settings), [asdict(one) for one in trainings]]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def _is_fitted(task: TrainingTask) -> bool:
    """Also of a run that cannot be read, which is said when it is its turn."""
    try:
        return task.fitted
    except TimeDiffError:
        return False


def _without_place(why: str, task: TrainingTask) -> str:
    """The sentence as results may hold it, which say of no folder where it lies."""
    return why.replace(f"{task.folder.path.resolve()}/", "").replace(f"{task.folder.path}/", "")


def _told(task: TrainingTask, end: Ended) -> str:
    if end.failure:
        return f"failed: {end.failure}" + (f" All of it is in {_details(task)}." if end.details else "")
    record = read_record(task.record)
    fitted = f"fitted in {record.fit_seconds:,.1f} s" if record.fit_tries else "was fitted already"
    return f"{fitted}, {task.stays:,} stays sampled in {record.sample_seconds:,.1f} s"


def _note_failure(task: TrainingTask, end: Ended) -> None:
    write_record(task.record, replace(read_record(task.record), failure=end.failure))
    if end.details:
        write_atomically(_details(task), end.details)


def _details(task: TrainingTask) -> Path:
    return task.record.with_suffix(".txt")
