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

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Relation, Schema, Split
from timediff.errors import TimeDiffError
from timediff.runtime.progress import Progress, silent
from timediff.sources.base import Source, bundled, local
from timediff.sources.engines import Files, connect_files
from timediff.sources.extraction import (
    Extraction,
    any_measured,
    apply,
    columns,
    fingerprint,
    lengths_of,
    on_grid,
    within_stays,
)
from timediff.sources.grid import Rule, step_seconds, to_steps
from timediff.sources.physionet_files import exact, read, read_parquet, read_texts, require_numbers
from timediff.sources.setting_checks import MOST_HOURS, CheckedSettings, beyond, grid_problems, schema_problems
from timediff.sources.variables import Limits

HOUR, SEPSIS = "ICULOS", "SepsisLabel"
DESCRIPTORS = ("Age", "Gender")
LAYOUT = "one p000001.psv a patient, or a .parquet file with patient_id and the challenge's columns"


@dataclass(frozen=True)
class PhysioNet2019Variable:
    name: str  # of a column
    unit: str | None = None
    bounds: tuple[float, float] | None = None  # what lies outside does not count

    @property
    def limits(self) -> Limits:
        low, high = self.bounds or (None, None)
        return Limits(at_least=low, at_most=high)


@dataclass(frozen=True)
class PhysioNet2019Settings(CheckedSettings):
    step: str  # whole hours, such as "1h"
    steps: int  # counted from the first row
    hours: int  # a stay has at least so many rows
    variable: tuple[PhysioNet2019Variable, ...]
    rule: Rule = "last"  # rows are an hour apart, so it matters only for longer steps
    test: float = 0.25
    relation: tuple[Relation, ...] = ()  # what holds between variables, such as systolic ≥ mean pressure

    @property
    def schema(self) -> Schema:
        static = (
            Feature("Age", "continuous", "static", unit="years"),
            Feature("Gender", "binary", "static"),  # 0 = female, 1 = male
            Feature("sepsis", "binary", "static", role="label"),
        )
        temporal = (Feature(v.name, "continuous", unit=v.unit, bounds=self._bounds(v)) for v in self.variable)
        return Schema((*temporal, *static), self.steps, self.step, Split(self.test, "sepsis"), self.relation)

    @property
    def width(self) -> int:
        """Hours of a step."""
        return step_seconds(self.step) // 3600

    def problems(self) -> list[str]:
        found = grid_problems(self.step, self.steps, self.variable) + beyond({"hours": self.hours}, 0, MOST_HOURS)
        taken = (HOUR, SEPSIS, "stay_id", "patient_id")
        found += [f"variable {v.name!r}: that column is no vital sign" for v in self.variable if v.name in taken]
        if not found:
            found += schema_problems(lambda: self.schema)
        if not found and step_seconds(self.step) % 3600:
            found.append(f"step is {self.step!r}; the challenge has hourly rows: expected whole hours, such as 1h")
        return found

    def _bounds(self, variable: PhysioNet2019Variable) -> tuple[float, float] | None:
        return None if self.rule == "sum" else variable.bounds


class PhysioNet2019(Source[PhysioNet2019Settings]):
    settings = PhysioNet2019Settings
    defaults = bundled("physionet2019")

    def extract(self, source: str, settings: PhysioNet2019Settings, progress: Progress = silent) -> Extraction:
        path = local(source)
        files = find(path)
        names = [v.name for v in settings.variable]
        places = {f"value_{i}": v for i, v in enumerate(settings.variable)}  # a column may be called hour
        with connect_files(path, files, progress) as engine:
            rows = _rows(files, [*names, *DESCRIPTORS, HOUR, SEPSIS], engine)
            label = rows[SEPSIS] == 1
            stays = rows.group_by("stay_id").agg(
                first=rows[HOUR].min(),
                last=rows[HOUR].max(),
                rows=rows.count(),
                labelled=rows[SEPSIS].notnull().any().cast("int64"),
                sepsis=label.any().fill_null(False).cast("float64"),
                Age=rows.Age.max(where=rows.Age >= 0),
                Gender=rows.Gender.max(where=rows.Gender.isin([0, 1])),
            )
            everyone = columns(stays.order_by("stay_id"))
            timed = rows.join(stays.select("stay_id", "first"), "stay_id")
            timed = timed.select(
                "stay_id",
                hour=timed[HOUR] - timed["first"],
                **{place: v.limits.within(timed[v.name]) for place, v in places.items()},
            )
            found = columns(
                to_steps(timed, ["stay_id"], list(places), "hour", settings.width, settings.steps, settings.rule)
            )
            version = engine.version()

        stay_id: Array = everyone["stay_id"]
        series = {v.name: on_grid(stay_id, settings.steps, found, found[place]) for place, v in places.items()}
        length = None
        if settings.hours < settings.steps * settings.width:  # else no record may end within the grid
            hours = everyone["last"] - everyone["first"] + 1  # a row is the hour that it begins
            series, length = within_stays(series, hours.astype(np.float64), settings.width)
        rules = {
            f"a record of at least {settings.hours} h": everyone["rows"] >= settings.hours,
            "a known outcome": everyone["labelled"].astype(bool),
            "at least one measurement": any_measured(series),
        }
        kept, dropped = apply(rules)
        static = {name: everyone[name][kept].astype(np.float64) for name in (*DESCRIPTORS, "sepsis")}
        series = {name: values[kept] for name, values in series.items()}
        cohort = Cohort(settings.schema, stay_id[kept], series, static, lengths_of(length, kept, settings.steps))
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


def _rows(files: list[Path], names: list[str], engine: Files) -> Any:
    """A row a patient and hour: stay_id and the columns `names`."""
    if files[0].suffix == ".psv":
        if len({path.name for path in files}) < len(files):
            raise TimeDiffError(f"{files[0].parent}: a patient is there twice; give the folder of one copy.")
        text = read_texts([read(path) for path in files], dict.fromkeys(names, pa.float64()), "|")
        table = engine.put({name: text[name] for name in text.column_names}, "patients")
        return table.mutate(**{HOUR: table[HOUR].cast("int64")})
    parts = []
    for number, path in enumerate(files):
        require_numbers(path, dict.fromkeys(["patient_id", *names], True))
        table = read_parquet(engine, path, f"patients_{number}")
        values = {name: exact(table[name]) for name in names if name != HOUR}
        parts.append(
            table.select(stay_id=table.patient_id.cast("int64"), **{HOUR: table[HOUR].cast("int64")}, **values)
        )
    return parts[0] if len(parts) == 1 else ibis.union(*parts)
