"""Results: a line a number, the paper's beside ours, or why there is none. results.json and rows.csv."""

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from timediff.evaluation.figure_data import FigureData

FORMAT = 1


@dataclass(frozen=True)
class Line:
    """One number of one experiment. NaN = there is none; `hole` says why ours is not there."""

    experiment: str
    place: str  # of the paper's number
    dataset: str
    stands_in_for: str  # the paper's data set, where ours is not that one
    method: str
    metric: str
    arm: str = ""
    classifier: str = ""
    published: float = math.nan
    published_std: float = math.nan
    value: float = math.nan
    std: Mapping[str, float] = field(default_factory=dict)  # by what varied: classifier, cohort
    n: int = 0  # stays it was measured on
    training_stays: int | None = None
    seeds: tuple[int, ...] = ()
    repetitions: int | None = None
    updates: int | None = None
    full_updates: int | None = None  # of the preset
    fit_seconds: float = math.nan  # the mean over seeds
    seconds: float = math.nan  # of measuring
    hardware: str = ""
    note: str = ""
    hole: str = ""
    failed: bool = False  # the hole is a failure, and not something that was left out


@dataclass(frozen=True)
class Drawn:
    """A figure, and what it is of."""

    experiment: str
    dataset: str
    method: str
    figure: FigureData


@dataclass(frozen=True)
class Described:
    """An experiment, in words."""

    name: str
    title: str
    place: str
    differs: str


@dataclass(frozen=True)
class UsedDataSet:
    """A data set as it was used."""

    name: str
    title: str
    paper: str
    stands_in: str  # what it is instead of the paper's; empty: it is the paper's own
    stays: int | None
    hole: str = ""


@dataclass(frozen=True)
class Reproduction:
    experiments: Sequence[Described]
    datasets: Sequence[UsedDataSet]
    lines: Sequence[Line]
    figures: Sequence[Drawn]
    cuts: Sequence[str]  # what the budget has cut, in words
    facts: Mapping[str, str]
    seconds: float = 0.0

    @property
    def failures(self) -> list[Line]:
        return [line for line in self.lines if line.failed]

    def to_json(self) -> str:
        table = {
            "format": FORMAT,
            "facts": dict(self.facts),
            "cuts": list(self.cuts),
            "experiments": [asdict(one) for one in self.experiments],
            "datasets": [asdict(one) for one in self.datasets],
            "rows": [_plain(asdict(line)) for line in self.lines],
            "seconds": round(self.seconds),
        }
        return json.dumps(table, indent=1, ensure_ascii=False)

    def to_csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text)
        names = [f.name for f in fields(Line) if f.name != "std"]
        writer.writerow([*names, "std_classifier", "std_cohort"])
        for line in self.lines:
            cells = [_cell(getattr(line, name)) for name in names]
            writer.writerow([*cells, *(_cell(line.std.get(what, "")) for what in ("classifier", "cohort"))])
        return text.getvalue()


def _plain(table: dict[str, Any]) -> dict[str, Any]:
    """Without what is not known."""
    return {key: value for key, value in table.items() if not _nothing(value)}


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        return " ".join(map(str, value))
    return "" if _nothing(value) else value


def _nothing(value: Any) -> bool:
    return value is None or value in ("", (), {}) or value is False or (isinstance(value, float) and math.isnan(value))
