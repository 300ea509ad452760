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
from timediff.files import new_folder
from timediff.metrics.record import Score

FORMAT = 1


@dataclass(frozen=True)
class Picture:
    """A figure as Plotly's JSON: aggregates of real stays, single stays only of synthetic ones."""

    name: str  # of its file
    section: str  # "trajectories", "stays", "missingness", "distributions", "embeddings"
    title: str
    figure: dict[str, Any]
    feature: str | None = None
    generator: str | None = None


@dataclass(frozen=True)
class Results:
    generators: tuple[str, ...]  # names of what was judged, in the order given
    scores: Mapping[str, Sequence[Score]]  # by generator
    settings: Mapping[str, Any]  # protocol, seed, repetitions, …: what to give again for the same numbers
    facts: Mapping[str, str]  # stays of each cohort, their digests, version, hardware, date, duration
    warnings: Sequence[str] = ()  # what must be read before anything else
    pictures: Sequence[Picture] = field(default=())

    def write(self, path: str | Path) -> None:
        """Writes the folder: results.json, scores.csv, figures/, report.html."""
        with new_folder(Path(path)) as folder:
            (folder / "results.json").write_text(self.to_json())
            (folder / "scores.csv").write_text(self.to_csv())
            (folder / "figures").mkdir()
            for picture in self.pictures:
                (folder / "figures" / f"{picture.name}.json").write_text(json.dumps(asdict(picture)))
            self.report(folder / "report.html")

    def report(self, path: str | Path) -> None:
        """Writes the report, one HTML file."""
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
        names = [f.name for f in fields(Score) if f.name != "spreads"]
        writer = csv.writer(text)
        writer.writerow(["generator", *names, "spread_judge", "spread_cohort"])
        for generator in self.generators:
            for score in self.scores[generator]:
                row = [getattr(score, name) for name in names]
                spread = [score.spreads.get(what, "") for what in ("judge", "cohort")]
                writer.writerow([generator, *("" if _nothing(v) else v for v in row), *spread])
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
            pictures = [Picture(**json.loads(p.read_text())) for p in sorted((folder / "figures").glob("*.json"))]
            return Results(tuple(found), found, table["settings"], table["facts"], table["warnings"], pictures)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TimeDiffError(
                f"{file} is not what an evaluation writes ({type(error).__name__}: {error})."
            ) from error


def write_score(score: Score) -> dict[str, Any]:
    """A score as JSON has it: no number is null, and what is not set is left out."""
    return {name: value for name, value in asdict(score).items() if not _nothing(value)} | {
        "value": None if math.isnan(score.value) else score.value
    }


def read_score(table: Mapping[str, Any]) -> Score:
    return Score(**{**table, "value": math.nan if table["value"] is None else table["value"]})


def _nothing(value: Any) -> bool:
    return value is None or value == "" or value == {} or (isinstance(value, float) and math.isnan(value))
