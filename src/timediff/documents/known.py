"""Known: all that the documents say of a run and a synthetic cohort, read from their folders and checked by hashes."""

import shlex
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from timediff.data.cohort import Cohort, read_cohort
from timediff.data.describe import Extracted, read_extraction
from timediff.data.overlap import how_split, identical_stays
from timediff.data.provenance import CohortProvenance
from timediff.documents.about import About
from timediff.errors import TimeDiffError
from timediff.evaluation.attacks.registry import Has
from timediff.evaluation.audit_results import ATTACKED, TRAINED, Audit
from timediff.evaluation.leaks import leaks
from timediff.evaluation.metrics.marginals import require_same_features
from timediff.evaluation.results import Results
from timediff.generators.base import Generator
from timediff.generators.registry import load
from timediff.runtime.files import sha256
from timediff.runtime.manifest import differences, read_manifest
from timediff.runtime.parsing import read_json
from timediff.runtime.progress import Say, unheard
from timediff.settings.typed import flat

DIGITS = 16  # of the hashes that an audit holds
PARQUET = ("application/vnd.apache.parquet", "application/x-parquet")  # as registered, and as older readers know it
FILES = {  # of a cohort, with their media types
    "series.parquet": PARQUET,
    "static.parquet": PARQUET,
    "schema.toml": ("application/toml",),
    "provenance.json": ("application/json",),
}


@dataclass(frozen=True)
class ReleasedFile:
    name: str
    kinds: tuple[str, ...]  # its media types
    sha256: str
    size: int  # bytes


@dataclass(frozen=True)
class GivenFolders:
    """The folders that were given; only the terminal shows them."""

    run: Path
    synthetic: Path
    train: Path
    test: Path
    results: Path | None = None
    audits: tuple[Path, ...] = ()
    horizon: int | None = None


@dataclass(frozen=True)
class Known:
    about: About
    generator: str
    identity: str  # of the generator: a hash of its weights, codec and settings
    trained: Mapping[str, Any]  # the run's provenance.json
    settings: Mapping[str, Any]  # by dotted path
    provenance: CohortProvenance  # of the synthetic cohort
    train: Cohort
    test: Cohort
    synthetic: Cohort
    split: str  # how training and held-out stays were told apart
    copies: int  # synthetic stays that equal a training stay value for value
    files: Sequence[ReleasedFile]  # of the synthetic cohort
    extraction: Extracted | None
    results: Results | None
    name: str  # of the synthetic cohort in the results
    audits: Mapping[Has, Audit]  # by what was attacked
    notes: Sequence[str]  # what must be read before anything else
    missing: Mapping[str, str]  # what was not done → the command that does it
    date: str

    @property
    def title(self) -> str:
        return self.about.title or f"{len(self.synthetic):,} synthetic stays, made by {self.generator}"


def known(places: GivenFolders, about: About | None = None, *, allow_edited: bool = False, say: Say = unheard) -> Known:
    """Reads all folders, and refuses those that do not belong together."""
    notes: list[str] = []

    def heard(text: str) -> None:
        notes.append(_unplaced(text, places))
        say(text)

    model = load(places.run, heard, allow_edited=allow_edited)
    for name, path in (("TRAIN", places.train), ("TEST", places.test), ("SYN", places.synthetic)):
        _unedited(name, path, allow_edited, heard)

    def read(path: Path) -> Cohort:
        cohort = read_cohort(path)
        return cohort if places.horizon is None else cohort.horizon(places.horizon)

    train, test, synthetic = read(places.train), read(places.test), read(places.synthetic)
    require_same_features(train.schema, test.schema, "TRAIN and TEST")
    require_same_features(train.schema, synthetic.schema, "TRAIN and the synthetic cohort")
    _one_origin(model, train, synthetic, places)
    if found := leaks(train, test):
        raise TimeDiffError(f"TRAIN and TEST share what they must not. {found[0]}")
    results, name = None, ""
    if places.results is not None:
        results = Results.read(places.results, allow_edited=allow_edited, say=heard)
        name = evaluated(results, train, test, synthetic)
    audits: dict[Has, Audit] = {}
    for path in places.audits:
        audits |= attacked(Audit.read(path, allow_edited=allow_edited), train, synthetic, model, audits)
    if results is not None and name in results.audits:
        audits = attacked(results.audits[name], train, synthetic, model, {}) | audits
    if results is not None and "cohort" in audits:
        results = replace(results, audits={**results.audits, name: audits["cohort"]})
    assert synthetic.provenance is not None
    return Known(
        about or About(), model.name, model.identity, read_json(places.run / "provenance.json"), flat(model.settings),
        synthetic.provenance, train, test, synthetic, how_split(train, test), identical_stays(train, synthetic),
        _files(places.synthetic), read_extraction(places.train), results, name, audits, notes,
        _missing(places, results, audits), time.strftime("%Y-%m-%d"),
    )  # fmt: skip


def evaluated(results: Results, train: Cohort, test: Cohort, synthetic: Cohort) -> str:
    """Which name the synthetic cohort has in these results; those of other stays are refused."""
    for what, cohort, fact in (
        ("TRAIN", train, "training data, SHA-256"),
        ("TEST", test, "held-out data, SHA-256"),
    ):
        if results.facts.get(fact) != cohort.digest():
            raise TimeDiffError(
                f"the results are of another {what}: the hash of the {fact.split(',')[0]} in them is another one. Give "
                f"the results that were computed with this {what}, with the same --horizon."
            )
    digest = synthetic.digest()
    names = [name for name in results.generators if digest in results.facts.get(f"{name}, SHA-256", "").split()]
    if not names:
        raise TimeDiffError(
            "the results are of another synthetic cohort: the hash of SYN is none of theirs. Evaluate this cohort, or "
            "give the results of it, with the same --horizon."
        )
    return names[0]


def attacked(
    audit: Audit, train: Cohort, synthetic: Cohort, model: Generator, before: Mapping[Has, Audit]
) -> dict[Has, Audit]:
    """What of the two an audit attacked; one of other stays or of another run is refused."""
    facts, found = audit.facts, dict[Has, Audit]()
    if facts.get(TRAINED) != train.digest()[:DIGITS]:
        raise TimeDiffError(
            "the audit is of another training cohort: its hash of the training stays is another one. Give the audit "
            "of this TRAIN, with the same --horizon."
        )
    if ATTACKED in facts:
        if facts[ATTACKED] != synthetic.digest()[:DIGITS]:
            raise TimeDiffError(
                "the audit is of another synthetic cohort: its hash of the synthetic stays is not that of SYN. Give "
                "the audit of this cohort, with the same --horizon."
            )
        found["cohort"] = audit
    if "run's hash" in facts:
        if facts["run's hash"] != model.identity[:DIGITS]:
            raise TimeDiffError(
                "the audit is of another run: its hash of the run is not that of RUN. Give the audit of this run."
            )
        found["run"] = audit
    if again := [has for has in found if has in before and before[has] is not audit and _made(audit, has)]:
        raise TimeDiffError(
            f"two audits attacked the {'synthetic cohort' if again[0] == 'cohort' else 'run'}: give one, since several "
            "would let a reader choose."
        )
    return {has: one for has, one in found.items() if _made(one, has)}


def _made(audit: Audit, has: Has) -> bool:
    """Whether an attack of this kind was made at all: a run may be given for shadow models alone."""
    from timediff.evaluation.attacks.registry import ATTACKS

    return any(ATTACKS(score.classifier).has == has for score in audit.scores if score.classifier)


def _one_origin(model: Generator, train: Cohort, synthetic: Cohort, places: GivenFolders) -> None:
    """Whether the run was trained on TRAIN, and the synthetic cohort sampled from the run."""
    if model.trained_on is None:
        raise TimeDiffError(
            f"the run {places.run} does not say what it was trained on, so a dossier cannot say it either: fit again."
        )
    if model.trained_on != train.digest():
        raise TimeDiffError(
            "the run was not trained on TRAIN: the hash of the data in its provenance is another one. Give the cohort "
            "that `timediff fit` was given, with the same --horizon, or the run of this cohort."
        )
    made = synthetic.provenance
    if made is None:
        raise TimeDiffError(
            f"{places.synthetic} does not say that it is synthetic, nor which run it is from: sample it again with "
            "`timediff sample`, which writes that into the cohort."
        )
    if made.run != model.identity:
        whose = "several runs, or one that it does not name" if made.run is None else f"the run {made.run[:DIGITS]}…"
        raise TimeDiffError(
            f"{places.synthetic} was not sampled from RUN: by its provenance it is from {whose}, and RUN is "
            f"{model.identity[:DIGITS]}…. Give the run that it was sampled from, or sample again."
        )


def _unplaced(text: str, places: GivenFolders) -> str:
    """A note without the path that it begins with: documents name no folder of this machine."""
    for name, path in (("RUN", places.run), ("RESULTS", places.results)):
        if path is not None and text.startswith(f"{path} "):
            return f"{name}{text.removeprefix(str(path))}"
    return text


def _unedited(name: str, path: Path, allow_edited: bool, say: Say) -> None:
    manifest = read_manifest(path)
    found = differences(path, manifest) if manifest else None
    if found and not allow_edited:
        raise TimeDiffError(
            f"{name}, {path}, was edited or damaged since it was written ({found}): restore it, write it again, or add "
            "--allow-edited, and the dossier will say so."
        )
    if found:
        say(f"{name} is not as it was written ({found})")


def _files(folder: Path) -> list[ReleasedFile]:
    paths = [(folder / name, kinds) for name, kinds in FILES.items()]
    return [
        ReleasedFile(path.name, kinds, sha256(path), path.stat().st_size) for path, kinds in paths if path.is_file()
    ]


def _missing(places: GivenFolders, results: Results | None, audits: Mapping[Has, Audit]) -> dict[str, str]:
    """The commands for what was not given."""
    cut = [] if places.horizon is None else ["--horizon", str(places.horizon)]
    train, test, synthetic, run = map(str, (places.train, places.test, places.synthetic, places.run))
    found = {}
    if results is None:
        given = ["--train", train, "--test", test, "--synthetic", synthetic, "--out", "RESULTS"]
        found["not evaluated"] = shlex.join(["timediff", "evaluate", *given, *cut])
    attacks = {"cohort": ["--synthetic", synthetic], "run": ["--run", run]}
    if absent := [has for has in attacks if has not in audits]:
        given = [word for has in absent for word in attacks[has]]
        what = " and ".join({"cohort": "synthetic cohort", "run": "run folder"}[has] for has in absent)
        found[f"{what} not audited"] = shlex.join(["timediff", "audit", train, test, "AUDIT", *given, *cut])
    return found
