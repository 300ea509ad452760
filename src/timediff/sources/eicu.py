"""eICU (Collaborative Research Database 2.0): monitor values of vitalPeriodic, at minutes from the unit's admission."""

import functools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from timediff.cohort import Cohort
from timediff.progress import Progress, silent
from timediff.schema import Schema
from timediff.sources.chart import width_of
from timediff.sources.engines import Engine, Table, connect
from timediff.sources.extraction import Extraction, apply, columns, gridded
from timediff.sources.grid import Rule, cells
from timediff.sources.registry import Source
from timediff.sources.variables import Limits, Variable, schema_of

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
class Column(Variable, Limits):
    """A column of vitalPeriodic."""

    column: str


@dataclass(frozen=True)
class EicuSettings:
    step: str  # of the grid, such as "5min"
    steps: int
    start_minutes: int  # from admission to the unit to the grid's origin
    hours: float  # a stay lasts at least so long
    variable: tuple[Column, ...]
    rule: Rule = "last"
    test: float = 0.25

    @property
    def schema(self) -> Schema:
        return schema_of(self.variable, self.steps, self.step, self.test)

    @property
    def vitals(self) -> Table:
        known = {"patientunitstayid": "int64", "observationoffset": "int64"}
        return Table("vitalPeriodic", known | {v.column: "float64" for v in self.variable}, "eicu_crd")


def extract(engine: Engine, settings: EicuSettings) -> Extraction:
    patient, vitals = engine.tables([PATIENT, settings.vitals])
    stays = _stays(patient, settings)
    everyone = columns(stays.order_by("stay_id"))
    names = [variable.name for variable in settings.variable]
    measured, width = _measured(vitals, stays, settings), width_of(settings.step)
    found = columns(cells(measured, ["stay_id"], names, "time", width, settings.steps, settings.rule))

    stay_id, status = everyone["stay_id"], everyone["status"]
    rules = {
        f"unit stay of at least {settings.hours:g} h": everyone["long_enough"].astype(bool),
        "a known outcome": status != "",
        "at least one measurement": np.isin(stay_id, found["stay_id"]),
    }
    kept, dropped = apply(rules)
    series = gridded(settings.schema, stay_id[kept], found, rounded=set())
    static = {"patient": everyone["patient"][kept], "died": (status[kept] == "Expired").astype(np.float64)}
    return Extraction(Cohort(settings.schema, stay_id[kept], series, static), len(stay_id), dropped, engine.facts())


def _stays(patient: Any, settings: EicuSettings) -> Any:
    """A row a unit stay: stay_id, patient, long_enough, status ("" = not known)."""
    return patient.select(
        stay_id=patient.patientunitstayid,
        patient=patient.uniquepid,
        long_enough=(patient.unitdischargeoffset >= settings.hours * 60).fill_null(False),
        status=patient.hospitaldischargestatus.fill_null(""),
    )


def _measured(vitals: Any, stays: Any, settings: EicuSettings) -> Any:
    """A row an observation on the grid of a stay that the rules keep: stay_id, time in seconds, a column a variable."""
    values = {variable.name: variable.within(vitals[variable.column]) for variable in settings.variable}
    time = (vitals.observationoffset - settings.start_minutes) * 60
    rows = vitals.select(stay_id=vitals.patientunitstayid, time=time, **values)
    something = functools.reduce(operator.or_, (rows[name].notnull() for name in values))
    inside = rows.filter(rows.time >= 0, rows.time < width_of(settings.step) * settings.steps, something)
    wanted = stays.filter(stays.long_enough, stays.status != "")
    return inside.join(wanted.select("stay_id"), "stay_id")


def _eicu(source: str, settings: EicuSettings, progress: Progress = silent) -> Extraction:
    with connect(source, progress) as engine:
        return extract(engine, settings)


EICU = Source(EicuSettings, _eicu)
