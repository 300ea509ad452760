"""Results: what an evaluation found, ⇄ a folder. results.json has every number and every setting that made it."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from timediff.errors import TimeDiffError
from timediff.evaluation.figure_data import FigureData
from timediff.evaluation.score import Score
from timediff.runtime.files import new_folder

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

    def write(self, path: str | Path) -> None:
        """Writes the folder: results.json, scores.csv, figures/, report.html."""
        with new_folder(Path(path)) as folder:
            (folder / "results.json").write_text(self.to_json())
            (folder / "scores.csv").write_text(self.to_csv())
            (folder / "figures").mkdir()
            for figure in self.figures:
                (folder / "figures" / f"{figure.name}.json").write_text(json.dumps(figure.to_json()))
            self.report(folder / "report.html")

    def report(self, path: str | Path) -> None:
        """Writes the report, one HTML file. This is all that evaluation knows of `timediff.report`."""
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
        return json.dumps(table, indent=1, ensure_ascii=False)

    def to_csv(self) -> str:
        """One row a score."""
        text = io.StringIO()
        names = [f.name for f in fields(Score) if f.name != "std"]
        writer = csv.writer(text)
        writer.writerow(["generator", *(STORED.get(name, name) for name in names), "spread_judge", "spread_cohort"])
        for generator in self.generators:
            for score in self.scores[generator]:
                row = [getattr(score, name) for name in names]
                std = [score.std.get(what, "") for what in ("classifier", "cohort")]
                writer.writerow([generator, *("" if _nothing(v) else v for v in row), *std])
        return text.getvalue()

    @staticmethod
    def read(path: str | Path) -> "Results":
        folder = Path(path)
        file = folder / "results.json"
        if not file.is_file():
            raise TimeDiffError(f"{folder} holds no results: expected the folder that timediff evaluate wrote.")
        try:
            table = json.loads(file.read_text())
            if table["format"] != FORMAT:
                raise TimeDiffError(f"{file} has format {table['format']}; this version reads {FORMAT}.")
            found = {entry["name"]: [read_score(score) for score in entry["scores"]] for entry in table["generators"]}
            files = sorted((folder / "figures").glob("*.json"))
            figures = [FigureData.from_json(json.loads(p.read_text())) for p in files]
            return Results(tuple(found), found, table["settings"], table["facts"], table["warnings"], figures)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TimeDiffError(
                f"{file} is not what an evaluation writes ({type(error).__name__}: {error})."
            ) from error


def write_score(score: Score) -> dict[str, Any]:
    """A score as JSON has it: no number is null, and what is not set is left out."""
    std = {STORED.get(what, what): value for what, value in score.std.items()}
    table = {STORED.get(name, name): value for name, value in (asdict(score) | {"std": std}).items()}
    return {name: value for name, value in table.items() if not _nothing(value)} | {
        "value": None if math.isnan(score.value) else score.value
    }


def read_score(table: Mapping[str, Any]) -> Score:
    names = {stored: name for name, stored in STORED.items()}
    known = {names.get(name, name): value for name, value in table.items()}
    if "std" in known:
        known["std"] = {names.get(what, what): value for what, value in known["std"].items()}
    return Score(**known | {"value": math.nan if table["value"] is None else table["value"]})


def _nothing(value: Any) -> bool:
    return value is None or value == "" or value == {} or (isinstance(value, float) and math.isnan(value))
