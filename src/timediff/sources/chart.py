"""Charted vital signs of MIMIC-III and MIMIC-IV: events by item id, on a grid, for the unit stays that the rules keep.

Item ids and limits are facts of the MIMIC Code Repository (Johnson et al. 2018, MIT-LCP/mimic-code): vitals_first_day
of its MIMIC-III concepts, vitalsign of its MIMIC-IV concepts. They stand in settings/mimic3.toml and mimic4.toml.
"""

import functools
import operator
from dataclasses import dataclass
from typing import Any, Literal

import ibis
import numpy as np

from timediff.cohort import Cohort
from timediff.schema import Feature, Schema, Split
from timediff.sources.engines import Engine, Table
from timediff.sources.extraction import Extraction, apply, batches, columns
from timediff.sources.grid import Rule, cells, seconds
from timediff.tables import Floats

YEAR = 365.2425 * 86400


@dataclass(frozen=True)
class Items:
    """Item ids that chart one variable, and what of it counts: above < value < below, value ≤ at_most."""

    ids: tuple[int, ...]
    above: float | None = None
    below: float | None = None
    at_most: float | None = None
    fahrenheit: bool = False  # limits are in °F too


@dataclass(frozen=True)
class Variable:
    name: str
    items: tuple[Items, ...]
    unit: str | None = None
    bounds: tuple[float, float] | None = None
    resolution: float | None = None

    @property
    def feature(self) -> Feature:
        return Feature(self.name, "continuous", unit=self.unit, bounds=self.bounds, resolution=self.resolution)


@dataclass(frozen=True)
class ChartSettings:
    step: str  # of the grid, such as "1h" or "30min"
    steps: int
    origin: Literal["first", "intime"]  # the first measurement of any variable, or the admission to the unit
    hours: float  # a stay lasts at least so long
    variable: tuple[Variable, ...]
    age: float | None = None  # a patient is at least so old
    rule: Rule = "last"
    test: float = 0.25
    extended: bool = False  # MIMIC-IV: with the paper's supplementary channels

    @property
    def schema(self) -> Schema:
        static = (
            Feature("patient", "categorical", "static", role="patient"),
            Feature("died", "binary", "static", role="label"),
        )
        features = (*(variable.feature for variable in self.variable), *static)
        return Schema(features, self.steps, self.step, Split(self.test, "died", "patient"))


@dataclass(frozen=True)
class Layout:
    """How a version of MIMIC names its tables and columns."""

    stays: Table
    admissions: Table
    patients: Table
    events: Table
    stay: str  # the column that identifies a unit stay
    marks_errors: bool  # rows with error = 1 do not count


def extract(engine: Engine, layout: Layout, settings: ChartSettings) -> Extraction:
    wanted = [layout.stays, layout.admissions, layout.patients, layout.events]
    icustays, admissions, patients, events = engine.tables(wanted)
    stays = _stays(icustays, admissions, patients, layout, settings)
    everyone = columns(stays.order_by("stay_id"))
    measured = engine.keep(_measured(events, stays, layout, settings), "timediff_measured")
    if settings.origin == "first":
        first = measured.group_by("stay_id").agg(origin=measured.at.min())
        measured = measured.join(first, "stay_id").select(
            "stay_id", "variable", "value", time=measured.at - first.origin
        )
    else:
        measured = measured.select("stay_id", "variable", "value", time=measured.at - measured.intime)
    width = width_of(settings.step)
    found = cells(measured, ["stay_id", "variable"], ["value"], "time", width, settings.steps, settings.rule)

    stay_id = everyone["stay_id"]
    rules = {f"unit stay of at least {settings.hours:g} h": everyone["long_enough"].astype(bool)}
    if settings.age is not None:
        rules[f"age of at least {settings.age:g}"] = everyone["old_enough"].astype(bool)
    rules["a known outcome"] = ~np.isnan(everyone["died"].astype(np.float64))
    series = _series(settings, stay_id, found)
    rules["at least one measurement"] = np.any([~np.isnan(grid).all(axis=1) for grid in series.values()], axis=0)
    kept, dropped = apply(rules)
    for name in series:  # one after the other: at no time are there two copies of all
        series[name] = series[name][kept]
    static = {"patient": everyone["patient"][kept], "died": everyone["died"][kept].astype(np.float64)}
    cohort = Cohort(settings.schema, stay_id[kept], series, static)
    return Extraction(cohort, len(stay_id), dropped, engine.facts())


def width_of(step: str) -> int:
    """Seconds of a duration such as "1h", "30min" or "2d"."""
    number = step.rstrip("abcdefghijklmnopqrstuvwxyz ")
    unit = step[len(number) :].strip()
    return round(float(number or 1) * {"s": 1, "min": 60, "h": 3600, "d": 86400}[unit])


def _stays(stays: Any, admissions: Any, patients: Any, layout: Layout, settings: ChartSettings) -> Any:
    """A row a unit stay: stay_id, patient, intime in seconds, long_enough, old_enough, died."""
    joined = stays.join(admissions, "hadm_id", how="left").join(patients, "subject_id", how="left")
    inside, outside = seconds(joined.intime), seconds(joined.outtime)
    if "dob" in patients.columns:
        age = (inside - seconds(joined.dob)) / YEAR
    else:
        age = joined.anchor_age + joined.intime.year() - joined.anchor_year
    return joined.select(
        stay_id=joined[layout.stay],
        patient=joined.subject_id,
        intime=inside,
        long_enough=(outside - inside >= settings.hours * 3600).fill_null(False),
        old_enough=(age >= (settings.age or 0)).fill_null(False),
        died=joined.hospital_expire_flag,
    )


def _measured(events: Any, stays: Any, layout: Layout, settings: ChartSettings) -> Any:
    """A row a valid measurement of a stay that the rules keep: stay_id, intime, variable (its number), at, value."""
    groups = [(number, items) for number, variable in enumerate(settings.variable) for items in variable.items]
    valid = [_valid(events, items) for _, items in groups]
    chosen = events.filter(events.valuenum.notnull(), functools.reduce(operator.or_, valid))
    if layout.marks_errors:
        chosen = chosen.filter(chosen.error.isnull() | (chosen.error != 1))
    fahrenheit = [i for _, items in groups if items.fahrenheit for i in items.ids]
    value = chosen.valuenum
    if fahrenheit:
        value = ibis.cases((chosen.itemid.isin(fahrenheit), (chosen.valuenum - 32) / 1.8), else_=chosen.valuenum)
    number = ibis.cases(*((chosen.itemid.isin(items.ids), ibis.literal(n, "int64")) for n, items in groups))
    long = chosen.select(stay_id=chosen[layout.stay], variable=number, at=seconds(chosen.charttime), value=value)
    wanted = stays.filter(stays.long_enough)
    wanted = wanted if settings.age is None else wanted.filter(wanted.old_enough)
    return long.join(wanted.select("stay_id", "intime"), "stay_id")


def _valid(events: Any, items: Items) -> Any:
    valid = events.itemid.isin(items.ids)
    for limit, holds in (
        (items.above, operator.gt),
        (items.below, operator.lt),
        (items.at_most, operator.le),
    ):
        valid = valid if limit is None else valid & holds(events.valuenum, limit)
    return valid


def _series(settings: ChartSettings, stay_id: Any, found: Any) -> dict[str, Floats]:
    """The cells in (N, L) arrays. Converted values are rounded to the resolution, on which engines agree."""
    grids = [np.full((len(stay_id), settings.steps), np.nan) for _ in settings.variable]
    for rows in batches(found):
        place, step = np.searchsorted(stay_id, rows["stay_id"]), rows["step"].astype(np.int64)
        for number, grid in enumerate(grids):
            mine = rows["variable"] == number
            grid[place[mine], step[mine]] = rows["value"][mine]
    for grid, variable in zip(grids, settings.variable, strict=True):
        if variable.resolution and any(items.fahrenheit for items in variable.items):
            grid[:] = np.round(np.round(grid / variable.resolution) * variable.resolution, 9)
    return {variable.name: grid for variable, grid in zip(settings.variable, grids, strict=True)}
