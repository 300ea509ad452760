"""A simulated MIMIC-III: charted by two systems, with two units of temperature and rows marked as errors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.runtime.progress import Progress
from timediff.sources.raw import charting
from timediff.sources.raw.charting import ARTEFACT, ERROR, LOOSE, TEXT
from timediff.sources.raw.csvgz import choice, column, csv_gz, empty, time, words_at, write_csv_gz
from timediff.sources.raw.items import CAREVUE, METAVISION, VARIABLES
from timediff.sources.raw.stays import DAY, HOUR, SHORT, UNMEASURED, YEAR, YOUNG, Stays, numbers, plan

STEPS, HOURS = 25, 24
LEFT_OUT = (225309, 225310)  # pressures that the concepts for MIMIC-III do not select
SOURCES = ("carevue", "metavision")
UNITS = ("MICU", "SICU", "CCU", "CSRU", "TSICU")
OLD = 90  # from here on the database moves the birth 300 years back
DECOYS = (ARTEFACT, ERROR, TEXT, LOOSE)
SCHEMA = charting.schema(VARIABLES, STEPS, test=0.2)


def write(folder: Path, stays: int, seed: int, progress: Progress) -> Cohort:
    """Writes the tables into `folder` and returns what extraction must find in them."""
    rng = np.random.default_rng([seed, stays, 3])
    rules = (SHORT, YOUNG, UNMEASURED)
    extremes = {name: variable.extremes for name, variable in VARIABLES.items()}
    # The origin is a measurement, so something is measured within the first step.
    found = plan(rng, stays, rules, HOURS, extremes, steps=STEPS, within=1, seed=seed, first_id=200_001)
    subject = numbers(rng, 10_001, found.patient.max() + 1)
    hadm = numbers(rng, 100_001, found.admission.max() + 1)
    source = rng.permutation(len(found)) % 2
    mean = found.values[:, list(VARIABLES).index("mbp")]
    mean[source == 1] = np.round(mean[source == 1])  # the newer system takes the mean of a cuff from its monitor
    _write_people(rng, folder, found, subject, hadm)
    _write_stays(rng, folder, found, subject, hadm, source)
    _write_items(folder)
    _write_chart(rng, folder, found, subject, hadm, source, progress)
    return found.truth(SCHEMA, subject)


def _write_people(rng: np.random.Generator, folder: Path, found: Stays, subject: Array, hadm: Array) -> None:
    admitted, left, died = found.hospital(rng)
    first, last = found.earliest(found.patient), found.latest(found.patient)
    age = np.where(found.age[first] >= OLD, 300, found.age[first])
    born = found.intime[first] - (age * YEAR).astype(np.int64)
    death = left[found.admission[last]] // DAY * DAY
    gone = found.died[last]
    size = len(subject)
    write_csv_gz(
        folder / "PATIENTS.csv.gz",
        {
            "row_id": np.arange(1, size + 1),
            "subject_id": subject,
            "gender": words_at(("F", "M"), found.sex[first]),
            "dob": time(born // DAY * DAY),
            "dod": time(death, ~gone),
            "dod_hosp": time(death, ~gone),
            "dod_ssn": time(death, ~gone | (rng.random(size) < 0.3)),
            "expire_flag": gone.astype(np.int64),
        },
    )
    size = len(hadm)
    write_csv_gz(
        folder / "ADMISSIONS.csv.gz",
        {
            "row_id": np.arange(1, size + 1),
            "subject_id": subject[found.patient[found.earliest(found.admission)]],
            "hadm_id": hadm,
            "admittime": time(admitted // 60 * 60),
            "dischtime": time(left // 60 * 60),
            "deathtime": time(left // 60 * 60, ~died),
            "admission_type": choice(rng, ("EMERGENCY", "EMERGENCY", "ELECTIVE", "URGENT"), size),
            "admission_location": choice(rng, ("EMERGENCY ROOM ADMIT", "TRANSFER FROM HOSP/EXTRAM"), size),
            "discharge_location": words_at(("DEAD/EXPIRED", "SNF", "HOME"), ~died * rng.integers(1, 3, size)),
            "insurance": choice(rng, ("Medicare", "Private", "Medicaid"), size),
            "language": choice(rng, (None, "ENGL", "SPAN"), size),
            "religion": choice(rng, (None, "CATHOLIC", "NOT SPECIFIED"), size),
            "marital_status": choice(rng, (None, "MARRIED", "SINGLE", "WIDOWED"), size),
            "ethnicity": choice(rng, ("WHITE", "BLACK/AFRICAN AMERICAN", "UNKNOWN/NOT SPECIFIED"), size),
            "edregtime": time(admitted // 60 * 60 - 4 * HOUR, rng.random(size) < 0.5),
            "edouttime": empty(size),
            "diagnosis": choice(rng, ("SEPSIS", "PNEUMONIA", 'CORONARY ARTERY DISEASE, "CABG"'), size),
            "hospital_expire_flag": died.astype(np.int64),
            "has_chartevents_data": np.ones(size, np.int64),
        },
    )


def _write_stays(
    rng: np.random.Generator, folder: Path, found: Stays, subject: Array, hadm: Array, source: Array
) -> None:
    size = len(found)
    unit = rng.integers(len(UNITS), size=size)
    write_csv_gz(
        folder / "ICUSTAYS.csv.gz",
        {
            "row_id": np.arange(1, size + 1),
            "subject_id": subject[found.patient],
            "hadm_id": hadm[found.admission],
            "icustay_id": found.stay_id,
            "dbsource": words_at(SOURCES, source),
            "first_careunit": words_at(UNITS, unit),
            "last_careunit": words_at(UNITS, unit),
            "first_wardid": 10 + unit,
            "last_wardid": 10 + unit,
            "intime": time(found.intime),
            "outtime": time(found.outtime),
            "los": np.round((found.outtime - found.intime) / DAY, 4),
        },
    )


def _write_items(folder: Path) -> None:
    listed = [(item, source) for source, items in zip(SOURCES, (CAREVUE, METAVISION), strict=True) for item in items]
    write_csv_gz(
        folder / "D_ITEMS.csv.gz",
        {
            "row_id": np.arange(1, len(listed) + 1),
            "itemid": np.array([item.id for item, _ in listed]),
            "label": [item.label for item, _ in listed],
            "abbreviation": [item.abbreviation for item, _ in listed],
            "dbsource": [source for _, source in listed],
            "linksto": ["chartevents"] * len(listed),
            "category": [item.category for item, _ in listed],
            # The older system lists no units.
            "unitname": [item.unit if source == "metavision" else None for item, source in listed],
            "param_type": [item.param_type if source == "metavision" else None for item, source in listed],
            "conceptid": empty(len(listed)),
        },
    )


def _write_chart(
    rng: np.random.Generator, folder: Path, found: Stays, subject: Array, hadm: Array, source: Array, progress: Progress
) -> None:
    chart = charting.Chart(SCHEMA, DECOYS, early=DECOYS, anchored=True)
    catalogue = charting.Catalogue((CAREVUE, METAVISION), VARIABLES, LEFT_OUT)
    # Nurses may chart before the stay is entered, or begin late.
    origin = found.intime // 60 * 60 + 60 * rng.integers(-30, 120, len(found))
    row_id = 1
    with csv_gz(folder / "CHARTEVENTS.csv.gz") as append:
        for start in range(0, len(found), charting.STAYS):
            block = slice(start, start + charting.STAYS)
            rows = chart.rows(rng, found.values[block], charting.to_full_hour(origin[block]))
            stay, size = rows.stay + start, len(rows.stay)
            modern = source[stay] == 1
            kind = np.where((rows.kind == ERROR) & ~modern, ARTEFACT, rows.kind)  # the older system marks no errors
            rows = replace(rows, kind=kind)
            charted = origin[stay] + 60 * rows.minute
            measured = catalogue.columns(rng, rows, source[block], found.line[block])
            columns = {
                "row_id": np.arange(row_id, row_id + size),
                "subject_id": subject[found.patient[stay]],
                "hadm_id": hadm[found.admission[stay]],
                "icustay_id": pa.array(found.stay_id[stay], mask=kind == LOOSE),
                "itemid": measured["itemid"],
                "charttime": time(charted),
                "storetime": time(charted + 60 * rng.integers(0, 60, size)),
                "cgid": rng.integers(14_000, 22_000, size),
                "value": measured["value"],
                "valuenum": measured["valuenum"],
                "valueuom": measured["valueuom"],
                "warning": pa.array((rng.random(size) < 0.02).astype(np.int8), mask=~modern),
                "error": pa.array((kind == ERROR).astype(np.int8), mask=~modern),
                "resultstatus": empty(size),
                "stopped": words_at((None, "NotStopd"), (~modern).astype(np.int8)),
            }
            append(pa.table({name: column(values) for name, values in columns.items()}))
            progress(min(start + charting.STAYS, len(found)), len(found))
            row_id += size
