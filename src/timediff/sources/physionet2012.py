"""PhysioNet/Computing in Cardiology Challenge 2012 (Silva et al. 2012): 48 hours of ICU stays, and in-hospital death.

Read as distributed (`set-a/132539.txt`, … with `Outcomes-a.txt`, in folders or zipped) or as one Parquet file a set.
"""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Relation, Schema, Split
from timediff.errors import Problems, TimeDiffError
from timediff.runtime.cell_values import cell, cells
from timediff.runtime.progress import Progress, silent
from timediff.sources.archives import read_zip
from timediff.sources.base import Source, bundled, local
from timediff.sources.driver_messages import arrow_reason
from timediff.sources.engines import Files, connect_files
from timediff.sources.extraction import (
    Extraction,
    File,
    any_measured,
    apply,
    columns,
    fingerprint,
    on_grid,
    to_resolution,
)
from timediff.sources.grid import Rule, step_seconds, to_steps
from timediff.sources.physionet_files import exact, number_in, read, read_parquet, read_texts, require_numbers
from timediff.sources.setting_checks import CheckedSettings, grid_problems, schema_problems
from timediff.sources.variables import Limits

COLUMNS = ("RecordID", "minute", "Parameter", "Value")
TEXT = {"Time": pa.string(), "Parameter": pa.string(), "Value": pa.float64()}
DESCRIPTORS = ("RecordID", "Age", "Gender", "Height", "ICUType", "Weight")
DEATH = "In-hospital_death"
ICU_TYPES = (1, 2, 3, 4)  # coronary care, cardiac surgery recovery, medical ICU, surgical ICU
STAY = re.compile(r"(?:^|/)set-(\w+)/(\d+\.txt)$")
OUTCOME = re.compile(r"(?:^|/)(Outcomes-(\w+)\.(?:txt|csv))$")
LAYOUT = "set-a.parquet or set-a/ (one 132539.txt a stay), with Outcomes-a.csv or Outcomes-a.txt beside it"


@dataclass(frozen=True)
class PhysioNet2012Variable(Limits):
    """One series: of `parameters`, the first that has a value in the step. Limits are on single measurements."""

    name: str
    parameters: tuple[str, ...]
    total: bool = False  # a step holds the sum of its measurements, whatever the rule for the others is
    unit: str | None = None
    resolution: float | None = None

    def feature(self, rule: Rule) -> Feature:
        bounds = None
        if self.at_least is not None and self.at_most is not None and rule != "sum" and not self.total:
            bounds = (self.at_least, self.at_most)
        return Feature(self.name, "continuous", unit=self.unit, bounds=bounds, resolution=self.resolution)


@dataclass(frozen=True)
class PhysioNet2012Settings(CheckedSettings):
    step: str
    steps: int
    variable: tuple[PhysioNet2012Variable, ...]
    rule: Rule = "last"
    observed: bool = False  # drop stays that have no value at all on the grid, though they have other measurements
    test: float = 0.25
    relation: tuple[Relation, ...] = ()  # what holds between variables, such as systolic ≥ mean pressure

    @property
    def width(self) -> int:
        """Minutes of a step."""
        return step_seconds(self.step) // 60

    def problems(self) -> list[str]:
        found = grid_problems(self.step, self.steps, self.variable)
        found += [f"variable {v.name!r} lists no parameter" for v in self.variable if not v.parameters]
        if not found:
            found += schema_problems(lambda: self.schema(["a", "b"]))
        if not found and step_seconds(self.step) % 60:
            found.append(f"step is {self.step!r}; times here are minutes: expected whole ones, such as 30min")
        return found

    def schema(self, sets: Sequence[str]) -> Schema:
        static = [
            Feature("Age", "continuous", "static", unit="years", resolution=1),
            Feature("Gender", "binary", "static"),  # 0 = female, 1 = male
            Feature("ICUType", "categorical", "static", classes=ICU_TYPES),
        ]
        if len(sets) > 1:
            static.append(Feature("set", "categorical", "static", classes=tuple(sets)))
        static.append(Feature("died", "binary", "static", role="label"))
        features = (*(variable.feature(self.rule) for variable in self.variable), *static)
        return Schema(features, self.steps, self.step, Split(self.test, "died"), self.relation)


@dataclass(frozen=True)
class Set:
    """One set of the challenge: its Parquet file or the text of its stays, and its outcomes."""

    name: str
    recordings: Path | tuple[File, ...]
    outcomes: File

    def files(self) -> list[File]:
        if isinstance(self.recordings, Path):
            return [read(self.recordings), self.outcomes]
        return [*self.recordings, self.outcomes]


class PhysioNet2012(Source[PhysioNet2012Settings]):
    settings = PhysioNet2012Settings
    defaults = bundled("physionet2012")

    def extract(self, source: str, settings: PhysioNet2012Settings, progress: Progress = silent) -> Extraction:
        path = local(source)
        sets = find(path)
        schema = settings.schema([one.name for one in sets])
        files = [one.recordings for one in sets if isinstance(one.recordings, Path)]
        with connect_files(path, files, progress) as engine:
            tables = [_events(one, engine) for one in sets]
            stays = [_stays(one, table) for one, table in zip(sets, tables, strict=True)]
            order = np.argsort(np.concatenate(stays))
            stay_id = np.concatenate(stays)[order]
            origin = np.repeat(np.arange(float(len(sets))), [len(ids) for ids in stays])[order]
            if twice := stay_id[1:][stay_id[1:] == stay_id[:-1]].tolist():
                raise TimeDiffError(f"{source}: stays are in two sets, {cells(twice)}; give one set alone.")
            together = tables[0] if len(tables) == 1 else ibis.union(*tables)
            events = engine.keep(together, "events")  # read and converted once, asked many times
            series = _series(events, stay_id, settings)
            measured = events.filter(events.parameter.notin(["", *DESCRIPTORS]), events.value.notnull())
            measured_ever = np.isin(stay_id, columns(measured.select("stay_id").distinct())["stay_id"])
            static = _descriptors(events, stay_id)
            version = engine.version()

        static |= {"set": origin} if len(sets) > 1 else {}
        static["died"] = _deaths([one.outcomes for one in sets], stay_id)
        rules = {"a known outcome": ~np.isnan(static["died"]), "at least one measurement": measured_ever}
        if settings.observed:
            rules["at least one value on the grid"] = any_measured(series)
        kept, dropped = apply(rules)
        cohort = Cohort(
            schema,
            stay_id[kept],
            {name: values[kept] for name, values in series.items()},
            {name: values[kept] for name, values in static.items()},
        )
        facts = {"engine": version, "source_sha256": fingerprint(file for one in sets for file in one.files())}
        return Extraction(cohort, len(stay_id), dropped, facts)


def find(path: Path) -> list[Set]:
    """The sets that SOURCE holds, by name."""
    if not path.exists():
        raise TimeDiffError(f"{path} is not there; expected a folder, file or zip with {LAYOUT}.")
    if path.is_file() and path.suffix == ".zip":
        return _zipped(path)
    found = _sets_at([path]) or (_sets_at(sorted(path.iterdir())) if path.is_dir() else {})
    if not found:
        zips = sorted(path.glob("*.zip")) if path.is_dir() else []
        hint = f" To read {zips[0].name}, give that file itself." if zips else ""
        raise TimeDiffError(f"{path} holds no set of the challenge; expected {LAYOUT}.{hint}")
    return [Set(name, _recordings(place), _outcomes_beside(place, name)) for name, place in sorted(found.items())]


def _sets_at(paths: Sequence[Path]) -> dict[str, Path]:
    """Sets by name among these files and folders; a set that is there twice is read from its Parquet file."""
    folders = {p.name[4:]: p for p in paths if re.fullmatch(r"set-\w+", p.name) and p.is_dir()}
    return folders | {p.stem[4:]: p for p in paths if re.fullmatch(r"set-\w+\.parquet", p.name)}


def _recordings(place: Path) -> Path | tuple[File, ...]:
    if place.is_file():
        return place
    files = tuple(read(p) for p in sorted(place.iterdir()) if re.fullmatch(r"\d+\.txt", p.name))
    if not files:
        raise TimeDiffError(f"{place} holds no stay; expected one file a stay, such as 132539.txt.")
    return files


def _outcomes_beside(place: Path, name: str) -> File:
    for suffix in (".csv", ".txt"):
        if (path := place.resolve().parent / f"Outcomes-{name}{suffix}").is_file():
            return read(path)
    raise TimeDiffError(f"{place}: expected its outcomes in Outcomes-{name}.csv or Outcomes-{name}.txt beside it.")


def _zipped(path: Path) -> list[Set]:
    stays: dict[str, list[File]] = {}
    outcomes: dict[str, File] = {}
    for name, file in read_zip(path, _member):
        if stay := STAY.search(name):
            stays.setdefault(stay[1], []).append(file)
        elif outcome := OUTCOME.search(name):
            outcomes[outcome[2]] = file
    if not stays:
        raise TimeDiffError(f"{path} holds no stay; expected files such as set-a/132539.txt in it.")
    return [
        Set(name, tuple(files), outcomes.get(name) or _outcomes_beside(path, name))
        for name, files in sorted(stays.items())
    ]


def _member(name: str) -> str | None:
    """The file name of what counts in a zip."""
    found = STAY.search(name) or OUTCOME.search(name)
    return None if found is None else name.rpartition("/")[2]


def _events(one: Set, engine: Files) -> Any:
    """A row a line of the recordings: stay_id, minute, parameter, value."""
    if isinstance(one.recordings, Path):
        require_numbers(one.recordings, {name: name != "Parameter" for name in COLUMNS})
        table = read_parquet(engine, one.recordings, f"set_{one.name}")
        return table.select(
            stay_id=table.RecordID.cast("int64"),
            minute=table.minute.cast("int64"),
            parameter=table.Parameter.cast("string"),
            value=exact(table.Value),
        )
    text = read_texts(one.recordings, TEXT, ",")
    clock = pc.extract_regex(text["Time"], r"^(?P<hour>\d{1,4}):(?P<minute>\d{2})$")
    if clock.null_count:
        at = pc.index(pc.is_null(clock), True).as_py()
        line = pc.sum(pc.equal(text["stay_id"].slice(0, at + 1), text["stay_id"][at])).as_py() + 1
        raise TimeDiffError(
            f"{text['stay_id'][at]}.txt: the time in line {line} is {cell(text['Time'][at].as_py())}; expected HH:MM, "
            "such as 07:45."
        )
    hour, minute = (pc.struct_field(clock, k).cast(pa.int64()) for k in (0, 1))
    named = {
        "stay_id": text["stay_id"],
        "minute": pc.add(pc.multiply(hour, 60), minute),
        "parameter": text["Parameter"],
        "value": text["Value"],
    }
    return engine.put(named, f"set_{one.name}")


def _stays(one: Set, events: Any) -> Array:
    if isinstance(one.recordings, Path):
        return columns(events.select("stay_id").distinct())["stay_id"]
    return np.array([number_in(file) for file in one.recordings])  # a stay without any line is one too


def _series(events: Any, stay_id: Array, settings: PhysioNet2012Settings) -> dict[str, Floats]:
    """Series (N, L) by name."""
    slots = [(v, parameter) for v in settings.variable for parameter in reversed(v.parameters)]
    width = settings.width
    grids = {v.name: np.full((len(stay_id), settings.steps), np.nan) for v in settings.variable}
    by_rule: dict[Rule, list[Any]] = {}
    for slot, (variable, parameter) in enumerate(slots):
        chosen = events.filter(events.parameter == parameter)
        chosen = chosen.filter(variable.within(chosen.value).notnull())
        chosen = chosen.select("stay_id", "minute", "value", slot=ibis.literal(slot, "int64"))
        by_rule.setdefault("sum" if variable.total else settings.rule, []).append(chosen)
    for rule, parts in by_rule.items():
        measured = parts[0] if len(parts) == 1 else ibis.union(*parts)
        found = columns(to_steps(measured, ["stay_id", "slot"], ["value"], "minute", width, settings.steps, rule))
        # Rounded, so that a sum does not tell in which order its terms were added.
        found["value"] = to_resolution(found["value"], None)
        for slot, (variable, _) in enumerate(slots):  # the preferred parameter comes last and overwrites
            rows = {name: column[found["slot"] == slot] for name, column in found.items()}
            grid = on_grid(stay_id, settings.steps, rows, rows["value"])
            grids[variable.name] = np.where(np.isnan(grid), grids[variable.name], grid)
    return grids


def _descriptors(events: Any, stay_id: Array) -> dict[str, Array]:
    """Age, Gender and ICUType, wherever they stand; -1 is how the challenge writes a missing one."""
    known = events.filter(events.parameter.isin(["Age", "Gender", "ICUType"]), events.value >= 0)
    found = columns(known.group_by(["stay_id", "parameter"]).agg(value=known.value.max()))
    static: dict[str, Array] = {}
    for name, classes in (("Age", ()), ("Gender", (0, 1)), ("ICUType", ICU_TYPES)):
        mine = found["parameter"] == name
        values = np.full(len(stay_id), np.nan)
        values[np.searchsorted(stay_id, found["stay_id"][mine])] = found["value"][mine]
        # A class is stored as its index, and the classes are consecutive numbers.
        static[name] = np.where(np.isin(values, classes), values - classes[0], np.nan) if classes else values
    return static


def _deaths(outcomes: Sequence[File], stay_id: Array) -> Floats:
    """In-hospital death, 0 or 1; NaN where it is not known."""
    died = np.full(len(stay_id), np.nan)
    wanted = {"RecordID": pa.int64(), DEATH: pa.float64()}
    for file in outcomes:
        options = csv.ConvertOptions(column_types=wanted, include_columns=list(wanted))
        try:
            table = csv.read_csv(io.BytesIO(file.content), convert_options=options)
        except (pa.ArrowException, KeyError) as error:
            header = file.content.partition(b"\n")[0].decode(errors="replace").strip().split(",")
            why = arrow_reason(error, header)
            raise Problems(file.name, [f"expected the columns RecordID and {DEATH} ({why})"]) from error
        record, death = (np.asarray(table[name].to_numpy()) for name in wanted)
        known = np.isin(record, stay_id) & np.isin(death, (0, 1))
        died[np.searchsorted(stay_id, record[known])] = death[known]
    return died
