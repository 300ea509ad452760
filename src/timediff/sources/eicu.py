"""eICU (Collaborative Research Database 2.0): monitor values of vitalPeriodic, at minutes from the unit's admission."""

import functools
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.data.schema import Relation, Schema
from timediff.runtime.progress import Progress, silent
from timediff.sources.base import Source, bundled
from timediff.sources.engines import Engine, Table, connect
from timediff.sources.extraction import (
    Extraction,
    any_measured,
    apply,
    columns,
    lengths_of,
    on_grid,
    require_ids,
    within_stays,
)
from timediff.sources.grid import Rule, to_steps
from timediff.sources.setting_checks import MOST_HOURS, GridSettings, beyond, grid_problems, schema_problems
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
class EICUSettings(GridSettings):
    step: str  # of the grid, such as "5min"
    steps: int
    start_minutes: int  # from admission to the unit to the grid's origin
    hours: float  # a stay lasts at least so long
    variable: tuple[EICUVariable, ...]
    rule: Rule = "last"
    test: float = 0.25
    relation: tuple[Relation, ...] = ()  # what holds between variables, such as systolic ≥ mean pressure
    first_minute: int | None = None  # a stay's first row is no later
    last_minute: int | None = None  # and its last row no earlier
    unbroken: bool = False  # from the grid's begin to its end a stay's rows follow each other a step apart

    @property
    def end(self) -> int:
        """Of the grid, in seconds after admission to the unit."""
        return self.start_minutes * 60 + self.width * self.steps

    @property
    def may_end(self) -> bool:
        """Whether a stay may end within the grid."""
        return self.hours * 3600 < self.end

    @property
    def schema(self) -> Schema:
        return schema_of(self.variable, self.steps, self.step, self.test, self.relation)

    def problems(self) -> list[str]:
        found = grid_problems(self.step, self.steps, self.variable) + beyond({"hours": self.hours}, 0, MOST_HOURS)
        minutes = int(MOST_HOURS) * 60
        moments = ("start_minutes", "first_minute", "last_minute")
        found += beyond({name: getattr(self, name) for name in moments}, -minutes, minutes)
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
    measured = _measured(vitals, stays, settings)
    found = columns(to_steps(measured, ["stay_id"], names, "time", settings.width, settings.steps, settings.rule))

    stay_id, status = everyone["stay_id"], everyone["status"]
    measured_id = np.unique(found["stay_id"])
    series = {
        variable.name: on_grid(measured_id, settings.steps, found, found[name])
        for name, variable in zip(names, settings.variable, strict=True)
    }
    length = None
    if settings.may_end:
        left = everyone["left"][np.searchsorted(stay_id, measured_id)].astype(np.float64)
        series, length = within_stays(series, left - settings.start_minutes * 60, settings.width)
    rules = {
        f"unit stay of at least {settings.hours:g} h": everyone["long_enough"].astype(bool),
        **_rhythm(vitals, stay_id, settings),
        "a known outcome": status != "",
        "at least one measurement": np.isin(stay_id, measured_id[any_measured(series)]),
    }
    kept, dropped = apply(rules)
    static = {"patient": everyone["patient"][kept], "died": (status[kept] == "Expired").astype(np.float64)}
    mine = np.isin(measured_id, stay_id[kept])
    if not mine.all():
        series = {name: grid[mine] for name, grid in series.items()}
    length = lengths_of(length, mine, settings.steps)
    return Extraction(
        Cohort(settings.schema, stay_id[kept], series, static, length), len(stay_id), dropped, engine.facts()
    )


def _stays(patient: Any, settings: EICUSettings) -> Any:
    """A row a unit stay: stay_id, patient, left (in seconds), long_enough, status ("" = not known)."""
    return patient.select(
        stay_id=patient.patientunitstayid,
        patient=patient.uniquepid,
        left=patient.unitdischargeoffset * 60,
        long_enough=(patient.unitdischargeoffset >= settings.hours * 60).fill_null(False),
        status=patient.hospitaldischargestatus.fill_null(""),
    )


def _rhythm(vitals: Any, stay_id: Array, settings: EICUSettings) -> dict[str, Array]:
    """The rules on when a stay's rows are, whatever is in them, as far as there are any."""
    first, last = settings.first_minute, settings.last_minute
    rules: dict[str, Array] = {}
    if first is not None or last is not None:
        rows = vitals.group_by(stay_id=vitals.patientunitstayid)
        found = columns(rows.agg(first=vitals.observationoffset.min(), last=vitals.observationoffset.max()))
        if first is not None:
            rules[f"a row by minute {first}"] = np.isin(stay_id, found["stay_id"][found["first"] <= first])
        if last is not None:
            rules[f"a row at minute {last} or later"] = np.isin(stay_id, found["stay_id"][found["last"] >= last])
    if settings.unbroken:
        time = vitals.observationoffset * 60 - settings.start_minutes * 60
        rows = vitals.select(stay_id=vitals.patientunitstayid, time=time, phase=time % settings.width)
        rows = rows.filter(rows.time >= 0, rows.time <= settings.width * settings.steps)
        counts = rows.group_by("stay_id").agg(
            rows=rows.count(), times=rows.time.nunique(), phases=rows.phase.nunique(),
            span=rows.time.max() - rows.time.min(),
        )  # fmt: skip
        found = columns(counts)
        steady = (found["rows"] == found["times"]) & (found["phases"] == 1)
        steady &= (found["span"] == (found["rows"] - 1) * settings.width) & (found["rows"] >= settings.steps)
        rules[f"an unbroken row every {settings.step}"] = np.isin(stay_id, found["stay_id"][steady])
    return rules


def _measured(vitals: Any, stays: Any, settings: EICUSettings) -> Any:
    """A row an observation on the grid of a stay that the rules keep: stay_id, time in seconds, a column a variable."""
    values = {f"value_{i}": v.within(vitals[v.column]) for i, v in enumerate(settings.variable)}
    time = (vitals.observationoffset - settings.start_minutes) * 60
    rows = vitals.select(stay_id=vitals.patientunitstayid, time=time, **values)
    something = functools.reduce(operator.or_, (rows[name].notnull() for name in values))
    rows = rows.filter(something)
    wanted = stays.filter(stays.long_enough, stays.status != "")
    return rows.join(wanted.select("stay_id"), "stay_id")


class EICU(Source[EICUSettings]):
    settings = EICUSettings
    defaults = bundled("eicu")
    published = bundled("eicu_published")

    def extract(self, source: str, settings: EICUSettings, progress: Progress = silent) -> Extraction:
        with connect(source, progress) as engine:
            return extract(engine, settings)
