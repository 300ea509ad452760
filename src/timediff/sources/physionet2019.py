"""PhysioNet/Computing in Cardiology Challenge 2019 (Reyna et al. 2020): hourly vital signs, and sepsis.

Read as distributed (one `p000001.psv` a patient) or as one Parquet file with the patient's number in `patient_id`.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from timediff.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.progress import Progress, silent
from timediff.schema import Feature, Schema, Split
from timediff.sources.chart import width_of
from timediff.sources.extraction import Extraction, apply, columns, gridded
from timediff.sources.grid import Rule, cells
from timediff.sources.registry import Source
from timediff.sources.texts import exact, fingerprint, in_process, read, read_texts, require_numbers
from timediff.tables import Array

HOUR, SEPSIS = "ICULOS", "SepsisLabel"
DESCRIPTORS = ("Age", "Gender")
LAYOUT = "one p000001.psv a patient, or a .parquet file with patient_id and the challenge's columns"


@dataclass(frozen=True)
class Variable:
    name: str  # of a column
    unit: str | None = None
    bounds: tuple[float, float] | None = None  # what lies outside does not count


@dataclass(frozen=True)
class Settings:
    step: str  # whole hours, such as "1h"
    steps: int  # counted from the first row
    hours: int  # a stay has at least so many rows
    variable: tuple[Variable, ...]
    rule: Rule = "last"  # rows are an hour apart, so it matters only for longer steps
    test: float = 0.25

    @property
    def schema(self) -> Schema:
        static = (
            Feature("Age", "continuous", "static", unit="years"),
            Feature("Gender", "binary", "static"),  # 0 = female, 1 = male
            Feature("sepsis", "binary", "static", role="label"),
        )
        temporal = (Feature(v.name, "continuous", unit=v.unit, bounds=self._bounds(v)) for v in self.variable)
        return Schema((*temporal, *static), self.steps, self.step, Split(self.test, "sepsis"))

    @property
    def width(self) -> int:
        """Hours of a step."""
        width = width_of(self.step)
        if width < 3600 or width % 3600:
            raise TimeDiffError(
                f"step is {self.step!r}; the challenge has hourly rows: expected whole hours, such as 1h."
            )
        return width // 3600

    def _bounds(self, variable: Variable) -> tuple[float, float] | None:
        return None if self.rule == "sum" else variable.bounds


def extract(source: str, settings: Settings, progress: Progress = silent) -> Extraction:
    files = find(Path(source))
    names = [v.name for v in settings.variable]
    with in_process() as backend:
        rows = _rows(files, [*names, *DESCRIPTORS, HOUR, SEPSIS], backend)
        label = rows[SEPSIS] == 1
        stays = rows.group_by("stay_id").agg(
            first=rows[HOUR].min(),
            rows=rows.count(),
            told=rows[SEPSIS].notnull().any().cast("int64"),
            sepsis=label.any().fill_null(False).cast("float64"),
            Age=rows.Age.max(where=rows.Age >= 0),
            Gender=rows.Gender.max(where=rows.Gender.isin([0, 1])),
        )
        everyone = columns(stays.order_by("stay_id"))
        timed = rows.join(stays.select("stay_id", "first"), "stay_id")
        timed = timed.mutate(
            hour=timed[HOUR] - timed["first"], **{v.name: _counted(timed, v) for v in settings.variable}
        )
        found = columns(cells(timed, ["stay_id"], names, "hour", settings.width, settings.steps, settings.rule))
        version = f"DuckDB {backend.version}"

    stay_id: Array = everyone["stay_id"]
    series = gridded(settings.schema, stay_id, found, set())
    rules = {
        f"a record of at least {settings.hours} h": everyone["rows"] >= settings.hours,
        "a known outcome": everyone["told"].astype(bool),
        "at least one measurement": np.any([~np.isnan(v).all(axis=1) for v in series.values()], axis=0),
    }
    kept, dropped = apply(rules)
    static = {name: everyone[name][kept].astype(np.float64) for name in (*DESCRIPTORS, "sepsis")}
    cohort = Cohort(settings.schema, stay_id[kept], {name: values[kept] for name, values in series.items()}, static)
    facts = {"engine": version, "source_sha256": fingerprint(read(path) for path in files)}
    return Extraction(cohort, len(stay_id), dropped, facts)


def find(path: Path) -> list[Path]:
    """The .psv files of all patients, or the Parquet files, in the folder or below it."""
    if path.is_file() and path.suffix in (".psv", ".parquet"):
        return [path]
    if path.is_dir():
        for pattern, suffix in ((r"p\d+\.psv", "psv"), (r".+\.parquet", "parquet")):
            if found := sorted(p for p in path.rglob(f"*.{suffix}") if re.fullmatch(pattern, p.name)):
                return found
    raise TimeDiffError(f"{path} is no data of the 2019 challenge; expected {LAYOUT}.")


def _rows(files: list[Path], names: list[str], backend: Any) -> Any:
    """A row a patient and hour: stay_id and the columns `names`."""
    if files[0].suffix == ".psv":
        if len({path.name for path in files}) < len(files):
            raise TimeDiffError(f"{files[0].parent}: a patient is there twice; give the folder of one copy.")
        text = read_texts([read(path) for path in files], dict.fromkeys(names, pa.float64()), "|")
        table = backend.create_table("patients", text, temp=True)
        return table.mutate(**{HOUR: table[HOUR].cast("int64")})
    parts = []
    for path in files:
        require_numbers(path, dict.fromkeys(["patient_id", *names], True))
        table = backend.read_parquet(path)
        values = {name: exact(table[name]) for name in names if name != HOUR}
        parts.append(
            table.select(stay_id=table.patient_id.cast("int64"), **{HOUR: table[HOUR].cast("int64")}, **values)
        )
    return parts[0] if len(parts) == 1 else ibis.union(*parts)


def _counted(rows: Any, variable: Variable) -> Any:
    column = rows[variable.name]
    return column if variable.bounds is None else ibis.cases((column.between(*variable.bounds), column))


PHYSIONET2019 = Source(Settings, extract)
