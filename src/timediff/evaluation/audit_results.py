"""What an audit found, as it is kept in a folder; no number in it is about a single person."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.score import Score
from timediff.runtime.files import new_folder
from timediff.runtime.manifest import differences, read_manifest, write_manifest
from timediff.runtime.parsing import Unreadable, read_json
from timediff.runtime.stored import restored

FORMAT = 1
TRAINED, ATTACKED = "training stays' hash", "synthetic stays' hash"  # facts


@dataclass(frozen=True)
class Power:
    """What an attack finds of what was planted."""

    attack: str
    has: str  # what the attacker has
    planted: str  # in words
    dose: float  # fraction of the training stays; 0 = nothing was planted
    found: int  # in how many of the repetitions
    of: int


@dataclass(frozen=True)
class Audit:
    """What attacks found. No number is about a single person."""

    scores: Sequence[Score]  # `classifier` is the attack's name
    power: Sequence[Power]
    settings: Mapping[str, Any]
    facts: Mapping[str, str]
    notes: Sequence[str] = ()

    def __repr__(self) -> str:
        from timediff.report.notebook import audit_lines

        return "\n  ".join(audit_lines(self))

    def _repr_html_(self) -> str:
        from timediff.report.notebook import audit_html

        return audit_html(self)

    def write(self, path: str | Path) -> None:
        """Writes the folder: audit.json, audit.html."""
        from timediff.report.audit_page import write_audit_page

        with new_folder(Path(path)) as folder:
            (folder / "audit.json").write_text(self.to_json(), encoding="utf-8")
            write_manifest(folder, "audit")
            write_audit_page(folder / "audit.html", self)

    def to_json(self) -> str:
        return json.dumps(self.table(), indent=1, ensure_ascii=False)

    def table(self) -> dict[str, Any]:
        """What audit.json holds."""
        from timediff.evaluation.results import write_score

        return {
            "format": FORMAT,
            "settings": dict(self.settings),
            "facts": dict(self.facts),
            "notes": list(self.notes),
            "scores": [write_score(score) for score in self.scores],
            "power": [asdict(one) for one in self.power],
        }

    @staticmethod
    def read(path: str | Path, *, allow_edited: bool = False) -> "Audit":
        """What `write` wrote; an edited audit is refused unless it is allowed."""
        file = Path(path) / "audit.json"
        if not file.is_file():
            raise TimeDiffError(f"{path} holds no audit: expected the folder that timediff audit wrote.")
        manifest = read_manifest(Path(path))
        if not allow_edited and manifest and (found := differences(Path(path), manifest)):
            raise TimeDiffError(
                f"the audit {path} was edited or damaged since it was written ({found}): restore it, or audit again."
            )
        return Audit.of(read_json(file, finite=False), str(file))

    @staticmethod
    def of(table: Any, where: str) -> "Audit":
        """What `table` gave."""
        from timediff.evaluation.results import read_score

        if not isinstance(table, dict) or table.get("format") != FORMAT:
            raise Unreadable(f"{where} is not what an audit of format {FORMAT} writes.")
        stored = restored(StoredAudit, {key: value for key, value in table.items() if key != "format"}, where)
        scores = [read_score(score, where) for score in stored.scores]
        return Audit(scores, stored.power, stored.settings, stored.facts, stored.notes)


def audits_of(audits: Sequence[Audit], train: Cohort, cohorts: Mapping[str, Sequence[Cohort]]) -> dict[str, Audit]:
    """The audit of each synthetic cohort, found by hashes; an audit of other stays is refused."""
    hashes = {name: hash_of(several[0]) for name, several in cohorts.items() if len(several) == 1} if audits else {}
    found: dict[str, Audit] = {}
    for one in audits:
        if one.facts.get(TRAINED) != hash_of(train):
            raise TimeDiffError(
                "the audit is of another training cohort: its hash of the training stays is another one. Give the "
                "audit of this TRAIN, with the same --horizon."
            )
        if ATTACKED not in one.facts:
            raise TimeDiffError("the audit attacked no synthetic cohort: audit this one, with --synthetic SYN.")
        own = [name for name, known in hashes.items() if known == one.facts[ATTACKED] and name not in found]
        if not own:
            raise TimeDiffError(
                "the audit is of no synthetic cohort that is evaluated here: its hash of the synthetic stays is none "
                "of theirs. Give the audit of this cohort, with the same --horizon; where several cohorts have one "
                "name, none can be given."
            )
        found |= dict.fromkeys(own, one)
    return found


def hash_of(cohort: Cohort) -> str:
    return cohort.digest()[:16]


@dataclass(frozen=True)
class StoredAudit:
    """audit.json."""

    settings: dict[str, Any]
    facts: dict[str, str]
    scores: list[dict[str, Any]]
    power: list[Power]
    notes: list[str] = field(default_factory=list)
