"""A simulated MIMIC-IV: one charting system, and a grid that begins on admission to the unit."""

from pathlib import Path

import numpy as np
import pyarrow as pa

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.runtime.progress import Progress
from timediff.sources.raw import charting, mimic4_hospital
from timediff.sources.raw.charting import ARTEFACT, TEXT, VALID
from timediff.sources.raw.csvgz import choice, column, csv_gz, empty, time, words_at, write_csv_gz
from timediff.sources.raw.items import METAVISION, VARIABLES
from timediff.sources.raw.stays import DAY, HOUR, SHORT, UNMEASURED, Stays, numbers, plan

STEPS, HOURS = 72, 72
VITALS = ("heart_rate", "sbp", "dbp", "resp_rate", "spo2")
UNITS = (
    "Medical Intensive Care Unit (MICU)",
    "Surgical Intensive Care Unit (SICU)",
    "Cardiac Vascular Intensive Care Unit (CVICU)",
)
DECOYS = (ARTEFACT, TEXT)
SCHEMA = charting.schema(VITALS, STEPS, test=0.25)


def write(folder: Path, stays: int, seed: int, progress: Progress) -> Cohort:
    """Writes the tables into `folder` and returns what extraction must find in them."""
    rng = np.random.default_rng([seed, stays, 4])
    extremes = {name: VARIABLES[name].extremes for name in VITALS}
    rules = (SHORT, UNMEASURED)
    found = plan(rng, stays, rules, HOURS, extremes, steps=STEPS, within=STEPS, seed=seed, first_id=30_000_001)
    subject = numbers(rng, 10_000_001, found.patient.max() + 1)
    hadm = numbers(rng, 20_000_001, found.admission.max() + 1)
    _write_people(rng, folder / "hosp", found, subject, hadm)
    _write_stays(rng, folder / "icu", found, subject, hadm)
    _write_items(folder / "icu")
    _write_chart(rng, folder / "icu", found, subject, hadm, progress)
    mimic4_hospital.write(rng, folder / "hosp", found, subject, hadm)
    return found.truth(SCHEMA, subject)


def _write_people(rng: np.random.Generator, folder: Path, found: Stays, subject: Array, hadm: Array) -> None:
    admitted, left, died = found.hospital(rng)
    first, last = found.earliest(found.patient), found.latest(found.patient)
    age = np.floor(found.age[first]).astype(np.int64)
    year = time(found.intime[first]).astype("datetime64[Y]").astype(np.int64) + 1970
    death = time(left[found.admission[last]], ~found.died[last]).astype("datetime64[D]")
    write_csv_gz(
        folder / "patients.csv.gz",
        {
            "subject_id": subject,
            "gender": words_at(("F", "M"), found.sex[first]),
            "anchor_age": np.where(age > 89, 91, np.maximum(age, 18)),  # adults only, and nobody is shown older than 91
            "anchor_year": year,
            "anchor_year_group": choice(rng, ("2008 - 2010", "2011 - 2013", "2014 - 2016"), len(subject)),
            "dod": death,
        },
    )
    size = len(hadm)
    write_csv_gz(
        folder / "admissions.csv.gz",
        {
            "subject_id": subject[found.patient[found.earliest(found.admission)]],
            "hadm_id": hadm,
            "admittime": time(admitted // 60 * 60),
            "dischtime": time(left // 60 * 60),
            "deathtime": time(left // 60 * 60, ~died),
            "admission_type": choice(rng, ("EW EMER.", "URGENT", "OBSERVATION ADMIT"), size),
            "admit_provider_id": choice(rng, ("P03YMR", "P41R5N", "P233F6"), size),
            "admission_location": choice(rng, ("EMERGENCY ROOM", "PHYSICIAN REFERRAL"), size),
            "discharge_location": words_at(("DIED", "HOME", None), ~died * rng.integers(1, 3, size)),
            "insurance": choice(rng, ("Medicare", "Medicaid", "Other"), size),
            "language": choice(rng, ("ENGLISH", "?"), size),
            "marital_status": choice(rng, (None, "MARRIED", "SINGLE"), size),
            "race": choice(rng, ("WHITE", "BLACK/AFRICAN AMERICAN", "UNKNOWN"), size),
            "edregtime": time(admitted // 60 * 60 - 4 * HOUR, rng.random(size) < 0.5),
            "edouttime": empty(size),
            "hospital_expire_flag": died.astype(np.int64),
        },
    )


def _write_stays(rng: np.random.Generator, folder: Path, found: Stays, subject: Array, hadm: Array) -> None:
    unit = rng.integers(len(UNITS), size=len(found))
    write_csv_gz(
        folder / "icustays.csv.gz",
        {
            "subject_id": subject[found.patient],
            "hadm_id": hadm[found.admission],
            "stay_id": found.stay_id,
            "first_careunit": words_at(UNITS, unit),
            "last_careunit": words_at(UNITS, unit),
            "intime": time(found.intime),
            "outtime": time(found.outtime),
            "los": (found.outtime - found.intime) / DAY,
        },
    )


def _write_items(folder: Path) -> None:
    size = len(METAVISION)
    write_csv_gz(
        folder / "d_items.csv.gz",
        {
            "itemid": np.array([item.id for item in METAVISION]),
            "label": [item.label for item in METAVISION],
            "abbreviation": [item.abbreviation for item in METAVISION],
            "linksto": ["chartevents"] * size,
            "category": [item.category for item in METAVISION],
            "unitname": [item.unit for item in METAVISION],
            "param_type": [item.param_type for item in METAVISION],
            "lownormalvalue": empty(size),
            "highnormalvalue": empty(size),
        },
    )


def _write_chart(
    rng: np.random.Generator, folder: Path, found: Stays, subject: Array, hadm: Array, progress: Progress
) -> None:
    chart = charting.Chart(SCHEMA, DECOYS, early=(VALID, *DECOYS), anchored=False)
    catalogue = charting.Catalogue((METAVISION,), VITALS)
    origin = -(-found.intime // 60) * 60  # charts are kept in whole minutes: the first one that is not before intime
    with csv_gz(folder / "chartevents.csv.gz") as append:
        for start in range(0, len(found), charting.STAYS):
            block = slice(start, start + charting.STAYS)
            rows = chart.rows(rng, found.values[block], charting.to_full_hour(origin[block]))
            stay, size = rows.stay + start, len(rows.stay)
            charted = origin[stay] + 60 * rows.minute
            measured = catalogue.columns(rng, rows, np.zeros(charting.STAYS, np.int64), found.line[block])
            columns = {
                "subject_id": subject[found.patient[stay]],
                "hadm_id": hadm[found.admission[stay]],
                "stay_id": found.stay_id[stay],
                "caregiver_id": rng.integers(10_000, 99_999, size),
                "charttime": time(charted),
                "storetime": time(charted + 60 * rng.integers(0, 60, size)),
                "itemid": measured["itemid"],
                "value": measured["value"],
                "valuenum": measured["valuenum"],
                "valueuom": measured["valueuom"],
                "warning": (rng.random(size) < 0.02).astype(np.int8),
            }
            append(pa.table({name: column(values) for name, values in columns.items()}))
            progress(min(start + charting.STAYS, len(found)), len(found))
