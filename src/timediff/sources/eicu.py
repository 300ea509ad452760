"""eICU (Collaborative Research Database 2.0): monitor values of vitalPeriodic, at minutes from the unit's admission."""

import functools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from timediff.data.cohort import Cohort
from timediff.data.schema import Relation, Schema
from timediff.runtime.progress import Progress, silent
from timediff.sources.base import Source, bundled
from timediff.sources.engines import Engine, Table, connect
from timediff.sources.extraction import Extraction, apply, columns, on_grid, require_ids
from timediff.sources.grid import Rule, step_seconds, to_steps
from timediff.sources.setting_checks import MOST_HOURS, CheckedSettings, beyond, grid_problems, schema_problems
from timediff.sources.variables import Limits, VitalSign, schema_of

PATIENT = Table(
    "patient",
    {
        "patientunitstayid": "int64",
        "uniquepid": "string",
        "unitdischargeoffset": "int64",
        "hospitaldischargestatus": "string",
    },
    "eicu_crd",
)


@dataclass(frozen=True, kw_only=True)
class EICUVariable(VitalSign, Limits):
    """A column of vitalPeriodic."""

    column: str


@dataclass(frozen=True)
class EICUSettings(CheckedSettings):
    step: str  # of the grid, such as "5min"
    steps: int
    start_minutes: int  # from admission to the unit to the grid's origin
    hours: float  # a stay lasts at least so long
    variable: tuple[EICUVariable, ...]
    rule: Rule = "last"
    test: float = 0.25
    relation: tuple[Relation, ...] = ()  # what holds between variables, such as systolic ≥ mean pressure

    @property
    def schema(self) -> Schema:
        return schema_of(self.variable, self.steps, self.step, self.test, self.relation)

    def problems(self) -> list[str]:
        found = grid_problems(self.step, self.steps, self.variable) + beyond({"hours": self.hours}, 0, MOST_HOURS)
        minutes = int(MOST_HOURS) * 60
        found += beyond({"start_minutes": self.start_minutes}, -minutes, minutes)
        taken = ("patientunitstayid", "observationoffset")
        found += [f"variable {v.name!r}: its column cannot be {v.column!r}" for v in self.variable if v.column in taken]
        return found or schema_problems(lambda: self.schema)

    @property
    def vitals(self) -> Table:
        known = {"patientunitstayid": "int64", "observationoffset": "int64"}
        return Table("vitalPeriodic", known | {v.column: "float64" for v in self.variable}, "eicu_crd")


def extract(engine: Engine, settings: EICUSettings) -> Extraction:
    patient, vitals = engine.tables([PATIENT, settings.vitals])
    stays = _stays(patient, settings)
    everyone = columns(stays.order_by("stay_id"))
    require_ids(everyone, PATIENT.name)
    names = [f"value_{i}" for i in range(len(settings.variable))]  # a variable may be called time
    measured, width = _measured(vitals, stays, settings), step_seconds(settings.step)
    found = columns(to_steps(measured, ["stay_id"], names, "time", width, settings.steps, settings.rule))

    stay_id, status = everyone["stay_id"], everyone["status"]
    rules = {
        f"unit stay of at least {settings.hours:g} h": everyone["long_enough"].astype(bool),
        "a known outcome": status != "",
        "at least one measurement": np.isin(stay_id, found["stay_id"]),
    }
    kept, dropped = apply(rules)
    series = {
        variable.name: on_grid(stay_id[kept], settings.steps, found, found[name])
        for name, variable in zip(names, settings.variable, strict=True)
    }
    static = {"patient": everyone["patient"][kept], "died": (status[kept] == "Expired").astype(np.float64)}
    return Extraction(Cohort(settings.schema, stay_id[kept], series, static), len(stay_id), dropped, engine.facts())


def _stays(patient: Any, settings: EICUSettings) -> Any:
    """A row a unit stay: stay_id, patient, long_enough, status ("" = not known)."""
    return patient.select(
        stay_id=patient.patientunitstayid,
        patient=patient.uniquepid,
        long_enough=(patient.unitdischargeoffset >= settings.hours * 60).fill_null(False),
        status=patient.hospitaldischargestatus.fill_null(""),
    )


def _measured(vitals: Any, stays: Any, settings: EICUSettings) -> Any:
    """A row an observation on the grid of a stay that the rules keep: stay_id, time in seconds, a column a variable."""
    values = {f"value_{i}": v.within(vitals[v.column]) for i, v in enumerate(settings.variable)}
    time = (vitals.observationoffset - settings.start_minutes) * 60
    rows = vitals.select(stay_id=vitals.patientunitstayid, time=time, **values)
    something = functools.reduce(operator.or_, (rows[name].notnull() for name in values))
    inside = rows.filter(rows.time >= 0, rows.time < step_seconds(settings.step) * settings.steps, something)
    wanted = stays.filter(stays.long_enough, stays.status != "")
    return inside.join(wanted.select("stay_id"), "stay_id")


class EICU(Source[EICUSettings]):
    settings = EICUSettings
    defaults = bundled("eicu")

    def extract(self, source: str, settings: EICUSettings, progress: Progress = silent) -> Extraction:
        with connect(source, progress) as engine:
            return extract(engine, settings)
