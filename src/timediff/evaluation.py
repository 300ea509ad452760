"""Evaluation: every metric on every synthetic cohort, each with its real-against-real floor.

Fidelity and usefulness are scored against held-out stays; only privacy scores compare with training stays. (In the
paper's protocol the discriminative judge sees training stays, as TimeGAN's does.) A floor is the same number with real
stays in place of the synthetic ones: training stays where held-out ones are what is compared with.
"""

import hashlib
import importlib.util
import json
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from timediff.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.files import explained, refuse_existing, write_atomically
from timediff.metrics.marginals import require_same_features
from timediff.metrics.record import Score, with_floors
from timediff.metrics.views import Protocol, View
from timediff.progress import Progress, silent
from timediff.results import Picture, Results, read_score, write_score
from timediff.seeding import stream

if TYPE_CHECKING:
    from timediff.metrics.classifiers import Trained

METRICS = (
    "copies", "nnaa", "mir", "fidelity", "discriminative", "predictive", "tstr", "tsrtr", "subgroups", "embeddings",
)  # fmt: skip
FEWEST = 50  # stays in each cohort; below that no judge learns anything
FLOOR = "real against real"


@dataclass(frozen=True)
class EvaluationSettings:
    protocol: Protocol = "strict"
    seed: int = 0
    repetitions: int = 10  # of every judge that is trained, each with its own seed
    bootstrap: int = 200
    only: tuple[str, ...] = ()  # of METRICS; empty = all
    skip: tuple[str, ...] = ()
    mir_threshold: float = 0.08  # the paper's; it takes 0.005 for eICU
    samples: int = 2000  # of each set in an embedding
    tsrtr_real: int = 2000
    internal: bool = False  # draw single points of real stays: a page that stays in the house
    device: str = "auto"

    @staticmethod
    def quick(**changes: Any) -> "EvaluationSettings":
        """Three repetitions, no TSRTR, no subgroups."""
        return EvaluationSettings(**{"repetitions": 3, "skip": ("tsrtr", "subgroups"), **changes})

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(name for name in self.only or METRICS if name not in self.skip)

    def check(self) -> None:
        if unknown := [name for name in (*self.only, *self.skip) if name not in METRICS]:
            raise TimeDiffError(f"there is no metric {', '.join(unknown)}; the metrics are {', '.join(METRICS)}.")
        if self.protocol not in ("paper", "strict"):
            raise TimeDiffError(f"protocol is {self.protocol!r}; expected strict or paper.")
        if self.repetitions < 1:
            raise TimeDiffError(f"{self.repetitions} repetitions; expected at least 1.")


@dataclass(frozen=True)
class Case:
    """Training and held-out stays, and how they are looked at."""

    train: Cohort
    test: Cohort
    settings: EvaluationSettings

    @cached_property
    def view(self) -> View:
        return View.fit(self.train, self.settings.protocol)

    @cached_property
    def device(self) -> str:
        import torch

        if self.settings.device != "auto":
            return self.settings.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    @cached_property
    def trained(self) -> "Trained":
        """Classifiers that have learnt from real stays, kept for the next cohort."""
        from timediff.metrics.classifiers import Trained

        return Trained(self.train)

    def stand_in(self, count: int) -> Cohort:
        """Training stays in place of so many synthetic ones."""
        order = stream("judging", self.settings.seed, 1).permutation(len(self.train))
        return self.train.take(np.sort(order[: min(count, len(self.train))]))


Measured = tuple[list[Score], list[Picture]]


@dataclass(frozen=True)
class Task:
    """One metric of one cohort, or its floor."""

    metric: str
    of: str  # a generator's name, or FLOOR
    number: int  # which of that generator's cohorts
    cost: float  # about how long it takes, in any unit
    run: Callable[[Progress], Measured] = field(repr=False)

    @property
    def key(self) -> str:
        return f"{self.metric} {self.of} {self.number}"


def evaluate(
    train: Cohort,
    test: Cohort,
    synthetic: Cohort | Mapping[str, Cohort | Sequence[Cohort]],
    *,
    settings: EvaluationSettings | None = None,
    parts: Path | None = None,
    progress: Progress = silent,
    **changes: Any,
) -> Results:
    """Every metric; `synthetic` is one cohort, or one or several by name: those of one name differ by seed alone.

    `changes` are single settings, such as protocol="paper" or only=["nnaa"]. In the folder `parts` each finished metric
    is kept, and taken from there when the same evaluation is called again.
    """
    settings = replace(settings or EvaluationSettings(), **{k: _tuple(v) for k, v in changes.items()})
    settings.check()
    cohorts = _named(synthetic)
    _check(train, test, cohorts)
    started = time.monotonic()
    case = Case(train, test, settings)
    tasks = list(_tasks(case, cohorts))
    found: dict[tuple[str, int], Measured] = {}
    total, done = sum(task.cost for task in tasks), 0.0
    for task in tasks:
        measured = _kept(parts, task)
        if measured is None:
            measured = task.run(_within(progress, done, task.cost, total))
            _keep(parts, task, measured)
        scores, pictures = found.setdefault((task.of, task.number), ([], []))
        scores.extend(measured[0])
        pictures.extend(measured[1])
        done += task.cost
        progress(int(1000 * done / total), 1000)
    floors = found.get((FLOOR, 0), ([], []))[0]
    scores_of = {
        name: combined([with_floors(found[name, i][0], floors) for i in range(len(several))])
        for name, several in cohorts.items()
    }
    return Results(
        generators=tuple(cohorts),
        scores=scores_of,
        settings=asdict(settings) | {"tsrtr_valid": len(train) <= settings.tsrtr_real},
        facts=_facts(case, cohorts, time.monotonic() - started),
        warnings=_warnings(train, cohorts, scores_of),
        pictures=[*_pictures(case, cohorts), *(p for name in cohorts for p in found[name, 0][1])],
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
) -> Results:
    """Evaluates and writes the folder `path`; what is finished waits in a hidden folder until all is there."""
    path, settings = Path(path), settings or EvaluationSettings()
    refuse_existing(path)
    parts = path.parent / f".{path.name}.parts"
    digests = {name: [cohort.digest() for cohort in several] for name, several in _named(synthetic).items()}
    cohorts = {"train": train.digest(), "test": test.digest(), "synthetic": digests}
    request = json.dumps(asdict(settings) | {"cohorts": cohorts}, sort_keys=True)
    previous = parts / "request.json"
    if previous.exists() and not resume:
        raise TimeDiffError(
            f"the evaluation for {path} was stopped before it was done: add --resume to go on, or remove {parts}."
        )
    if previous.exists() and previous.read_text() != request:
        raise TimeDiffError(
            f"{parts} belongs to another evaluation (a cohort or a setting differs): repeat the first command with "
            "--resume, or remove that folder to start again."
        )
    with explained(path, kept="The metrics measured so far are kept, and --resume goes on from there"):
        parts.mkdir(parents=True, exist_ok=True)
        write_atomically(previous, request)
        results = evaluate(train, test, synthetic, settings=settings, parts=parts, progress=progress)
        results.write(path)
    shutil.rmtree(parts)
    return results


def combined(cohorts: Sequence[Sequence[Score]]) -> list[Score]:
    """The scores of one generator's cohorts as one: their mean, and beside the judges' spread that of the cohorts."""
    if len(cohorts) == 1:
        return list(cohorts[0])
    by_key = [{score.key: score for score in scores} for scores in cohorts]
    return [_mean([scores[key] for scores in by_key if key in scores]) for key in by_key[0]]


def _mean(scores: Sequence[Score]) -> Score:
    known = [score for score in scores if score.value == score.value]
    if len(known) < 2:
        return known[0] if known else scores[0]
    judged = [score.spreads["judge"] for score in known if "judge" in score.spreads]
    spreads = {"judge": float(np.mean(judged))} if judged else {}
    spreads["cohort"] = float(np.std([score.value for score in known], ddof=1))
    value, low, high = (float(np.mean([getattr(s, name) for s in known])) for name in ("value", "low", "high"))
    return replace(known[0], spreads=spreads, value=value, low=low, high=high)


def _tasks(case: Case, cohorts: Mapping[str, Sequence[Cohort]]) -> Iterator[Task]:
    """Quick metrics first; the floor of each before what it is the floor of."""
    from timediff.metrics import suite

    size = max(len(cohort) for several in cohorts.values() for cohort in several)
    stand_in = case.stand_in(size)
    for metric in case.settings.metrics:
        measure, (once, each) = suite.MEASURES[metric]
        cost = once + each * case.settings.repetitions
        if metric in suite.FLOORED:
            yield Task(metric, FLOOR, 0, cost, partial(measure, case, stand_in, FLOOR, True))
        for name, several in cohorts.items():
            for number, cohort in enumerate(several):
                yield Task(metric, name, number, cost, partial(measure, case, cohort, name, False))


def _pictures(case: Case, cohorts: Mapping[str, Sequence[Cohort]]) -> list[Picture]:
    if importlib.util.find_spec("plotly") is None:  # scores can be had without; a report will ask for it
        return []
    from timediff.report.pictures import pictures

    return pictures(case.test, {name: several[0] for name, several in cohorts.items()})


def _within(progress: Progress, before: float, cost: float, whole: float) -> Progress:
    def inner(done: int, total: int, **values: float) -> None:
        progress(int(1000 * (before + cost * done / max(total, 1)) / whole), 1000)

    return inner


def _kept(parts: Path | None, task: Task) -> Measured | None:
    file = None if parts is None else parts / f"{_file(task)}.json"
    if file is None or not file.exists():
        return None
    try:
        table = json.loads(file.read_text())
        return [read_score(score) for score in table["scores"]], [Picture(**p) for p in table["pictures"]]
    except (ValueError, KeyError, TypeError):  # damaged: measured again
        return None


def _keep(parts: Path | None, task: Task, measured: Measured) -> None:
    if parts is not None:
        table = {"scores": [write_score(s) for s in measured[0]], "pictures": [asdict(p) for p in measured[1]]}
        write_atomically(parts / f"{_file(task)}.json", json.dumps(table))


def _file(task: Task) -> str:
    return f"{task.metric}-{hashlib.sha256(task.key.encode()).hexdigest()[:16]}"


def _named(synthetic: Cohort | Mapping[str, Cohort | Sequence[Cohort]]) -> dict[str, list[Cohort]]:
    if isinstance(synthetic, Cohort):
        return {"synthetic": [synthetic]}
    return {name: [one] if isinstance(one, Cohort) else list(one) for name, one in synthetic.items()}


def _check(train: Cohort, test: Cohort, cohorts: Mapping[str, Sequence[Cohort]]) -> None:
    if not cohorts:
        raise TimeDiffError("there is no synthetic cohort to judge.")
    if FLOOR in cohorts:
        raise TimeDiffError(f"{FLOOR!r} is the name of the floor: give the synthetic cohort another one.")
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


def _warnings(
    train: Cohort, cohorts: Mapping[str, Sequence[Cohort]], scores: Mapping[str, Sequence[Score]]
) -> list[str]:
    found = []
    for name, several in cohorts.items():
        if any(_identical(train, cohort) for cohort in several):
            found.append(f"{name} is identical to the training cohort: it is real data, not synthetic.")
            continue
        for score in scores[name]:
            if score.metric == "copies" and score.value > max(score.floor, 0) + 0.001:
                found.append(
                    f"{score.value:.1%} of the stays of {name} are exact copies of training stays "
                    f"({score.floor:.1%} of held-out real stays are)."
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
