"""Results: what an evaluation found, ⇄ a folder. results.json has every number and every setting that made it."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timediff.errors import TimeDiffError
from timediff.evaluation.figure_data import FigureData
from timediff.evaluation.score import Score
from timediff.evaluation.trainings import Training
from timediff.runtime.files import new_folder
from timediff.runtime.manifest import differences, read_manifest, write_manifest
from timediff.runtime.parsing import Unreadable, read_json
from timediff.runtime.progress import Say, unheard
from timediff.runtime.stored import restored

if TYPE_CHECKING:
    from timediff.evaluation.audit_results import Audit

FORMAT = 1
# On disk a score has the names that version 0.1.0 gave its parts.
STORED = {"classifier": "judge", "std": "spreads"}


@dataclass(frozen=True)
class Results:
    generators: tuple[str, ...]  # names of what was evaluated, in the order given
    scores: Mapping[str, Sequence[Score]]  # by generator
    settings: Mapping[str, Any]  # protocol, seed, repetitions, …: what to give again for the same numbers
    facts: Mapping[str, str]  # stays of each cohort, their digests, version, hardware, date, duration
    warnings: Sequence[str] = ()  # what must be read before anything else
    figures: Sequence[FigureData] = field(default=())
    trainings: Sequence[Training] = field(default=())  # of a comparison: how long each took, and which failed
    audits: Mapping[str, "Audit"] = field(default_factory=dict)  # by generator, where one was given

    def __repr__(self) -> str:
        """The verdicts, and no number of a single stay."""
        from timediff.report.notebook import results_lines

        return "\n  ".join(results_lines(self))

    def _repr_html_(self) -> str:
        from timediff.report.notebook import results_html

        return results_html(self)

    def write(self, path: str | Path) -> None:
        """Writes the folder: results.json, scores.csv, figures/, report.html."""
        with new_folder(Path(path)) as folder:
            (folder / "results.json").write_text(self.to_json(), encoding="utf-8")
            (folder / "scores.csv").write_text(self.to_csv(), encoding="utf-8")
            (folder / "figures").mkdir()
            for figure in self.figures:
                (folder / "figures" / f"{figure.name}.json").write_text(json.dumps(figure.to_json()))
            write_manifest(folder, "results")
            self.report(folder / "report.html")

    def report(self, path: str | Path) -> None:
        """Writes the report, one HTML file. Evaluation knows no more of `timediff.report` than how results look."""
        from timediff.report.evaluation_page import write_report

        write_report(Path(path), self)

    def to_json(self) -> str:
        table = {
            "format": FORMAT,
            "settings": dict(self.settings),
            "facts": dict(self.facts),
            "warnings": list(self.warnings),
            "generators": [
                {"name": name, "scores": [write_score(score) for score in self.scores[name]]}
                for name in self.generators
            ],
        }
        if self.trainings:
            table["trainings"] = [_without_nan(asdict(training)) for training in self.trainings]
        if self.audits:
            table["audits"] = {name: audit.table() for name, audit in self.audits.items()}
        return json.dumps(table, indent=1, ensure_ascii=False)

    def to_csv(self) -> str:
        """One row a score."""
        return scores_csv({name: self.scores[name] for name in self.generators})

    @staticmethod
    def read(path: str | Path, *, allow_edited: bool = False, say: Say = unheard) -> "Results":
        """What `write` wrote; edited results are refused unless they are allowed, and then it is said."""
        folder = Path(path)
        file = folder / "results.json"
        if not file.is_file():
            raise TimeDiffError(f"{folder} holds no results: expected the folder that timediff evaluate wrote.")
        manifest = read_manifest(folder)  # none of 0.1.0
        found = differences(folder, manifest) if manifest else None
        if found and not allow_edited:
            raise TimeDiffError(
                f"the results {folder} were edited or damaged since they were written ({found}): restore them, "
                "evaluate again, or add --allow-edited to use them as they are."
            )
        if found:
            say(f"{folder} is not as it was written ({found})")
        table = read_json(file, finite=False)  # a number that is not known may be NaN
        if not isinstance(table, dict) or "format" not in table:
            raise Unreadable(f"{file} is not what an evaluation writes: it has no format.")
        if table["format"] != FORMAT:
            raise TimeDiffError(f"{file} has format {str(table['format'])[:40]}; this version reads {FORMAT}.")
        stored = restored(StoredResults, {key: value for key, value in table.items() if key != "format"}, str(file))
        figures = [FigureData.from_json(read_json(p), str(p)) for p in sorted((folder / "figures").glob("*.json"))]
        scores = {
            one.name: [read_score(score, f"{file}, {one.name}") for score in one.scores] for one in stored.generators
        }
        return Results(
            tuple(scores), scores, stored.settings, stored.facts, stored.warnings, figures, stored.trainings,
            _audits(stored.audits, str(file)),
        )  # fmt: skip


@dataclass(frozen=True)
class StoredScores:
    """The scores of one generator, as results.json has them."""

    name: str
    scores: list[dict[str, Any]]


@dataclass(frozen=True)
class StoredResults:
    """results.json."""

    settings: dict[str, Any]
    facts: dict[str, str]
    generators: list[StoredScores]
    warnings: list[str] = field(default_factory=list)
    trainings: list[Training] = field(default_factory=list)
    audits: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [one.name for one in self.generators]
        if len(set(names)) < len(names):
            raise ValueError("two generators have the same name")


def scores_csv(scores: Mapping[str, Sequence[Score]]) -> str:
    """One row a score, generator after generator."""
    text = io.StringIO()
    names = [f.name for f in fields(Score) if f.name != "std"]
    writer = csv.writer(text)
    writer.writerow(["generator", *(STORED.get(name, name) for name in names), "spread_judge", "spread_cohort"])
    for generator, known in scores.items():
        for score in known:
            row = [getattr(score, name) for name in names]
            std = [score.std.get(what, "") for what in ("classifier", "cohort")]
            writer.writerow([generator, *("" if _nothing(v) else v for v in row), *std])
    return text.getvalue()


def write_score(score: Score) -> dict[str, Any]:
    """A score as JSON has it: no number is null, and what is not set is left out."""
    std = {STORED.get(what, what): value for what, value in score.std.items()}
    table = {STORED.get(name, name): value for name, value in (asdict(score) | {"std": std}).items()}
    return {name: value for name, value in table.items() if not _nothing(value)} | {
        "value": None if math.isnan(score.value) else score.value
    }


def read_score(table: Mapping[str, Any], where: str) -> Score:
    names = {stored: name for name, stored in STORED.items()}
    known = {names.get(name, name): value for name, value in table.items()}
    if isinstance(known.get("std"), dict):
        known["std"] = {names.get(what, what): value for what, value in known["std"].items()}
    if "value" in known and known["value"] is None:
        known["value"] = math.nan
    return restored(Score, known, where)


def _audits(stored: Mapping[str, Any], where: str) -> dict[str, "Audit"]:
    if not stored:
        return {}
    from timediff.evaluation.audit_results import Audit

    return {name: Audit.of(table, f"{where}, the audit of {name}") for name, table in stored.items()}


def _without_nan(table: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in table.items() if not (isinstance(value, float) and math.isnan(value))}


def _nothing(value: Any) -> bool:
    return value is None or value == "" or value == {} or (isinstance(value, float) and math.isnan(value))
