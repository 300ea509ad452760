"""The paper's supplement to MIMIC-IV: glucose, the most frequent ICD codes and antibiotics, age at the first visit.

Codes and antibiotics are static features, one each; or, packed as in the paper, one channel over the steps for all
codes, whose step k is the k-th most frequent code, and one for all antibiotics. Schema and Parquet keep their names.

Item ids are facts of the MIMIC Code Repository (Johnson et al. 2018, MIT-LCP/mimic-code); they stand, with the names of
the antibiotics, in settings/mimic4_extended.toml.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature
from timediff.errors import Problems, TimeDiffError
from timediff.runtime.parsing import parse_toml, read_toml
from timediff.settings import typed
from timediff.sources.base import bundled
from timediff.sources.engines import Engine, Table
from timediff.sources.extraction import columns
from timediff.sources.grid import on_clock, seconds, step_seconds, to_steps
from timediff.sources.setting_checks import CheckedSettings, beyond
from timediff.sources.variables import Limits

STAYS = Table(
    "icustays",
    {"stay_id": "int64", "subject_id": "int64", "hadm_id": "int64", "intime": "timestamp"},
    "mimiciv_icu",
)
MEASURED = {"itemid": "int64", "charttime": "timestamp", "valuenum": "float64"}
CHART = Table("chartevents", {"stay_id": "int64", **MEASURED}, "mimiciv_icu")
LABS = Table("labevents", {"subject_id": "int64", **MEASURED}, "mimiciv_hosp")
PATIENTS = Table("patients", {"subject_id": "int64", "anchor_age": "int64"}, "mimiciv_hosp")
DIAGNOSES = Table("diagnoses_icd", {"hadm_id": "int64", "icd_code": "string", "icd_version": "int64"}, "mimiciv_hosp")
PRESCRIPTIONS = Table("prescriptions", {"hadm_id": "int64", "drug": "string"}, "mimiciv_hosp")

DEFAULTS = bundled("mimic4_extended")
K = TypeVar("K", str, tuple[str, int])
MOST_CHANNELS = 10_000  # codes or antibiotics
OVER_89 = 91  # how MIMIC-IV writes an age that it hides


@dataclass(frozen=True, kw_only=True)
class Glucose(Limits):
    chart_ids: tuple[int, ...]
    lab_ids: tuple[int, ...]
    round_minutes: int
    above: float | None = 0.0
    unit: str = "mg/dL"


@dataclass(frozen=True)
class ExtendedSettings(CheckedSettings):
    glucose: Glucose
    codes: int
    antibiotics: int
    antibiotic_names: tuple[str, ...]  # parts of a drug's name, in lower case
    not_antibiotic_names: tuple[str, ...] = ()
    packed: bool = False  # all codes are one channel, a code a step; likewise all antibiotics
    merge_names: bool = True  # drug names that differ in case and spaces alone are one

    def problems(self) -> list[str]:
        found = beyond({"codes": self.codes, "antibiotics": self.antibiotics}, 0, MOST_CHANNELS)
        if not (self.packed or self.merge_names):
            found.append(
                "merge_names is false; expected packed = true with it, for many tools read columns whose names differ "
                "in case alone as one"
            )
        return found + beyond({"glucose.round_minutes": self.glucose.round_minutes}, 1, 24 * 60)


def extended_settings(config: Path | None = None) -> ExtendedSettings:
    """The supplement's own settings, or those of a file."""
    where = str(config or "mimic4_extended settings")
    table = parse_toml(DEFAULTS, where) if config is None else read_toml(config)
    return typed.build(ExtendedSettings, table, where)


def extend(engine: Engine, cohort: Cohort, settings: ExtendedSettings, *, by_clock: bool = False) -> Cohort:
    """A MIMIC-IV cohort with the supplement's features after its own.

    Its grid begins at admission to the unit, or at the first whole step of the clock after it (`by_clock`).
    """
    if settings.packed and cohort.length is not None:
        raise TimeDiffError(
            "some stays end within the grid, and a packed channel needs all its steps: set hours to the length of the "
            "grid, or packed = false."
        )
    tables = engine.tables([STAYS, CHART, PATIENTS, DIAGNOSES, PRESCRIPTIONS])
    stays, chart, patients, diagnoses, prescriptions = tables
    admitted = seconds(stays.intime)
    stays = stays.mutate(begin=on_clock(admitted, step_seconds(cohort.schema.step)) if by_clock else admitted)
    glucose = _glucose(_measured(engine, stays, chart, settings.glucose), cohort)
    glucose = np.where(cohort.step_mask, glucose, np.nan)

    everyone = columns(stays.select("stay_id", "subject_id", "hadm_id"))
    place = _rows(everyone["stay_id"], cohort.stay_id, "icustays")
    admission, subject = everyone["hadm_id"][place], everyone["subject_id"][place]
    codes = _codes(diagnoses, admission, settings.codes)
    antibiotics = _antibiotics(prescriptions, admission, settings)
    age = Feature("age", "continuous", "static", unit="years", bounds=(16, OVER_89), resolution=1)
    series = {"glucose": glucose}
    features = [Feature("glucose", "continuous", unit=settings.glucose.unit), age]
    static = {"age": _age(patients, subject)}
    if settings.packed:
        packs = {"icd_codes": codes, "antibiotics": antibiotics}
        features += [Feature(name, "binary", step_names=tuple(held)) for name, held in packs.items() if held]
        series |= {name: _packed(held, glucose.shape) for name, held in packs.items() if held}
    else:
        static |= {**codes, **antibiotics}
        features += [Feature(name, "binary", "static") for name in (*codes, *antibiotics)]
    return replace(
        cohort,
        schema=replace(cohort.schema, features=(*cohort.schema.features, *features)),
        series={**cohort.series, **series},
        static={**cohort.static, **static},
    )


def require_room(settings: ExtendedSettings, steps: int) -> None:
    """Refuses more codes than a packed channel has steps."""
    for name in ("codes", "antibiotics"):
        if settings.packed and (number := getattr(settings, name)) > steps:
            raise TimeDiffError(
                f"the grid has {steps} steps, and a packed channel has one for each of its {number} {name}: "
                f"set steps = {number} or more, or packed = false."
            )


def _packed(held: Mapping[str, Floats], shape: tuple[int, ...]) -> Floats:
    """(N, L): whether a stay has the code of each step; 0 in steps that no code is left for."""
    channel = np.zeros(shape)
    channel[:, : len(held)] = np.stack(list(held.values()), axis=1)
    return channel


def _measured(engine: Engine, stays: Any, chart: Any, settings: Glucose) -> Any:
    """A row a valid measurement: stay_id, value, time in seconds since the grid's origin, rounded."""
    rows = _since(_valid(chart, settings.chart_ids, settings).join(stays, "stay_id"), settings)
    if (labs := _labs(engine)) is not None:
        # Laboratory values belong to a patient; the grid's window says to which stay.
        rows = rows.union(_since(_valid(labs, settings.lab_ids, settings).join(stays, "subject_id"), settings))
    return rows


def _labs(engine: Engine) -> Any:
    """The laboratory's table, or None where there is none; one of another shape is an error."""
    try:
        return engine.tables([LABS])[0]
    except Problems as error:
        if any("no column" in problem for problem in error.problems):
            raise
        return None


def _valid(events: Any, ids: Sequence[int], settings: Glucose) -> Any:
    chosen = events.filter(events.itemid.isin(ids))
    return chosen.filter(settings.within(chosen.valuenum).notnull())


def _since(events: Any, settings: Glucose) -> Any:
    """Time since the origin, rounded: rounded clock times would miss a grid that begins at any second of the clock."""
    width = settings.round_minutes * 60
    rows = events.select("stay_id", value=events.valuenum, late=seconds(events.charttime) - events.begin + width // 2)
    rows = rows.filter(rows.late >= 0)  # engines differ in how they divide below zero
    return rows.select("stay_id", "value", time=(rows.late // width).cast("int64") * width)


def _glucose(measured: Any, cohort: Cohort) -> Floats:
    """(N, L): only what lies exactly on the grid, as the paper samples; equal times are averaged."""
    width, steps = step_seconds(cohort.schema.step), cohort.schema.steps
    found = columns(to_steps(measured, ["stay_id"], ["value"], "time", width, steps, "at"))
    known = np.isin(found["stay_id"], cohort.stay_id)
    row = _rows(cohort.stay_id, found["stay_id"][known], "the cohort")
    grid = np.full((len(cohort), steps), np.nan)
    grid[row, found["step"][known].astype(np.int64)] = found["value"][known]
    return grid


def _codes(diagnoses: Any, admission: Array, number: int) -> dict[str, Floats]:
    """The `number` ICD codes of most admissions in the database, and which of `admission` have them."""
    known = diagnoses.filter(diagnoses.hadm_id.notnull(), diagnoses.icd_code.notnull(), diagnoses.icd_version.notnull())
    counts = columns(known.group_by(["icd_code", "icd_version"]).agg(admissions=known.hadm_id.nunique()))
    table = zip(counts["icd_code"], counts["icd_version"], counts["admissions"], strict=True)
    chosen = _most({(str(code), int(version)): int(count) for code, version, count in table}, number)
    rows = columns(known.filter(known.icd_code.isin([code for code, _ in chosen])).distinct())
    held = {}
    for code, version in chosen:
        mine = (rows["icd_code"] == code) & (rows["icd_version"] == version)
        # Early versions pad their codes with spaces.
        held[f"icd{version}_{code.strip()}"] = np.isin(admission, rows["hadm_id"][mine]).astype(np.float64)
    return held


def _antibiotics(prescriptions: Any, admission: Array, settings: ExtendedSettings) -> dict[str, Floats]:
    """The antibiotics of most admissions in the database, and which of `admission` were given them."""
    known = prescriptions.filter(prescriptions.hadm_id.notnull(), prescriptions.drug.notnull())
    # Names are compared here, not in the database: engines differ in what is lower case.
    drugs = [drug for drug in columns(known.select("drug").distinct())["drug"] if _antibiotic(_name(drug), settings)]
    names = {drug: _name(drug) if settings.merge_names else drug for drug in drugs}
    if not names:
        return {}
    rows = columns(known.filter(known.drug.isin(sorted(names))).distinct())
    given: dict[str, set[int]] = {}
    for drug, hadm_id in zip(rows["drug"], rows["hadm_id"], strict=True):
        given.setdefault(names[drug], set()).add(int(hadm_id))
    chosen = _most({name: len(admissions) for name, admissions in given.items()}, settings.antibiotics)
    held = {}
    for name in chosen:
        title = name.replace(" ", "_") if settings.merge_names else name
        held[f"abx_{title}"] = np.isin(admission, np.fromiter(given[name], np.int64)).astype(np.float64)
    return held


def _name(drug: str) -> str:
    """As prescribed, but for case and spaces: "CefTRIAXone" and "CeftriaXONE" are one drug."""
    return " ".join(drug.lower().split())


def _antibiotic(name: str, settings: ExtendedSettings) -> bool:
    named, excluded = settings.antibiotic_names, settings.not_antibiotic_names
    return any(part in name for part in named) and not any(part in name for part in excluded)


def _most(counts: Mapping[K, int], number: int) -> list[K]:
    """The keys with the highest counts, highest first; equal ones in their own order."""
    return sorted(counts, key=lambda key: (-counts[key], key))[:number]


def _age(patients: Any, subject: Array) -> Floats:
    found = columns(patients.filter(patients.anchor_age.notnull()))
    age = found["anchor_age"][_rows(found["subject_id"], subject, "patients")].astype(np.float64)
    return np.where(age > 89, OVER_89, age)


def _rows(keys: Array, wanted: Array, where: str) -> Array:
    """Where each of `wanted` stands in `keys`."""
    order = np.argsort(keys)
    place = np.searchsorted(keys, wanted, sorter=order)
    if missing := len(wanted) - int(np.isin(wanted, keys).sum()):
        raise TimeDiffError(f"{where} lacks {missing:,} of {len(wanted):,} rows that the cohort needs.")
    return np.asarray(order[place])
