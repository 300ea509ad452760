"""MEDS event tables (Medical Event Data Standard: subject_id, time, code, numeric_value), one file or a folder of them.

Stays are not part of the standard: settings say which codes start and end one, and which codes chart a variable. A code
that ends in * stands for all that begin so.
"""

import functools
import operator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import ibis
import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Relation, Schema
from timediff.errors import Problems, TimeDiffError, listed
from timediff.runtime.progress import Progress, silent
from timediff.sources import sql
from timediff.sources.base import Source, bundled, local
from timediff.sources.engines import Files, connect_files
from timediff.sources.extraction import (
    Extraction,
    any_measured,
    apply,
    check_bounds,
    columns,
    lengths_of,
    on_grid,
    to_resolution,
    within_stays,
)
from timediff.sources.grid import Rule, on_clock, rule_problems, seconds, to_steps
from timediff.sources.setting_checks import MOST_HOURS, GridSettings, beyond, grid_problems, schema_problems
from timediff.sources.table_files import parquet_schema
from timediff.sources.variables import ChartedLimits, VitalSign, schema_of


@dataclass(frozen=True, kw_only=True)
class Codes(ChartedLimits):
    """Codes that chart one variable."""

    codes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class MEDSVariable(VitalSign):
    events: tuple[Codes, ...]
    rule: str | None = None  # of this variable, where it is not the common one


@dataclass(frozen=True)
class MEDSSettings(GridSettings):
    start: tuple[str, ...]  # codes that start a stay
    end: tuple[str, ...]  # codes that end it: the first one after its start
    step: str  # of the grid, such as "1h" or "30min"
    steps: int
    variable: tuple[MEDSVariable, ...]
    hours: float = 0.0  # a stay lasts at least so long
    origin: Literal["start", "first"] = "start"  # the start of the stay, or the first measurement in it
    rule: Rule = "last"
    death: tuple[str, ...] = ("MEDS_DEATH",)  # codes that make the label 1
    discharge: tuple[str, ...] = ()  # until the first of these after the start; none: until the end of the stay
    grace: float = 0.0  # or so many hours after it
    value: tuple[str, ...] = ("numeric_value",)  # the column with the values: the first of these that is there
    test: float = 0.25
    relation: tuple[Relation, ...] = ()  # what holds between variables, such as systolic ≥ mean pressure

    @property
    def schema(self) -> Schema:
        return schema_of(self.variable, self.steps, self.step, self.test, self.relation)

    def problems(self) -> list[str]:
        found = [f"{key} lists no code; expected at least one" for key in ("start", "end") if not getattr(self, key)]
        found += [f"variable {v.name!r} has no [[variable.events]]" for v in self.variable if not v.events]
        for variable in self.variable:
            found += rule_problems(f"variable {variable.name!r}", variable.rule)
        found += [
            f"variable {v.name!r} lists no code"
            for v in self.variable
            if v.events and not all(e.codes for e in v.events)
        ]
        found += grid_problems(self.step, self.steps, self.variable)
        found += beyond({"hours": self.hours, "grace": self.grace}, 0, MOST_HOURS)
        found += [] if self.value else ["value names no column; expected at least one"]
        return found or schema_problems(lambda: self.schema)


class MEDS(Source[MEDSSettings]):
    settings = MEDSSettings
    defaults = bundled("meds")

    def extract(self, source: str, settings: MEDSSettings, progress: Progress = silent) -> Extraction:
        schema = settings.schema
        paths = shards(local(source))
        with connect_files(paths[0].parent, paths, progress) as engine:
            events = _events(engine, paths, settings)
            return _extracted(engine, settings, schema, events, Path(source).name)


def shards(path: Path) -> list[Path]:
    """The event files: SOURCE itself, or those under it (under its data/, as the standard lays a data set out)."""
    if path.is_file():
        return [path]
    root = path / "data" if (path / "data").is_dir() else path
    found = sorted(p for p in root.rglob("*.parquet") if "metadata" not in p.relative_to(root).parts[:-1])
    if not found:
        raise TimeDiffError(f"{path} is neither a Parquet file nor a folder of them; expected a MEDS event table.")
    return found


def _events(engine: Files, paths: list[Path], settings: MEDSSettings) -> Any:
    """subject, at (seconds since 1970), code, number; all shards must have the columns."""
    found: list[str] = []
    queries = []
    for path in paths:
        try:
            names = parquet_schema(path).names
        except Problems as error:
            found += error.problems
            continue
        missing = [name for name in ("subject_id", "time", "code") if name not in names]
        value = next((name for name in settings.value if name in names), None)
        if value is None:
            missing.append(" or ".join(settings.value))
        if missing:
            found.append(f"{path.name} has no column {', '.join(missing)}; it has {listed(names, most=8)}")
        elif not found:
            queries.append(sql.meds_events(sql.parquet_relation(engine.admit(path)), str(value)))
    if found:
        raise Problems("MEDS events", found)
    engine.duckdb.run(sql.view("meds_events", " UNION ALL ".join(queries)))
    events = engine.backend.table("meds_events")
    every = [settings.start, settings.end, settings.death, settings.discharge]
    every += [group.codes for variable in settings.variable for group in variable.events]
    wanted = events.filter(
        matches(events.code, tuple(code for codes in every for code in codes)), events.moment.notnull()
    )
    wanted = wanted.select("subject", "code", "number", at=seconds(wanted.moment))
    return engine.keep(wanted, "timediff_events")


def _extracted(engine: Files, settings: MEDSSettings, schema: Schema, events: Any, where: str) -> Extraction:
    stays = engine.keep(_stays(events, settings), "timediff_stays")
    everyone = columns(stays.order_by("stay_id"))
    stay_id = everyone["stay_id"]
    if not len(stay_id):
        raise TimeDiffError(
            f"{where}: no event has a code that starts a stay ({', '.join(settings.start)}); set start."
        )
    _check_heard(events, settings)
    left, begun = everyone["left"].astype(np.float64), everyone["start"].astype(np.float64)
    measured = engine.keep(_measured(events, stays, settings), "timediff_measured")
    series, length = _series(settings, stay_id, _since_origin(measured, settings)), None
    if settings.may_end:
        origin = columns(_origins(measured, settings))
        place, ends = np.searchsorted(stay_id, origin["stay_id"]), np.full(len(stay_id), np.nan)
        ends[place] = left[place] - origin["origin"]
        series, length = within_stays(series, ends, settings.width)
    rules = {
        "a recorded end": ~np.isnan(left),
        f"a stay of at least {settings.hours:g} h": left - begun >= settings.hours * 3600,
        "at least one measurement": any_measured(series),
    }
    kept, dropped = apply(rules)
    static = {"patient": everyone["patient"][kept], "died": everyone["died"][kept].astype(np.float64)}
    series = {name: grid[kept] for name, grid in series.items()}
    cohort = Cohort(schema, stay_id[kept], series, static, lengths_of(length, kept, settings.steps))
    check_bounds(cohort)
    return Extraction(cohort, len(stay_id), dropped, engine.facts())


def matches(code: Any, codes: tuple[str, ...]) -> Any:
    """Whether a code is one of `codes`; one that ends in * stands for all that begin so."""
    exact = [c for c in codes if not c.endswith("*")]
    tests = [code.isin(exact)] if exact else []
    tests += [code.startswith(c[:-1]) for c in codes if c.endswith("*")]
    return functools.reduce(operator.or_, tests) if tests else code != code


def _check_heard(events: Any, settings: MEDSSettings) -> None:
    counts = {
        f"count_{n}": functools.reduce(operator.or_, (matches(events.code, g.codes) for g in variable.events)).sum()
        for n, variable in enumerate(settings.variable)
    }
    row = events.agg(**counts).to_pyarrow().to_pylist()[0]
    silent = [variable for n, variable in enumerate(settings.variable) if not row[f"count_{n}"]]
    if silent:
        codes = {v.name: ", ".join(code for group in v.events for code in group.codes) for v in silent}
        raise Problems(
            "MEDS events", [f"variable {name!r}: no event has a code of its own ({c})" for name, c in codes.items()]
        )


def _stays(events: Any, settings: MEDSSettings) -> Any:
    """A row a stay: stay_id (counted by patient and start), patient, start, left, died. Times are in seconds."""

    def of(codes: tuple[str, ...], name: str) -> Any:
        chosen = events.filter(matches(events.code, codes))
        return chosen.select(**{f"{name}_subject": chosen.subject, name: chosen["at"]}).distinct()

    starts = of(settings.start, "start")
    order = ibis.window(order_by=[starts.start_subject, starts.start])
    stays = starts.select(
        patient=starts.start_subject, start=starts.start, stay_id=(ibis.row_number().over(order) + 1).cast("int64")
    )

    def following(codes: tuple[str, ...], name: str) -> Any:
        """The first event of `codes` at or after the start of each stay."""
        others = of(codes, name)
        pairs = stays.join(others, [stays.patient == others[f"{name}_subject"], others[name] >= stays.start])
        return pairs.group_by("stay_id").agg(**{name: pairs[name].min()})

    for codes, name in ((settings.end, "left"), (settings.discharge, "home"), (settings.death, "death")):
        stays = stays.left_join(following(codes, name), "stay_id").drop("stay_id_right")
    # A date of discharge can be a mere day, earlier than the hour of death: that is what the grace is for.
    until = ibis.coalesce(stays.home, stays.left) + settings.grace * 3600
    died = (stays.death <= until).fill_null(False).cast("int64")
    return stays.select("stay_id", "patient", "start", "left", died=died)


def _measured(events: Any, stays: Any, settings: MEDSSettings) -> Any:
    """A row a valid measurement within a stay: stay_id, start, variable (its number), at, value."""
    groups = [(number, group) for number, variable in enumerate(settings.variable) for group in variable.events]
    value = ibis.cases(
        *((matches(events.code, group.codes), _value(events.number, group)) for _, group in groups), else_=ibis.null()
    )
    number = ibis.cases(*((matches(events.code, group.codes), ibis.literal(n, "int64")) for n, group in groups))
    long = events.select(subject="subject", at="at", variable=number, value=value)
    long = long.filter(long.variable.notnull(), long.value.notnull())
    enough = stays.filter(stays.left - stays.start >= settings.hours * 3600)
    inside = [long.subject == enough.patient, long["at"] >= enough.start, long["at"] <= enough.left]
    return long.join(enough, inside).select("stay_id", "start", "variable", "at", "value")


def _origins(measured: Any, settings: MEDSSettings) -> Any:
    """A row a stay with a measurement: stay_id and the grid's origin, which `at` moves to the clock."""
    moment = measured["at"] if settings.origin == "first" else measured["start"]
    found = measured.group_by("stay_id").agg(origin=moment.min())
    return found.mutate(origin=on_clock(found["origin"], settings.width)) if settings.rule == "at" else found


def _since_origin(measured: Any, settings: MEDSSettings) -> Any:
    return measured.join(_origins(measured, settings), "stay_id").mutate(time=lambda t: t["at"] - t["origin"])


def _value(number: Any, group: Codes) -> Any:
    known = ibis.ifelse(number.isnan(), ibis.null(), number)
    value = group.within(known)
    return (value - 32) / 1.8 if group.fahrenheit else value


def _series(settings: MEDSSettings, stay_id: Array, timed: Any) -> dict[str, Floats]:
    """Values in (N, L) arrays. Converted values are rounded to the resolution."""
    by_rule: dict[str, list[int]] = {}
    for number, variable in enumerate(settings.variable):
        by_rule.setdefault(variable.rule or settings.rule, []).append(number)
    series = {}
    for rule, numbers in by_rule.items():
        chosen = timed.filter(timed.variable.isin(numbers)).select("stay_id", "variable", "value", "time")
        keys, of_step = ["stay_id", "variable"], cast(Rule, rule)
        found = columns(to_steps(chosen, keys, ["value"], "time", settings.width, settings.steps, of_step))
        for number in numbers:
            variable, mine = settings.variable[number], found["variable"] == number
            rows = {name: column[mine] for name, column in found.items()}
            values = rows["value"].astype(np.float64)
            if variable.resolution and any(group.fahrenheit for group in variable.events):
                values = to_resolution(values, variable.resolution)
            series[variable.name] = on_grid(stay_id, settings.steps, rows, values)
    return series
