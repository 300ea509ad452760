"""A simulated eICU: one row of monitor values every few minutes, unfiltered, at offsets from admission to the unit."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema, Split
from timediff.runtime.progress import Progress
from timediff.sources import simulated
from timediff.sources.raw import charting
from timediff.sources.raw.csvgz import choice, column, csv_gz, words_at, write_csv_gz
from timediff.sources.raw.stays import DAY, NO_OUTCOME, SHORT, STATIC, UNMEASURED, Stays, apart, near, numbers, plan

STEPS, HOURS, MINUTES, FIRST = 276, 24, 5, 60  # steps of 5 minutes, from minute 60
COLUMNS = {"heart_rate": "heartrate", "resp_rate": "respiration", "spo2": "sao2", "mbp": "systemicmean"}
# Nothing is filtered, so the wildest values are part of the truth.
WILD = {"heart_rate": (0.0, 300.0), "resp_rate": (0.0, 180.0), "spo2": (5.0, 100.0), "mbp": (-20.0, 320.0)}
TYPICAL = np.array([85.0, 18.0, 97.0, 80.0])
AROUND = 24  # steps charted before the window and after it
STEADY = 0.5  # of the stays have a row every five minutes, as the monitor's table mostly has; the others have gaps
LOW, HIGH = np.array(list(WILD.values())).T
VITAL_PERIODIC = (
    *("vitalperiodicid", "patientunitstayid", "observationoffset", "temperature", "sao2", "heartrate", "respiration"),
    *("cvp", "etco2", "systemicsystolic", "systemicdiastolic", "systemicmean", "pasystolic", "padiastolic", "pamean"),
    *("st1", "st2", "st3", "icp"),
)


def schema() -> Schema:
    units = simulated.schema()
    vitals = (Feature(name, "continuous", unit=units[name].unit, resolution=1) for name in COLUMNS)
    return Schema((*vitals, *STATIC), STEPS, "5min", Split(test=0.25, stratify="died", group="patient"))


def write(folder: Path, stays: int, seed: int, progress: Progress) -> Cohort:
    """Writes the tables into `folder` and returns what extraction must find in them."""
    rng = np.random.default_rng([seed, stays, 5])
    rules = (SHORT, UNMEASURED, NO_OUTCOME)
    grid = {"steps": STEPS, "steps_per_hour": 60 // MINUTES, "within": STEPS}
    # The monitor's table has the pressures of a line; those of a cuff stand in another one.
    found = plan(rng, stays, rules, HOURS, WILD, **grid, line_only=["mbp"], seed=seed, first_id=141_001)
    patients = found.patient.max() + 1
    hospitals = 50 + rng.permutation(60)[: max(2, min(40, patients // 10))]
    hospital = rng.choice(hospitals, patients)
    prefix = np.char.zfill((hospital % 31).astype(str), 3)
    pid = np.char.add(np.char.add(prefix, "-"), numbers(rng, 1_001, patients).astype(str)).astype(object)
    _write_hospitals(rng, folder, hospitals)
    _write_patients(rng, folder, found, pid, hospital)
    _write_vitals(rng, folder, found, progress)
    return found.truth(schema(), pid)


def _write_hospitals(rng: np.random.Generator, folder: Path, hospitals: Array) -> None:
    size = len(hospitals)
    columns = {
        "hospitalid": np.sort(hospitals),
        "numbedscategory": choice(rng, (None, "<100", "100 - 249", "250 - 499", ">= 500"), size),
        "teachingstatus": choice(rng, ("f", "t"), size),
        "region": choice(rng, (None, "Midwest", "South", "West", "Northeast"), size),
    }
    write_csv_gz(folder / "hospital.csv.gz", columns)


def _write_patients(rng: np.random.Generator, folder: Path, found: Stays, pid: Array, hospital: Array) -> None:
    size = len(found)
    first = found.earliest(found.patient)[found.patient]
    began, ended, _ = found.hospital(rng)
    began, ended = began[found.admission], ended[found.admission]
    alive = np.where(found.rule == NO_OUTCOME, 2, ~found.died)
    age = np.floor(found.age[first]).astype(np.int64)
    again = found.intime > found.intime[found.earliest(found.admission)][found.admission]
    weight = np.round(rng.normal(82, 20, size).clip(35, 200), 1)
    columns = {
        "patientunitstayid": found.stay_id,
        "patienthealthsystemstayid": numbers(rng, 128_001, found.admission.max() + 1)[found.admission],
        "gender": words_at(("Female", "Male"), found.sex[first]),
        "age": words_at([*map(str, range(90)), "> 89"], np.minimum(age, 90)),
        "ethnicity": choice(rng, (None, "Caucasian", "African American", "Hispanic"), size),
        "hospitalid": hospital[found.patient],
        "wardid": hospital[found.patient] + 30,
        "apacheadmissiondx": choice(rng, (None, "Pneumonia, other", "CVA, cerebrovascular accident/stroke"), size),
        "admissionheight": np.round(rng.normal(169, 10, size), 1),
        "hospitaladmittime24": _clock(began),
        "hospitaladmitoffset": (began - found.intime) // 60,
        "hospitaladmitsource": choice(rng, (None, "Emergency Department", "Operating Room"), size),
        "hospitaldischargeyear": rng.integers(2014, 2016, size),
        "hospitaldischargetime24": _clock(ended),
        "hospitaldischargeoffset": (ended - found.intime) // 60,
        "hospitaldischargelocation": words_at(("Death", "Home", None), alive),
        "hospitaldischargestatus": words_at(("Expired", "Alive", None), alive),
        "unittype": choice(rng, ("Med-Surg ICU", "MICU", "SICU", "Cardiac ICU"), size),
        "unitadmittime24": _clock(found.intime),
        "unitadmitsource": choice(rng, ("Emergency Department", "Floor", "Operating Room"), size),
        "unitvisitnumber": 1 + again,
        "unitstaytype": words_at(("admit", "readmit"), again.astype(np.int64)),
        "admissionweight": np.where(rng.random(size) < 0.1, np.nan, weight),
        "dischargeweight": np.where(rng.random(size) < 0.4, np.nan, weight),
        "unitdischargetime24": _clock(found.outtime),
        "unitdischargeoffset": (found.outtime - found.intime) // 60,
        "unitdischargelocation": words_at(("Death", "Floor", None), alive),
        # The unit's status does not tell the hospital's: some die on the ward.
        "unitdischargestatus": words_at(("Expired", "Alive"), np.where(rng.random(size) < 0.4, 1, alive % 2)),
        "uniquepid": pid[found.patient],
    }
    write_csv_gz(folder / "patient.csv.gz", columns)


def _write_vitals(rng: np.random.Generator, folder: Path, found: Stays, progress: Progress) -> None:
    number = 1_000_001
    with csv_gz(folder / "vitalPeriodic.csv.gz") as append:
        for start in range(0, len(found), charting.STAYS):
            stay, offset, values = _rows(rng, found.values[start : start + charting.STAYS])
            size = len(stay)
            columns: dict[str, Any] = dict(zip(COLUMNS.values(), values.T, strict=True))
            columns |= _others(rng, values[:, 3])
            columns["vitalperiodicid"] = number + rng.permutation(size)
            columns["patientunitstayid"] = found.stay_id[start + stay]
            columns["observationoffset"] = offset
            append(pa.table({name: column(columns.get(name, np.full(size, np.nan))) for name in VITAL_PERIODIC}))
            progress(min(start + charting.STAYS, len(found)), len(found))
            number += size


def _rows(rng: np.random.Generator, values: Floats) -> tuple[Array, Array, Floats]:
    """Stay, offset and the four values of each row; in random order."""
    stays, vitals, _ = values.shape
    steady = rng.random((stays,)) < STEADY
    beside = near(rng, np.broadcast_to(TYPICAL, (stays, 2 * AROUND, vitals)), LOW, HIGH, 1)
    parts = [beside[:, :AROUND], values.transpose(0, 2, 1), beside[:, AROUND:]]
    values = np.concatenate(parts, axis=1)  # (S, steps, V)
    there = np.isfinite(values).any(axis=2) | (rng.random(values.shape[:2]) < 0.5)
    phase = rng.integers(0, MINUTES, (stays,))  # of the rows of a steady stay
    there[steady, AROUND:-AROUND] = True
    _cut(rng, there, steady, phase)
    stay, step = np.nonzero(there)
    true, size = values[stay, step], len(stay)
    minute = rng.integers(0, MINUTES, size) * (rng.random(size) < 0.6)
    minute = np.where(steady[stay], phase[stay], minute)
    offset = FIRST + MINUTES * (step - AROUND) + minute

    which = np.where(steady[stay], 0.5, rng.random(size))  # neither an earlier row nor a second one
    before, twice = (which < 0.15) & (minute > 0), which > 0.96
    some = rng.random(true.shape) < 0.2
    # An earlier row holds other values, or the true one where the later row has none.
    final = np.where(some & before[:, None], np.nan, true)
    earlier = np.where(some, true, near(rng, true, LOW, HIGH, 1))[before]
    # Two rows at one minute have the truth as their mean, or only one of them has it.
    d = np.where(twice[:, None] & ~some, apart(rng, true, LOW, HIGH, 1), 0)
    second = np.where(some, np.nan, true + d)[twice]

    sooner = (rng.random(size) * minute).astype(np.int64)
    order = rng.permutation(size + before.sum() + twice.sum())
    return (
        np.concatenate([stay, stay[before], stay[twice]])[order],
        np.concatenate([offset, (offset - minute + sooner)[before], offset[twice]])[order],
        np.concatenate([final - d, earlier, second])[order],
    )


def _cut(rng: np.random.Generator, there: Array, steady: Array, phase: Array) -> None:
    """Steady stays begin before the window and end after it, but for some: their rows begin or end within it."""
    kind = rng.permutation(len(steady)) % 5
    late, early = steady & (kind == 0), steady & (kind == 1)
    there[late, :AROUND], phase[late] = False, np.maximum(phase[late], 1)
    there[early, -AROUND:] = False
    whole = steady & (kind > 1)
    # The last row before the window or its first one is at minute 60 at the latest, the first after it at 1440.
    there[whole, AROUND - 1] = there[whole, -AROUND] = True


def _others(rng: np.random.Generator, mean: Floats) -> dict[str, Any]:
    """Columns of the same table that are not asked for."""
    size = len(mean)
    return {
        "temperature": np.where(rng.random(size) < 0.9, np.nan, np.round(rng.normal(37, 0.5, size), 1)),
        "cvp": np.where(rng.random(size) < 0.8, np.nan, rng.integers(2, 18, size)),
        "systemicsystolic": mean + 35,
        "systemicdiastolic": mean - 18,
        "st1": np.where(rng.random(size) < 0.8, np.nan, np.round(rng.normal(0, 0.5, size), 1)),
    }


def _clock(seconds: Array) -> Any:
    """The time of day, as 23:36:00."""
    minutes = [f"{hour:02d}:{minute:02d}:00" for hour in range(24) for minute in range(60)]
    return words_at(minutes, seconds % DAY // 60)
