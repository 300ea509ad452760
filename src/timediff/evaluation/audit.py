"""An audit: whom a synthetic cohort, or a run folder, could expose, by attack; and what the attacks would have found.

Candidates are the training stays and half of the held-out ones; the other half are the real stays of other patients
that an attacker may have. Attacks do not see who was trained on. Each is also made where it is known what there is to
find: on a cohort that knows nothing of the training stays, and on the same with some of them copied into it.
"""

import json
import os
import platform
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from timediff.data.cohort import Cohort
from timediff.data.overlap import how_split
from timediff.errors import Stopped, TimeDiffError
from timediff.evaluation.audit_results import ATTACKED, TRAINED, Audit, Power, hash_of
from timediff.evaluation.audit_work import AuditSettings, Work
from timediff.evaluation.leaks import leaks
from timediff.evaluation.metrics.marginals import require_same_features
from timediff.evaluation.score import Score
from timediff.generators.base import Generator
from timediff.runtime.files import explained, locked, refuse_existing, write_atomically
from timediff.runtime.parsing import read_text
from timediff.runtime.progress import Say, unheard
from timediff.runtime.watching import Watching, watched

FEWEST_STAYS = 100  # held-out ones


def audit(
    train: Cohort,
    held_out: Cohort,
    *,
    run: Generator | None = None,
    synthetic: Cohort | None = None,
    settings: AuditSettings | None = None,
    folder: Path | None = None,
    progress: Watching = None,
    say: Say = unheard,
) -> Audit:
    """Attacks a synthetic cohort, a fitted generator, or both. Shadow models are kept in `folder` until it is done."""
    settings, started = settings or AuditSettings(), time.monotonic()
    settings.check()
    check(train, held_out, run, synthetic)
    scores: list[Score] = []
    power: list[Power] = []
    with watched(progress, "training shadow models") as shown:
        work = Work(train, held_out, run, synthetic, settings, folder, shown, say)
        for one in work.attacks:
            begun = time.monotonic()
            scores += work.scores_of(one)
            if settings.power:
                power += work.power_of(one)
            say(f"{one.title}: {time.monotonic() - begun:.0f} s")
    facts = _facts(train, held_out, run, synthetic, work) | {"duration": f"{time.monotonic() - started:.0f} s"}
    return Audit(scores, power, _stated(settings), facts, work.notes)


def audit_to(
    path: str | Path,
    train: Cohort,
    held_out: Cohort,
    *,
    run: Generator | None = None,
    synthetic: Cohort | None = None,
    settings: AuditSettings | None = None,
    resume: bool = False,
    progress: Watching = None,
    say: Say = unheard,
) -> Audit:
    """Audits and writes the folder `path`. Shadow models wait in a hidden folder, and are removed when all is done."""
    path, settings = Path(path), settings or AuditSettings()
    refuse_existing(path)
    settings.check()
    check(train, held_out, run, synthetic)
    place = path.resolve()
    parts = place.parent / f".{place.name}.parts"
    request = json.dumps(
        _stated(settings)
        | {"cohorts": [train.digest(), held_out.digest()], "run": run.identity if run else None}
        | {"synthetic": synthetic.digest() if synthetic else None},
        sort_keys=True,
    )
    kept = "The shadow models so far are kept, and --resume goes on from there"
    with explained(path, kept=kept), locked(parts, path):
        refuse_existing(path)
        previous = parts / "request.json"
        if not previous.exists():
            write_atomically(previous, request)
        elif not resume:
            raise TimeDiffError(
                f"the audit for {path} was stopped before it was done: add --resume to go on, or remove {parts}."
            )
        elif read_text(previous) != request:
            raise TimeDiffError(
                f"{parts} belongs to another audit (a cohort, the run or a setting differs): repeat the first command "
                "with --resume, or remove that folder to start again."
            )
        try:
            found = audit(
                train, held_out, run=run, synthetic=synthetic, settings=settings, folder=parts, progress=progress,
                say=say,
            )  # fmt: skip
        except Stopped as stop:
            raise Stopped(f"stopped. {kept}") from stop
        found.write(path)
        shutil.rmtree(parts)
    return found


def check(train: Cohort, held_out: Cohort, run: Generator | None, synthetic: Cohort | None) -> None:
    """What makes an audit untrue, or impossible, is refused before anything is done."""
    if run is None and synthetic is None:
        raise TimeDiffError(
            "there is nothing to attack: give a synthetic cohort (--synthetic), a run (--run), or both."
        )
    for name, cohort in (("TRAIN", train), ("HELD_OUT", held_out)):
        if len(cohort) < FEWEST_STAYS:
            raise TimeDiffError(f"{name} has {len(cohort)} stays; an audit needs at least {FEWEST_STAYS} in each.")
        if cohort.length is not None:
            raise TimeDiffError(f"{name} has stays of different lengths: cut all of them with --horizon N first.")
    require_same_features(train.schema, held_out.schema, "TRAIN and HELD_OUT")
    if found := leaks(train, held_out):
        raise TimeDiffError(f"TRAIN and HELD_OUT share what they must not. {found[0]}")
    if synthetic is not None:
        require_same_features(train.schema, synthetic.schema, "TRAIN and the synthetic cohort")
        if synthetic.schema.steps != train.schema.steps:
            raise TimeDiffError(
                f"the synthetic cohort has {synthetic.schema.steps} steps and TRAIN {train.schema.steps}: audit stays "
                "of one length, with --horizon N if need be."
            )
    if run is not None and run.trained_on not in (None, train.digest()):
        raise TimeDiffError(
            "the run was not trained on TRAIN: the hash of the data in its provenance is another one. Give the cohort "
            "that `timediff fit` was given, or the run of this cohort."
        )


def _stated(settings: AuditSettings) -> dict[str, Any]:
    """What the results follow from: not how many models are trained at once."""
    stated = asdict(settings) | {"attacks": list(settings.attacks), "changes": dict(settings.changes)}
    return {name: value for name, value in stated.items() if name != "jobs"}


def _facts(
    train: Cohort, held_out: Cohort, run: Generator | None, synthetic: Cohort | None, work: Work
) -> dict[str, str]:
    from timediff import __version__

    facts = {
        "training stays": f"{len(train):,}",
        "held-out stays": f"{len(held_out):,}, of which an attacker knows {len(work.reference):,}",
        "split": how_split(train, held_out),
        TRAINED: hash_of(train),
    }
    if synthetic is not None:
        facts |= {"synthetic stays": f"{len(synthetic):,}", ATTACKED: hash_of(synthetic)}
    if run is not None:
        facts |= {"generator": run.name, "run's hash": run.identity[:16]}
    if "shadows" in vars(work):
        facts["shadow models"] = f"{len(work.shadows)}"
    return facts | {
        "version": __version__,
        "date": time.strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
