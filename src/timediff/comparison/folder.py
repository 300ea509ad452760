"""The folder of a comparison. It grows, and whatever is in it under its own name is whole or can be continued.

comparison.json says what is compared and is written before anything else. Every training has its own run, cohort and
record; the results are of all that is there, and are written again when something was added.
"""

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from timediff.comparison.rows import Planned, Row
from timediff.errors import TimeDiffError
from timediff.evaluation.results import Results
from timediff.generators.migration import settings_as_written
from timediff.generators.registry import GENERATORS
from timediff.runtime.files import new_folder, require_new, write_atomically
from timediff.runtime.parsing import Unreadable, parse_toml, read_json, read_text
from timediff.runtime.stored import restored

FORMAT = 1
NAME = "comparison.json"


@dataclass(frozen=True)
class StoredRow:
    name: str
    generator: str
    settings: str  # TOML


@dataclass(frozen=True)
class Request:
    """What must not change while a comparison grows, and its rows."""

    format: int
    version: str
    train: str  # SHA-256
    test: str
    stays: int  # of each synthetic cohort
    rows: list[StoredRow] = field(default_factory=list)


@dataclass(frozen=True)
class Record:
    """What is known of one training: how long it took, and why it failed, if it did."""

    fit_seconds: float = 0.0
    fit_tries: int = 0
    fit_ended: bool = False  # and was noted: of one that was killed at its very end the last seconds are not known
    sample_seconds: float = 0.0
    sample_tries: int = 0
    sample_ended: bool = False
    updates: int | None = None
    hardware: str = ""
    at_once: int = 1
    failure: str = ""


@dataclass(frozen=True)
class Folder:
    path: Path

    def run(self, row: Row, seed: int) -> Path:
        return self.path / "runs" / row.folder / f"seed-{seed}"

    def cohort(self, row: Row, seed: int) -> Path:
        return self.path / "cohorts" / row.folder / f"seed-{seed}"

    def record(self, row: Row, seed: int) -> Path:
        return self.path / "records" / row.folder / f"seed-{seed}.json"

    @property
    def measured(self) -> Path:
        """Where the metrics that are finished are kept."""
        return self.path / "measured"

    @property
    def results(self) -> Path:
        return self.path / "results"

    def require(self, request: Request, planned: Sequence[Planned], resume: bool) -> None:
        """Whether this can be begun, or goes on with what is there; asked before anything is done."""
        if not self.path.exists() and not self.path.is_symlink():
            require_new(self.path)
            return
        if not (self.path / NAME).is_file():
            raise TimeDiffError(f"{self.path} exists and is no comparison: choose another name, or remove it.")
        if not resume:
            raise TimeDiffError(
                f"{self.path} is a comparison that was begun: add --resume to go on, with more seeds or generators if "
                "you like, or choose another name."
            )
        before = self.request()
        for what, was, now in (
            ("training stays", before.train, request.train),
            ("test stays", before.test, request.test),
            (f"-n (it was {before.stays:,}, now {request.stays:,})", before.stays, request.stays),
        ):
            if was != now:
                raise TimeDiffError(
                    f"{self.path} was begun with other {what}: resume with the same, or choose OUT anew."
                )
        known = {one.name: one for one in before.rows}
        for one in planned:
            if one.row.name in known and self._begun(one.row):
                _require_same(self.path, known[one.row.name], one)

    def begin(self, request: Request) -> None:
        """Writes what is compared; rows of before that are not given now stay in it, since their files do."""
        now = {one.name for one in request.rows}
        rows = [*request.rows, *(one for one in self.request().rows if one.name not in now)]
        write_atomically(self.path / NAME, _json(request, rows))

    def create(self, request: Request) -> None:
        with new_folder(self.path) as folder:
            write_atomically(folder / NAME, _json(request, request.rows))

    def request(self) -> Request:
        found = restored(Request, read_json(self.path / NAME), str(self.path / NAME))
        if found.format != FORMAT:
            raise TimeDiffError(f"{self.path / NAME} has format {found.format}; this version reads {FORMAT}.")
        return found

    def _begun(self, row: Row) -> bool:
        return any(
            folder.is_dir() and any(folder.iterdir())
            for folder in (self.run(row, 0).parent, self.cohort(row, 0).parent)
        )

    def replace_results(self, results: Results, key: str) -> None:
        """Writes the results beside those of before, and takes their place; the key says what they are of."""
        new, old = self.path / ".results.new", self.path / ".results.old"
        for left in (new, old):
            shutil.rmtree(left, ignore_errors=True)
        results.write(new)
        (self.measured / "results.key").unlink(missing_ok=True)
        if self.results.exists():
            self.results.replace(old)
        new.replace(self.results)
        write_atomically(self.measured / "results.key", key)
        shutil.rmtree(old, ignore_errors=True)

    def results_of(self, key: str) -> Results | None:
        """The results, if they are of this and as they were written."""
        file = self.measured / "results.key"
        try:
            return Results.read(self.results) if file.is_file() and read_text(file) == key else None
        except TimeDiffError:
            return None


def read_record(path: Path) -> Record:
    """Of what has not begun, or was damaged, an empty one."""
    try:
        return restored(Record, read_json(path), str(path)) if path.is_file() else Record()
    except Unreadable:
        return Record()


def write_record(path: Path, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(asdict(record), indent=1))


def seconds(value: float, ended: bool) -> float:
    """What was measured; NaN where it was not measured to its end."""
    return value if ended else math.nan


def _json(request: Request, rows: Sequence[StoredRow]) -> str:
    return json.dumps(asdict(request) | {"rows": [asdict(row) for row in rows]}, indent=1, ensure_ascii=False)


def _require_same(path: Path, before: StoredRow, now: Planned) -> None:
    name, differ = now.row.name, ""
    if before.generator != now.row.kind.name:
        differ = f"the generator was {before.generator}, now {now.row.kind.name}"
    else:
        table = settings_as_written(parse_toml(before.settings, f"{path / NAME}, {name}"), before.generator)
        was = GENERATORS(before.generator).Settings().updated(table, f"{path / NAME}, {name}")
        found = was.differences(now.settings).items()
        differ = "; ".join(f"{key} was {a!r}, now {b!r}" for key, (a, b) in found)
    if differ:
        raise TimeDiffError(
            f"{path} has trainings of {name!r} with other settings ({differ}): give the new ones another name, as "
            "NAME=, or do not change them."
        )
