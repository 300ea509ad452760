"""Which of TimeDiff's folders one is, and whether it is as it was written."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from timediff.errors import TimeDiffError
from timediff.runtime.manifest import NAME, differences, read_manifest
from timediff.runtime.parsing import read_json

UNKNOWN = "it carries no hashes (TimeDiff 0.1.0 wrote none), so it cannot be known whether it was edited"


@dataclass
class Checked:
    path: Path
    kind: str  # in words
    hashed: bool = False  # whether there was something to compare with
    problems: list[str] = field(default_factory=list)  # why it is not intact
    notes: list[str] = field(default_factory=list)

    @property
    def intact(self) -> bool:
        """As far as can be known."""
        return not self.problems

    def lines(self) -> list[str]:
        verdict = "as it was written" if self.hashed else "readable"
        first = f"{self.path}: {self.kind}, {verdict if self.intact else 'not intact'}"
        unknown = [] if self.hashed or not self.intact else [UNKNOWN]
        return [first, *(f"  {line}" for line in [*self.problems, *unknown, *self.notes])]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """What cannot be read is a problem."""
        try:
            yield
        except TimeDiffError as error:
            self.problems.append(str(error))

    def compare(self) -> None:
        """With its manifest, where it has one."""
        with self.reading():
            self.hashed = (self.path / NAME).exists()
            manifest = read_manifest(self.path)
            if manifest and (found := differences(self.path, manifest)):
                self.problems.append(f"edited or damaged since it was written ({found})")


def check(path: str | Path) -> Checked:
    """Tells what the folder `path` is, and what of it is not as it was written; changes nothing."""
    folder = Path(path)
    if not folder.is_dir():
        raise TimeDiffError(f"{folder} is not a folder: give one that TimeDiff has written.")
    for is_one, kind, look in KINDS:
        if is_one(folder):
            checked = Checked(folder, kind)
            look(checked)
            return checked
    raise TimeDiffError(
        f"{folder} is none of the folders that TimeDiff writes: a cohort has a schema.toml, a run a provenance.json, "
        "results a results.json, a comparison a comparison.json, and unfinished work lies in .OUT.parts."
    )


def kind_of(folder: Path) -> str | None:
    """What a folder is, in words; None of what is none of ours."""
    return next((kind for is_one, kind, _ in KINDS if folder.is_dir() and is_one(folder)), None)


def _run(checked: Checked) -> None:
    from timediff.generators.registry import GENERATORS
    from timediff.generators.run import HASHED, Run
    from timediff.training.checkpoints import Checkpoints

    with checked.reading():
        checkpoints = Checkpoints(checked.path / "checkpoints")
        run = Run.open(checked.path, allow_edited=True)
        checked.hashed = run.provenance["format"] >= HASHED
        if run.differences:
            checked.problems.append(f"edited or damaged since it was written ({run.differences})")
        if edited := run.provenance.get("edited"):
            checked.notes.append(f"it was resumed after an edit ({', '.join(edited)})")
        checked.problems += checkpoints.damages()
        if run.finished or checkpoints.newest(lambda line: None):
            GENERATORS(run.generator).from_run(run, checked.notes.append)
        else:
            checked.notes.append("it has no weights yet: timediff fit … --resume goes on")


def _comparison(checked: Checked) -> None:
    """All runs, cohorts and results that are in it."""
    from timediff.comparison.folder import NAME as REQUEST
    from timediff.comparison.folder import Folder

    with checked.reading():
        rows = Folder(checked.path).request().rows
        checked.notes.append(f"rows in {REQUEST}: {', '.join(row.name for row in rows)}")
    found = [*checked.path.glob("runs/*/seed-*"), *checked.path.glob("cohorts/*/seed-*"), checked.path / "results"]
    parts = [check(path) for path in sorted(found) if path.is_dir()]
    for part in parts:
        where = part.path.relative_to(checked.path)
        checked.problems += [f"{where}: {problem}" for problem in part.problems]
        checked.notes += [f"{where}: {note}" for note in part.notes]
    checked.hashed = all(part.hashed for part in parts)
    if not (checked.path / "results").is_dir():
        checked.notes.append("there are no results yet: the same command with --resume goes on")


def _results(checked: Checked) -> None:
    from timediff.evaluation.results import Results

    checked.compare()
    with checked.reading():
        found = Results.read(checked.path, allow_edited=True)
        checked.notes.append(f"scores of {', '.join(found.generators)}")


def _audit(checked: Checked) -> None:
    from timediff.evaluation.audit_results import Audit

    checked.compare()
    with checked.reading():
        found = Audit.read(checked.path, allow_edited=True)
        checked.notes.append(f"{len({s.classifier for s in found.scores})} attacks")


def _dossier(checked: Checked) -> None:
    """That all its pages are as they were written, also those that only people read."""
    checked.compare()
    with checked.reading():
        table = read_json(checked.path / "dossier.json")
        hashes = table.get("hashes") if isinstance(table, dict) else None
        for name, digest in (hashes if isinstance(hashes, dict) else {}).items():
            checked.notes.append(f"{name}: {digest}")


def _cohort(checked: Checked) -> None:
    from timediff.data.cohort import read_cohort

    checked.compare()
    with checked.reading():
        cohort = read_cohort(checked.path)
        checked.notes.append(f"{len(cohort):,} stays of {cohort.schema.steps:,} steps")
        if cohort.provenance is not None:
            checked.notes.append(str(cohort.provenance))


def _parts(checked: Checked) -> None:
    from timediff.generators.streaming import whole_parts

    with checked.reading():
        request = read_json(checked.path / "request.json")
        if not isinstance(request, dict) or not isinstance(request.get("n"), int):
            checked.kind = "an unfinished evaluation"
            return
        stays, damaged = whole_parts(checked.path)
        checked.notes.append(f"{stays:,} of {request['n']:,} stays so far; the same command with --resume goes on")
        checked.problems += [f"{name} is damaged, and --resume makes it again" for name in damaged]


def _has(*names: str) -> Callable[[Path], bool]:
    return lambda folder: any((folder / name).is_file() for name in names)


KINDS: tuple[tuple[Callable[[Path], bool], str, Callable[[Checked], None]], ...] = (
    (_has("comparison.json"), "a comparison", _comparison),
    (_has("series.parquet"), "a cohort", _cohort),  # before a run, since a synthetic one has a provenance.json too
    (_has("provenance.json"), "a run", _run),
    (_has("dossier.json"), "a dossier", _dossier),
    (_has("results.json"), "results", _results),
    (_has("audit.json"), "an audit", _audit),
    (_has("request.json"), "an unfinished sampling", _parts),
    (_has("schema.toml"), "a cohort", _cohort),
)
