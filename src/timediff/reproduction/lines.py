"""From outcomes to lines: each number that the paper has, and ours, or why it is not there."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean

from timediff.data.describe import missing_rate
from timediff.evaluation.score import Score
from timediff.reproduction.budget import Scale
from timediff.reproduction.cells import Outcome
from timediff.reproduction.experiments.base import Experiment, Number
from timediff.reproduction.fits import Fit
from timediff.reproduction.methods import FULL_STEPS, REAL, full_updates
from timediff.reproduction.published import Printed, Published, printed
from timediff.reproduction.results import Drawn, Line
from timediff.reproduction.study import DataSet, Study, Wanted

NOT_THERE = "it was not reached"
STATISTICS = ("stays", "features", "steps", "missing", "label")


@dataclass(frozen=True)
class Told:
    """What is known when all is done."""

    study: Study
    scale: Scale
    failures: Mapping[str, str]  # by the name of a task, why it failed
    left_out: Mapping[str, str]  # by the name of what was wanted, why it was not begun

    def lines(self, experiment: Experiment) -> Iterator[Line]:
        if experiment.told == "statistics":
            for dataset in self.study.of(experiment):
                yield from self._statistics(experiment, dataset)
            return
        for one in self._wanted(experiment):
            yield from self._times(one) if experiment.told == "times" else self._scores(one)

    def figures(self, experiment: Experiment) -> Iterator[Drawn]:
        for one in self._wanted(experiment):
            outcome = self._outcome(one)
            for figure in outcome.answer.figures if outcome else ():
                yield Drawn(experiment.name, one.dataset.kind.title, one.method.title, figure)

    def _wanted(self, experiment: Experiment) -> list[Wanted]:
        """In the order of the tables, whatever the order in which they were done."""
        return [one for one in self.study.listed if one.experiment is experiment]

    def _outcome(self, one: Wanted) -> Outcome | None:
        cell = self.study.cell(one, self.scale)
        return None if cell is None or one.name in self.left_out else cell.outcome()

    def _scores(self, one: Wanted) -> Iterator[Line]:
        numbers = [number for number in one.experiment.numbers if number.measure == one.measure]
        outcome, line = self._outcome(one), self._line(one)
        if outcome is None:
            hole, failed = self._hole(one)
            if numbers:
                for number in numbers:
                    yield self._beside(replace(line, metric=number.title, hole=hole, failed=failed), number, one)
            else:
                yield replace(line, metric=one.measure, hole=hole, failed=failed)
            return
        line = replace(line, seconds=outcome.seconds)
        if not numbers:
            figures = len(outcome.answer.figures)
            yield replace(line, metric=one.measure, note=f"{figures} figure{'s' * (figures != 1)}")
        for number in numbers:
            for score in outcome.answer.scores:
                if score.what.startswith(number.what) and (score.classifier or "").startswith(number.classifier):
                    yield from self._scored(line, number, score, one)

    def _scored(self, line: Line, number: Number, score: Score, one: Wanted) -> Iterator[Line]:
        title = number.title if score.what == number.what else f"{number.title}, {score.what}"
        several = "" if number.classifier else score.classifier or ""
        found = replace(line, metric=title, classifier=several, n=score.n, note=score.note)
        if math.isnan(score.value):
            yield self._beside(replace(found, hole=score.note, note=""), number, one)
        else:
            yield self._beside(replace(found, value=score.value, std=score.std), number, one)
        if one.experiment.real == "floor" and one.method == one.arm.methods[0] and not math.isnan(score.floor):
            note = "real against real: training stays in place of synthetic ones"
            real = replace(
                found, method=REAL.title, value=score.floor, note=note, fit_seconds=math.nan, seconds=math.nan,
                seeds=(), updates=None, full_updates=None, hardware="",
            )  # fmt: skip
            yield _with(real, self._printed(one).of(number.metric, "real", one.dataset.kind.paper))

    def _times(self, one: Wanted) -> Iterator[Line]:
        line = self._line(one)
        found = self._printed(one).of("hours", one.method.name, one.dataset.kind.paper)
        line = _with(replace(line, metric="hours of training"), found)
        if math.isnan(line.fit_seconds):
            hole, failed = self._hole(one)
            yield replace(line, hole=hole, failed=failed)
        else:
            yield replace(line, value=line.fit_seconds / 3600)

    def _statistics(self, experiment: Experiment, dataset: DataSet) -> Iterator[Line]:
        kind, table = dataset.kind, printed(experiment.published)
        values = statistics(dataset) if dataset.readable else dict.fromkeys(STATISTICS, math.nan)
        for name, value in values.items():
            beside = table.of("statistics", name, kind.paper)
            hole = dataset.why if math.isnan(value) else ""
            yield Line(
                experiment.name, table.place, kind.title, _instead(dataset), "", name, published=beside.value,
                value=value, hole=hole or ("it has no label" if math.isnan(value) else ""), failed=bool(hole),
            )  # fmt: skip

    def _line(self, one: Wanted) -> Line:
        """What is the same in each of its lines."""
        kind = one.dataset.kind
        line = Line(
            one.experiment.name, one.experiment.place, kind.title, _instead(one.dataset), one.method.title, "",
            one.arm.label, repetitions=self.scale.repetitions if one.measure else None,
            training_stays=one.dataset.sizes.get(one.arm.part),
        )  # fmt: skip
        if one.method == REAL or one.dataset.parts is None:
            return line
        fits = self.study.fits(one, self.scale, 1)
        seeds, full = tuple(fit.seed for fit in fits), full_updates(one.method, kind)
        records = [fit.record for fit in fits]
        taken = [record.updates for record in records if record.updates is not None]
        if not all(record.fit_ended for record in records):
            return replace(line, seeds=seeds, full_updates=full)
        return replace(
            line, seeds=seeds, full_updates=full, updates=max(taken, default=None), hardware=records[0].hardware,
            fit_seconds=fmean(record.fit_seconds for record in records), note=_sampling(fits[0]),
        )  # fmt: skip

    def _beside(self, line: Line, number: Number, one: Wanted) -> Line:
        """The line with the paper's number."""
        row = number.classifier.partition(",")[0].lower() if "," in number.classifier else one.arm.row(one.method)
        return _with(line, self._printed(one).of(number.metric, row, one.dataset.kind.paper))

    def _printed(self, one: Wanted) -> Printed:
        return printed(one.experiment.published) if one.experiment.published else Printed("", (), {})

    def _hole(self, one: Wanted) -> tuple[str, bool]:
        """Why a number is not there, and whether that is a failure."""
        if one.dataset.why:
            return one.dataset.why, not one.dataset.readable
        if one.name in self.left_out:
            return self.left_out[one.name], False
        for fit in self.study.fits(one, self.scale, 1):
            if fit.name in self.failures:
                return f"its training failed: {self.failures[fit.name]}", True
        cell = self.study.cell(one, self.scale)
        if cell is not None and cell.name in self.failures:
            return self.failures[cell.name], True
        return NOT_THERE, True


def statistics(dataset: DataSet) -> dict[str, float]:
    """Counted as the paper does."""
    cohort, windows = dataset.cohort, dataset.kind.windows
    schema = cohort.schema.generated()
    temporal, label = len(schema.temporal), schema.label
    known = cohort.label if label is not None and label.kind == "binary" else None
    return {
        "stays": float(len(cohort)),
        "features": float(temporal if windows else 2 * temporal + (label is not None)),
        "steps": float(schema.steps),
        "missing": missing_rate(cohort),
        "label": math.nan if known is None else float(known.mean()),
    }


def _instead(dataset: DataSet) -> str:
    """The paper's data set that it stands in for."""
    names = {"mimic3": "MIMIC-III", "mimic4": "MIMIC-IV", "eicu": "eICU"}
    return names[dataset.kind.paper] if dataset.kind.stand_in else ""


def _sampling(fit: Fit) -> str:
    """Of a diffusion model that samples in fewer steps than it was trained with."""
    sampling = getattr(fit.row.settings, "sampling", None)
    steps, sampler = getattr(sampling, "steps", None), getattr(sampling, "sampler", "")
    full = getattr(getattr(fit.row.settings, "diffusion", None), "steps", FULL_STEPS)
    return f"sampled in {steps} of {full:,} steps" if sampler == "ancestral" and steps and full and steps < full else ""


def _with(line: Line, found: Published) -> Line:
    """The line with the paper's number."""
    return replace(line, published=found.value, published_std=found.std)
