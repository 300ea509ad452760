"""Charted vital signs of MIMIC-III and MIMIC-IV: events by item id, on a grid, for the unit stays that the rules keep.

Item ids and limits are facts of the MIMIC Code Repository (Johnson et al. 2018, MIT-LCP/mimic-code): vitals_first_day
of its MIMIC-III concepts, vitalsign of its MIMIC-IV concepts. They stand in settings/mimic3.toml and mimic4.toml.
"""

from dataclasses import dataclass
from typing import Any, Literal

import ibis
import numpy as np

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Relation, Schema
from timediff.sources.engines import Engine, Table
from timediff.sources.extraction import (
    Extraction,
    any_measured,
    apply,
    batches,
    columns,
    lengths_of,
    require_ids,
    to_resolution,
    within_stays,
)
from timediff.sources.grid import Rule, average_ties, on_clock, seconds, untied_to_steps
from timediff.sources.setting_checks import (
    LARGEST_ID,
    MOST_HOURS,
    GridSettings,
    beyond,
    grid_problems,
    schema_problems,
)
from timediff.sources.variables import COMPARISONS, NO_LIMITS, ChartedLimits, VitalSign, plausible, schema_of

YEAR = 365.2425 * 86400
MOST_AGE = 300  # in years: MIMIC-III writes an age that it hides as 300


@dataclass(frozen=True, kw_only=True)
class Items(ChartedLimits):
    """Item ids that chart one variable."""

    ids: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class MIMICVariable(VitalSign):
    items: tuple[Items, ...]


@dataclass(frozen=True)
class MIMICSettings(GridSettings):
    step: str  # of the grid, such as "1h" or "30min"
    steps: int
    origin: Literal["first", "intime"]  # the first measurement of any variable, or the admission to the unit
    hours: float  # a stay lasts at least so long
    variable: tuple[MIMICVariable, ...]
    age: float | None = None  # a patient is at least so old
    rule: Rule = "last"
    test: float = 0.25
    relation: tuple[Relation, ...] = ()  # what holds between variables, such as systolic ≥ mean pressure
    extended: bool = False  # MIMIC-IV: with the paper's supplementary channels
    packed: bool = False  # of those: all codes are one channel, a code a step; likewise all antibiotics
    merge_names: bool = True  # of those: drug names that differ in case and spaces alone are one

    @property
    def schema(self) -> Schema:
        return schema_of(self.variable, self.steps, self.step, self.test, self.relation)

    def problems(self) -> list[str]:
        found = grid_problems(self.step, self.steps, self.variable) + beyond({"hours": self.hours}, 0, MOST_HOURS)
        found += beyond({"age": self.age}, 0, MOST_AGE)
        for variable in self.variable:
            ids = [item for items in variable.items for item in items.ids]
            if not ids:
                found.append(f"variable {variable.name!r} lists no item id; expected [[variable.items]] with ids")
            if any(abs(item) > LARGEST_ID for item in ids):
                found.append(f"variable {variable.name!r} has an item id of more than 64 bits")
        return found or schema_problems(lambda: self.schema)


@dataclass(frozen=True)
class MIMICTables:
    """How a version of MIMIC names its tables and columns."""

    stays: Table
    admissions: Table
    patients: Table
    events: Table
    stay: str  # the column that identifies a unit stay
    marks_errors: bool  # rows with error = 1 do not count


def extract(engine: Engine, layout: MIMICTables, settings: MIMICSettings) -> Extraction:
    width, by_clock = settings.width, settings.rule == "at"
    wanted = [layout.stays, layout.admissions, layout.patients, layout.events]
    icustays, admissions, patients, events = engine.tables(wanted)
    stays = _stays(icustays, admissions, patients, layout, settings)
    everyone = columns(stays.order_by("stay_id"))
    require_ids(everyone, layout.stays.name)
    items = engine.put(_items(settings), "timediff_items")
    # Averaged within the scan: a second core has little else to do while the first one unpacks a .csv.gz.
    keys, valid = ["stay_id", "variable"], _measured(events, items, stays, layout, settings)
    measured = engine.keep(average_ties(valid, keys, ["value"], "time", settings.rule), "timediff_measured")
    if settings.origin == "first":
        first = measured.group_by("stay_id").agg(first=measured.time.min())
        first = first.select("stay_id", origin=on_clock(first["first"], width) if by_clock else first["first"])
        joined = measured.join(first, "stay_id")
        measured = joined.select("stay_id", "variable", "value", time=joined.time - joined.origin)
    found = untied_to_steps(measured, keys, ["value"], "time", width, settings.steps, settings.rule)

    stay_id = everyone["stay_id"]
    rules = {f"unit stay of at least {settings.hours:g} h": everyone["long_enough"].astype(bool)}
    if settings.age is not None:
        rules[f"age of at least {settings.age:g}"] = everyone["old_enough"].astype(bool)
    rules["a known outcome"] = np.isin(everyone["died"].astype(np.float64), (0, 1))
    series = _series(settings, stay_id, found)
    length = None
    if settings.may_end:
        ends = everyone["left"].astype(np.float64)
        if settings.origin == "first":
            begun = columns(first)
            ends[np.searchsorted(stay_id, begun["stay_id"])] -= begun["origin"]
        series, length = within_stays(series, ends, width)
    rules["at least one measurement"] = any_measured(series)
    kept, dropped = apply(rules)
    series = {name: grid[kept] for name, grid in series.items()}
    static = {"patient": everyone["patient"][kept], "died": everyone["died"][kept].astype(np.float64)}
    cohort = Cohort(settings.schema, stay_id[kept], series, static, lengths_of(length, kept, settings.steps))
    return Extraction(cohort, len(stay_id), dropped, engine.facts())


def _stays(stays: Any, admissions: Any, patients: Any, layout: MIMICTables, settings: MIMICSettings) -> Any:
    """A row a unit stay: stay_id, patient, begin, left (seconds after it), long_enough, old_enough, died.

    Times count from `begin`: admission, or where `at` asks for the clock, its next step, or 1970 until the first
    measurement is known.
    """
    joined = stays.join(admissions, "hadm_id", how="left").join(patients, "subject_id", how="left")
    inside, outside = seconds(joined.intime), seconds(joined.outtime)
    if "dob" in patients.columns:
        age = (inside - seconds(joined.dob)) / YEAR
    else:
        age = joined.anchor_age + joined.intime.year() - joined.anchor_year
    begin = inside
    if settings.rule == "at":  # charts are kept at full hours: a grid that began between them would miss nearly all
        begin = on_clock(inside, settings.width) if settings.origin == "intime" else ibis.literal(0, "int64")
    return joined.select(
        stay_id=joined[layout.stay],
        patient=joined.subject_id,
        begin=begin,
        left=outside - begin,
        long_enough=(outside - inside >= settings.hours * 3600).fill_null(False),
        old_enough=(age >= (settings.age or 0)).fill_null(False),
        died=joined.hospital_expire_flag,
    )


def _measured(events: Any, items: Any, stays: Any, layout: MIMICTables, settings: MIMICSettings) -> Any:
    """A row a valid measurement of a stay that the rules keep: stay_id, variable (its number), value, time in it."""
    charted = events.filter(events.error.isnull() | (events.error != 1)) if layout.marks_errors else events
    chosen = charted.join(items, "itemid")
    chosen = chosen.filter(plausible(chosen.valuenum, {name: chosen[name] for name in COMPARISONS}))
    value = ibis.ifelse(chosen.fahrenheit, (chosen.valuenum - 32) / 1.8, chosen.valuenum)
    long = chosen.select("variable", stay_id=chosen[layout.stay], at=seconds(chosen.charttime), value=value)
    wanted = stays.filter(stays.long_enough)
    wanted = wanted if settings.age is None else wanted.filter(wanted.old_enough)
    joined = long.join(wanted.select("stay_id", "begin"), "stay_id")
    return joined.select("stay_id", "variable", "value", time=joined["at"] - joined.begin)


def _items(settings: MIMICSettings) -> dict[str, list[Any]]:
    """A row an item id: which variable it charts, and what of it counts."""
    rows = [
        {"itemid": item, "variable": number, **NO_LIMITS, **items.given(), "fahrenheit": items.fahrenheit}
        for number, variable in enumerate(settings.variable)
        for items in variable.items
        for item in items.ids
    ]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _series(settings: MIMICSettings, stay_id: Any, found: Any) -> dict[str, Floats]:
    """Values in (N, L) arrays. Converted values are rounded to the resolution, on which engines agree."""
    shape = (len(settings.variable), len(stay_id), settings.steps)
    grids = np.full(shape, np.nan)
    for rows in batches(found):
        place = np.ravel_multi_index((rows["variable"], np.searchsorted(stay_id, rows["stay_id"]), rows["step"]), shape)
        grids.reshape(-1)[place] = rows["value"]
    for grid, variable in zip(grids, settings.variable, strict=True):
        if variable.resolution and any(items.fahrenheit for items in variable.items):
            grid[:] = to_resolution(grid, variable.resolution)
    return {variable.name: grid for variable, grid in zip(settings.variable, grids, strict=True)}
