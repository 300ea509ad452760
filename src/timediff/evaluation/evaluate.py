"""Evaluation: every metric on every synthetic cohort, each with its real-against-real floor.

Fidelity and usefulness are scored against held-out stays; only privacy scores compare with training stays. (In the
paper's protocol the discriminative classifier sees training stays, as TimeGAN's does.) A floor is the same number with
real stays in place of the synthetic ones: training stays where held-out ones are what is compared with.
"""

import hashlib
import json
import os
import platform
import re
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from timediff.data.cohort import Cohort
from timediff.data.overlap import how_split
from timediff.errors import TimeDiffError
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.figure_data import FigureData, cohort_figures
from timediff.evaluation.leaks import leaks, refuse_leaks
from timediff.evaluation.metrics.marginals import require_same_features
from timediff.evaluation.registry import METRICS, Metric
from timediff.evaluation.results import Results, read_score, scores_csv, write_score
from timediff.evaluation.score import Score, combined, with_floors
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.single_stays import why_withheld
from timediff.runtime.files import explained, locked, refuse_existing, write_atomically
from timediff.runtime.parsing import Unreadable, read_json, read_text
from timediff.runtime.progress import Progress, Say, silent, unheard
from timediff.runtime.stored import restored

FEWEST = 50  # stays in each cohort; below that no classifier can be trained
FLOOR = "real against real"
RESERVED = (FLOOR, "training data", "held-out data")  # in the report these are something else
LONGEST_NAME = 100  # characters of a synthetic cohort's


@dataclass(frozen=True)
class Task:
    """One metric of one cohort, or its floor."""

    metric: Metric
    given: Measurement
    number: int = 0  # which of that generator's cohorts; of a floor, how many stays stand in for synthetic ones

    @property
    def cost(self) -> float:
        once, each = self.metric.cost
        return once + each * self.given.settings.repetitions

    @property
    def of(self) -> tuple[str, int]:
        return self.given.generator, self.number

    @property
    def file(self) -> str:
        """Where it is kept; no generator's name can lead elsewhere."""
        key = f"{self.metric.name} {self.given.generator} {self.number}"
        return f"{re.sub(r'[^a-z0-9]', '-', self.metric.name)}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.json"

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


def evaluate(
    train: Cohort,
    test: Cohort,
    synthetic: Cohort | Mapping[str, Cohort | Sequence[Cohort]],
    *,
    settings: EvaluationSettings | None = None,
    parts: Path | None = None,
    progress: Progress = silent,
    say: Say = unheard,
    **changes: Any,
) -> Results:
    """Every metric; `synthetic` is one cohort, or one or several by name: those of one name differ by seed alone.

    `changes` are single settings, such as protocol="paper" or only=["nnaa"]. In the folder `parts` each finished metric
    is kept, and taken from there when the same evaluation is called again; scores.csv there has the scores so far.
    """
    settings = replace(settings or EvaluationSettings(), **{k: _tuple(v) for k, v in changes.items()})
    cohorts = _named(synthetic)
    _check(train, test, cohorts, settings)
    started = time.monotonic()
    case = Case(train, test, settings)
    tasks = list(_tasks(case, cohorts))
    found = {(name, number): Measured() for name, several in cohorts.items() for number in range(len(several))}
    total, done = max(sum(task.cost for task in tasks), 1e-9), 0.0

    def floored(name: str, number: int, cohort: Cohort) -> list[Score]:
        floor = found.get((FLOOR, min(len(cohort), len(train))), Measured())
        return with_floors(found[name, number].scores, floor.scores)

    def scores_so_far() -> dict[str, list[Score]]:
        each = {
            name: [floored(name, i, cohort) for i, cohort in enumerate(several)] for name, several in cohorts.items()
        }
        return {name: combined(several, worst=_worst_counts) for name, several in each.items()}

    for task in tasks:
        measured = _kept(parts, task)
        if measured is None:
            begun = time.monotonic()
            measured = task.run(_within(progress, done, task.cost, total))
            _keep(parts, task, measured)
            say(f"{task.given.generator}: {task.metric.title}, {time.monotonic() - begun:.0f} s")
        whole = found.setdefault(task.of, Measured())
        whole.scores.extend(measured.scores)
        whole.figures.extend(measured.figures)
        done += task.cost
        progress(int(1000 * done / total), 1000)
        if parts is not None:
            write_atomically(parts / "scores.csv", scores_csv(scores_so_far()))

    scores_of = scores_so_far()
    return Results(
        generators=tuple(cohorts),
        scores=scores_of,
        settings=asdict(settings) | {"tsrtr_valid": len(train) <= settings.tsrtr_real},
        facts=_facts(case, cohorts, time.monotonic() - started),
        warnings=_warnings(case, cohorts, scores_of),
        figures=[
            *(
                figure
                for name, several in cohorts.items()
                for figure in cohort_figures(test, several[0], name, single=not why_withheld(scores_of[name]))
            ),
            *(
                figure
                for name in cohorts
                for figure in found[name, 0].figures
                if not (figure.single and why_withheld(scores_of[name]))
            ),
        ],
    )


def evaluate_to(
    path: str | Path,
    train: Cohort,
    test: Cohort,
    synthetic: Cohort | Mapping[str, Cohort | Sequence[Cohort]],
    *,
    settings: EvaluationSettings | None = None,
    resume: bool = False,
    progress: Progress = silent,
    say: Say = unheard,
) -> Results:
    """Evaluates and writes the folder `path`; what is finished waits in a hidden folder until all is there."""
    path, settings = Path(path), settings or EvaluationSettings()
    refuse_existing(path)
    _check(train, test, _named(synthetic), settings)  # a mistake is named before anything is written
    place = path.resolve()
    parts = place.parent / f".{place.name}.parts"
    digests = {name: [cohort.digest() for cohort in several] for name, several in _named(synthetic).items()}
    cohorts = {"train": train.digest(), "test": test.digest(), "synthetic": digests}
    request = json.dumps(asdict(settings) | {"cohorts": cohorts}, sort_keys=True)
    kept = "The metrics measured so far are kept, and --resume goes on from there"
    with explained(path, kept=kept), locked(parts, path):
        refuse_existing(path)  # another process may have written it meanwhile
        _begin(parts, request, resume, path)
        results = evaluate(train, test, synthetic, settings=settings, parts=parts, progress=progress, say=say)
        results.write(path)
        shutil.rmtree(parts)
    return results


def _begin(parts: Path, request: str, resume: bool, path: Path) -> None:
    """Notes what is asked for, or makes sure that what is there was asked for."""
    previous = parts / "request.json"
    if not previous.exists():
        write_atomically(previous, request)
        return
    if not resume:
        raise TimeDiffError(
            f"the evaluation for {path} was stopped before it was done: add --resume to go on, or remove {parts}."
        )
    if read_text(previous) != request:
        raise TimeDiffError(
            f"{parts} belongs to another evaluation (a cohort or a setting differs): repeat the first command with "
            "--resume, or remove that folder to start again."
        )


def _tasks(case: Case, cohorts: Mapping[str, Sequence[Cohort]]) -> Iterator[Task]:
    """Metric after metric; the floors of each before what they are the floors of.

    A metric that gets its floor here sees as many synthetic stays as training stays can stand in for.
    """
    train = len(case.train)
    compared = {name: [case.some(cohort, train) for cohort in several] for name, several in cohorts.items()}
    sizes = sorted({len(cohort) for several in compared.values() for cohort in several})
    for metric in map(METRICS, case.settings.metrics):
        if metric.floored:
            for size in sizes:
                most = min(size, len(case.test))
                yield Task(metric, Measurement(case, case.stand_in(size), FLOOR, floor=True, most=most), size)
        for name, several in (compared if metric.floored else cohorts).items():
            for number, cohort in enumerate(several):
                yield Task(metric, Measurement(case, cohort, name, most=min(len(cohort), len(case.test))), number)


def _within(progress: Progress, before: float, cost: float, whole: float) -> Progress:
    def inner(done: int, total: int, **values: float) -> None:
        progress(int(1000 * (before + cost * done / max(total, 1)) / whole), 1000)

    return inner


def _kept(parts: Path | None, task: Task) -> Measured | None:
    file = None if parts is None else parts / task.file
    if file is None or not file.exists():
        return None
    try:
        stored = restored(StoredPart, read_json(file, finite=False), str(file))
        scores = [read_score(score, str(file)) for score in stored.scores]
        return Measured(scores, [FigureData.from_json(figure, str(file)) for figure in stored.figures])
    except Unreadable:  # damaged: measured again
        return None


def _keep(parts: Path | None, task: Task, measured: Measured) -> None:
    if parts is not None:
        figures = [figure.to_json() for figure in measured.figures]
        table = {"scores": [write_score(score) for score in measured.scores], "figures": figures}
        write_atomically(parts / task.file, json.dumps(table))


def _named(synthetic: Cohort | Mapping[str, Cohort | Sequence[Cohort]]) -> dict[str, list[Cohort]]:
    if isinstance(synthetic, Cohort):
        return {"synthetic": [synthetic]}
    return {name: [one] if isinstance(one, Cohort) else list(one) for name, one in synthetic.items()}


def require_names(names: Iterable[str]) -> None:
    """Whether synthetic cohorts can have these names."""
    for name in names:
        if name in RESERVED:
            raise TimeDiffError(
                f"{name!r} is a name that the report itself uses: give the synthetic cohort another one, as NAME=PATH."
            )
        if not name.strip() or not name.isprintable() or len(name) > LONGEST_NAME:
            raise TimeDiffError(
                f"{name[:LONGEST_NAME]!r} cannot be the name of a synthetic cohort: expected 1 to {LONGEST_NAME} "
                "printable characters, as in NAME=PATH."
            )
        if "/" in name or "\\" in name:
            raise TimeDiffError(
                f"{name!r} looks like a path, not like a name: give NAME=PATH, where NAME has no / in it."
            )


def _check(train: Cohort, test: Cohort, cohorts: Mapping[str, Sequence[Cohort]], settings: EvaluationSettings) -> None:
    settings.check()
    if not any(cohorts.values()):
        raise TimeDiffError("there is no synthetic cohort to evaluate.")
    require_names(cohorts)
    named = [("the training cohort", train), ("the test cohort", test)]
    named += [(f"the synthetic cohort {name!r}", one) for name, several in cohorts.items() for one in several]
    for name, cohort in named:
        if len(cohort) < FEWEST:
            raise TimeDiffError(f"{name} has {len(cohort)} stays; an evaluation needs at least {FEWEST} in each.")
        if cohort.length is not None:
            raise TimeDiffError(f"{name} has stays of different lengths: cut all of them with --horizon N first.")
        require_same_features(test.schema, cohort.schema, f"the test cohort and {name}")
        if cohort.schema.steps != test.schema.steps:
            raise TimeDiffError(
                f"{name} has {cohort.schema.steps} steps and the test cohort {test.schema.steps}: "
                "evaluate stays of one length, with --horizon N if need be."
            )
    if settings.protocol == "strict":
        refuse_leaks(train, test, cohorts)


def _worst_counts(score: Score) -> bool:
    return METRICS(score.metric).meaning(score.what).worst


def _warnings(case: Case, cohorts: Mapping[str, Sequence[Cohort]], scores: Mapping[str, Sequence[Score]]) -> list[str]:
    # The strict protocol has refused them.
    found = [] if case.settings.protocol == "strict" else [f"{leak.what}." for leak in leaks(case.train, case.test)]
    for name, several in cohorts.items():
        if any(_identical(case.train, cohort) for cohort in several):
            found.append(f"{name} is identical to the training cohort: it is real data, not synthetic.")
            continue
        for score in scores[name]:
            if score.metric == "copies" and score.excess() > 0:
                found.append(
                    f"{score.value:.1%} of the stays of {name} are exact copies of training stays "
                    f"({score.floor:.1%} of held-out real stays are)."
                )
            if score.metric == "near_copies" and score.excess() > 0:
                found.append(
                    f"{score.value:.1%} of the stays of {name} are near copies of training stays "
                    f"(chance explains at most {score.floor_high:.1%})."
                )
    return found


def _identical(a: Cohort, b: Cohort) -> bool:
    return len(a) == len(b) and all(
        np.array_equal(a.values(f.name).astype(float), b.values(f.name).astype(float), equal_nan=True)
        for f in a.schema.features
        if f.generated
    )


def _facts(case: Case, cohorts: Mapping[str, Sequence[Cohort]], seconds: float) -> dict[str, str]:
    from timediff import __version__

    facts = {"training stays": f"{len(case.train):,}", "held-out stays": f"{len(case.test):,}"}
    for name, several in cohorts.items():
        facts[f"stays of {name}"] = " + ".join(f"{len(cohort):,}" for cohort in several)
    facts["split"] = how_split(case.train, case.test)
    facts["grid"] = f"{case.test.schema.steps} steps of {case.test.schema.step}"
    facts["training data, SHA-256"] = case.train.digest()
    facts["held-out data, SHA-256"] = case.test.digest()
    for name, several in cohorts.items():
        facts[f"{name}, SHA-256"] = " ".join(cohort.digest() for cohort in several)
    facts["version"] = f"timediff {__version__}, Python {platform.python_version()}"
    facts["device"] = _device(case.device)
    facts["date"] = time.strftime("%Y-%m-%d")
    facts["duration"] = f"{seconds:.0f} s"
    return facts


def _device(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device.startswith("cuda") else f"{os.cpu_count()} CPU cores"


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
