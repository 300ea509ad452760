"""Evaluation: every metric on every synthetic cohort, each with its real-against-real floor.

Fidelity and usefulness are scored against held-out stays; only privacy scores compare with training stays. A floor is
the same number with real stays in place of the synthetic ones: training stays where held-out ones are what is compared
with.
"""

import json
import os
import platform
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from timediff.data.cohort import Cohort
from timediff.data.overlap import how_split
from timediff.errors import TimeDiffError
from timediff.evaluation.case import Case
from timediff.evaluation.figure_data import cohort_figures
from timediff.evaluation.leaks import leaks, refuse_copied, refuse_leaks
from timediff.evaluation.metrics.marginals import require_same_features
from timediff.evaluation.own_metrics import Asked, requested
from timediff.evaluation.registry import METRICS
from timediff.evaluation.results import Results, scores_csv
from timediff.evaluation.score import Score, combined, with_floors
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.single_stays import why_withheld
from timediff.evaluation.tasks import FLOOR, Measured, keep, kept
from timediff.evaluation.tasks import tasks as tasks_of
from timediff.runtime.files import explained, locked, refuse_existing, write_atomically
from timediff.runtime.parsing import read_text
from timediff.runtime.progress import Progress, Say, unheard
from timediff.runtime.watching import Watching, watched

if TYPE_CHECKING:
    from timediff.evaluation.audit_results import Audit

FEWEST = 50  # stays in each cohort; below that no classifier can be trained
RESERVED = (FLOOR, "training data", "held-out data")  # in the report these are something else
LONGEST_NAME = 100  # characters of a synthetic cohort's


def evaluate(
    train: Cohort,
    test: Cohort,
    synthetic: Cohort | Mapping[str, Cohort | Sequence[Cohort]],
    *,
    settings: EvaluationSettings | None = None,
    audits: Sequence["Audit"] = (),
    parts: Path | None = None,
    quick: bool = False,
    metrics: Iterable[Asked] = (),
    progress: Watching = None,
    say: Say = unheard,
    **changes: Any,
) -> Results:
    """Every metric; `synthetic` is one cohort, or one or several by name: those of one name differ by seed alone.

    `changes` are single settings, such as protocol="paper" or only=["nnaa"]; `quick` is three repetitions of the quick
    metrics, and `metrics` are measured beside ours: names, or functions of a `Measurement` that return a number. In the
    folder `parts` each finished metric is kept, and taken from there when the same evaluation is called again;
    scores.csv there has the scores so far. `audits` of these synthetic cohorts answer the third question. `progress`
    is as in `fit`.
    """
    asked = requested(settings, quick=quick, metrics=metrics, **changes)
    with watched(progress, "evaluating") as shown:
        return _evaluated(train, test, _named(synthetic), asked, audits, parts, shown, say)


def _evaluated(
    train: Cohort,
    test: Cohort,
    cohorts: Mapping[str, Sequence[Cohort]],
    settings: EvaluationSettings,
    audits: Sequence["Audit"],
    parts: Path | None,
    progress: Progress,
    say: Say,
) -> Results:
    _check(train, test, cohorts, settings)
    audited = _audited(audits, train, cohorts)
    started = time.monotonic()
    case = Case(train, test, settings)
    tasks = list(tasks_of(case, cohorts))
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
        measured = kept(parts, task)
        if measured is None:
            begun = time.monotonic()
            measured = task.run(_within(progress, done, task.cost, total))
            keep(parts, task, measured)
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
        audits=audited,
        generators=tuple(cohorts),
        scores=scores_of,
        settings=_settings(settings, train),
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
    audits: Sequence["Audit"] = (),
    resume: bool = False,
    quick: bool = False,
    metrics: Iterable[Asked] = (),
    progress: Watching = None,
    say: Say = unheard,
    **changes: Any,
) -> Results:
    """Evaluates, as `evaluate` does, and writes the folder `path`.

    What is finished waits in a hidden folder until all is there. With `resume`, a folder that holds this very
    evaluation is read.
    """
    path, settings = Path(path), requested(settings, quick=quick, metrics=metrics, **changes)
    if resume and path.exists():
        return _finished(path, train, test, _named(synthetic), settings, audits, say)
    refuse_existing(path)
    _check(train, test, _named(synthetic), settings)  # a mistake is named before anything is written
    _audited(audits, train, _named(synthetic))
    place = path.resolve()
    parts = place.parent / f".{place.name}.parts"
    digests = {name: [cohort.digest() for cohort in several] for name, several in _named(synthetic).items()}
    cohorts = {"train": train.digest(), "test": test.digest(), "synthetic": digests}
    request = json.dumps(asdict(settings) | {"cohorts": cohorts}, sort_keys=True)
    kept = "The metrics measured so far are kept, and --resume goes on from there"
    with explained(path, kept=kept), locked(parts, path):
        refuse_existing(path)  # another process may have written it meanwhile
        _begin(parts, request, resume, path)
        results = evaluate(
            train, test, synthetic, settings=settings, audits=audits, parts=parts, progress=progress, say=say
        )
        results.write(path)
        shutil.rmtree(parts)
    return results


def _finished(
    path: Path,
    train: Cohort,
    test: Cohort,
    cohorts: Mapping[str, Sequence[Cohort]],
    settings: EvaluationSettings,
    audits: Sequence["Audit"],
    say: Say,
) -> Results:
    """The results that are there, if they are those of this evaluation."""
    found = Results.read(path, say=say)
    asked = json.loads(json.dumps(_settings(settings, train)))
    digests = _digests(train, test, cohorts)
    audited = {name: one.table() for name, one in _audited(audits, train, cohorts).items()}
    same = found.generators == tuple(cohorts) and dict(found.settings) == asked
    same = same and {name: found.facts.get(name) for name in digests} == digests
    if not same or {name: one.table() for name, one in found.audits.items()} != audited:
        raise TimeDiffError(
            f"{path} holds another evaluation (a cohort, a setting or an audit differs): choose another folder."
        )
    say(f"{path} is finished: nothing was left to do")
    return found


def _settings(settings: EvaluationSettings, train: Cohort) -> dict[str, Any]:
    """As results have them."""
    return asdict(settings) | {"tsrtr_valid": len(train) <= settings.tsrtr_real}


def _digests(train: Cohort, test: Cohort, cohorts: Mapping[str, Sequence[Cohort]]) -> dict[str, str]:
    """As results have them among their facts."""
    found = {"training data, SHA-256": train.digest(), "held-out data, SHA-256": test.digest()}
    return found | {
        f"{name}, SHA-256": " ".join(cohort.digest() for cohort in several) for name, several in cohorts.items()
    }


def _audited(audits: Sequence["Audit"], train: Cohort, cohorts: Mapping[str, Sequence[Cohort]]) -> dict[str, "Audit"]:
    if not audits:
        return {}
    from timediff.evaluation.audit_results import audits_of

    return audits_of(audits, train, cohorts)


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


def _within(progress: Progress, before: float, cost: float, whole: float) -> Progress:
    def inner(done: int, total: int, **values: float) -> None:
        progress(int(1000 * (before + cost * done / max(total, 1)) / whole), 1000)

    return inner


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
    require_real(train, test, settings)
    for name, several in cohorts.items():
        for one in several:
            require_synthetic(test, name, one, settings)


def require_real(train: Cohort, test: Cohort, settings: EvaluationSettings) -> None:
    """Whether an evaluation can compare with these real stays."""
    _require_comparable(test, "the training cohort", train)
    _require_comparable(test, "the test cohort", test)
    if settings.protocol == "strict":
        refuse_leaks(train, test)


def require_synthetic(test: Cohort, name: str, cohort: Cohort, settings: EvaluationSettings) -> None:
    """Whether a synthetic cohort can be evaluated."""
    _require_comparable(test, f"the synthetic cohort {name!r}", cohort)
    if settings.protocol == "strict":
        refuse_copied(test, name, cohort)


def _require_comparable(test: Cohort, name: str, cohort: Cohort) -> None:
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
    for name, several in cohorts.items():
        facts[f"{name}, made by"] = "; ".join(dict.fromkeys(_maker(cohort) for cohort in several))
    facts |= _digests(case.train, case.test, cohorts)
    facts["version"] = f"timediff {__version__}, Python {platform.python_version()}"
    facts["device"] = _device(case.device)
    facts["date"] = time.strftime("%Y-%m-%d")
    facts["duration"] = f"{seconds:.0f} s"
    return facts


def _maker(cohort: Cohort) -> str:
    """What the cohort says of itself: generator, run, seed, version."""
    return str(cohort.provenance) if cohort.provenance else "it does not say by which run, nor that it is synthetic"


def _device(device: str) -> str:
    import torch

    return torch.cuda.get_device_name() if device.startswith("cuda") else f"{os.cpu_count()} CPU cores"
