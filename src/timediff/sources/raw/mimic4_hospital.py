"""Hospital tables of a simulated MIMIC-IV, for the supplement: diagnoses, prescriptions and glucose."""

from pathlib import Path

import numpy as np

from timediff.data.arrays import Array
from timediff.sources.raw.csvgz import choice, empty, time, words_at, write_csv_gz
from timediff.sources.raw.stays import HOUR, Stays

MOST = 12  # diagnoses of an admission, and likewise prescriptions
ICD = (
    *((code, 9) for code in ("4019", "2724", "53081", "25000", "42731", "311", "4280", "41401", "V1582", "5849")),
    *((code, 10) for code in ("I10", "E785", "Z87891", "K219", "F329", "I2510", "F419", "N179", "Z794", "E039")),
    *((f"{number:03d}", 9) for number in range(1, 81)),  # seldom ones
)
# As people write them: case and spaces differ, and what only sounds like an antibiotic does not count.
ANTIBIOTICS = (
    *("Vancomycin", "vancomycin", "CefTRIAXone", "CeftriaXONE", "CefazoLIN", "CeFAZolin", "CefePIME", "Meropenem"),
    *("Azithromycin", "Azithromycin ", "MetRONIDAZOLE (FLagyl)", "MetroNIDAZOLE", "Levofloxacin", "LevoFLOXacin"),
    *("Piperacillin-Tazobactam", "Ampicillin Sodium", "Linezolid", "Gentamicin", "Vancomycin Oral Liquid"),
)
OTHER_DRUGS = ("Heparin", "Furosemide", "Erythromycin 0.5% Ophth Oint", "Mupirocin Cream 2%", "Acetaminophen")
GLUCOSE = (50809, 50931)  # in blood gases, in serum
OTHER_LABS = (50868, 51222)
OUT_OF_RANGE = (999999.0, 0.0)  # not plausible


def write(rng: np.random.Generator, folder: Path, found: Stays, subject: Array, hadm: Array) -> None:
    """Writes the tables of all admissions into `folder`."""
    owner = subject[found.patient[found.earliest(found.admission)]]
    _write_diagnoses(rng, folder, owner, hadm)
    _write_prescriptions(rng, folder, owner, hadm, found)
    _write_labs(rng, folder, found, subject)


def _write_diagnoses(rng: np.random.Generator, folder: Path, owner: Array, hadm: Array) -> None:
    count = rng.integers(0, MOST, len(hadm))
    of = np.repeat(np.arange(len(hadm)), count)
    code = (len(ICD) * rng.random(len(of)) ** 3).astype(np.int64)  # the first ones are the most frequent
    write_csv_gz(
        folder / "diagnoses_icd.csv.gz",
        {
            "subject_id": owner[of],
            "hadm_id": hadm[of],
            "seq_num": np.arange(len(of)) - np.repeat(np.cumsum(count) - count, count) + 1,
            "icd_code": words_at([name for name, _ in ICD], code),
            "icd_version": np.array([version for _, version in ICD])[code],
        },
    )


def _write_prescriptions(rng: np.random.Generator, folder: Path, owner: Array, hadm: Array, found: Stays) -> None:
    of = np.repeat(np.arange(len(hadm)), rng.integers(0, MOST, len(hadm)))
    size, drugs = len(of), (*ANTIBIOTICS, *OTHER_DRUGS)
    drug = np.where(rng.random(size) < 0.5, (len(ANTIBIOTICS) * rng.random(size) ** 2).astype(np.int64), -1)
    drug = np.where(drug < 0, rng.integers(len(ANTIBIOTICS), len(drugs), size), drug)
    begun = found.intime[found.earliest(found.admission)][of] + HOUR * rng.integers(0, 72, size)
    columns = {
        "subject_id": owner[of],
        "hadm_id": hadm[of],
        "pharmacy_id": 10_000_000 + rng.permutation(size),
        **{name: empty(size) for name in ("poe_id", "poe_seq", "order_provider_id")},
        "starttime": time(begun),
        "stoptime": time(begun + HOUR * rng.integers(1, 200, size)),
        "drug_type": choice(rng, ("MAIN", "BASE"), size),
        "drug": words_at(drugs, drug),
    }
    others = (
        *("formulary_drug_cd", "gsn", "ndc", "prod_strength", "form_rx", "dose_val_rx", "dose_unit_rx"),
        *("form_val_disp", "form_unit_disp", "doses_per_24_hrs", "route"),
    )
    write_csv_gz(folder / "prescriptions.csv.gz", columns | {name: empty(size) for name in others})


def _write_labs(rng: np.random.Generator, folder: Path, found: Stays, subject: Array) -> None:
    """Some values a day, near full hours or far from them, also before admission."""
    of = np.repeat(np.arange(len(found)), rng.integers(4, 40, len(found)))
    size = len(of)
    hour = found.intime[of] // HOUR * HOUR + HOUR * rng.integers(-4, 80, size)
    near = rng.random(size) < 0.7  # to the full hour; half of the others are exactly on the border of what rounds to it
    minute = np.where(near, rng.integers(-9, 10, size), np.where(rng.random(size) < 0.5, 10, rng.integers(0, 60, size)))
    value = np.round(np.exp(rng.normal(4.9, 0.35, size)))
    odd = rng.random(size)
    value = np.where(odd < 0.03, rng.choice(OUT_OF_RANGE, size), value)
    item = np.where(rng.random(size) < 0.8, rng.choice(GLUCOSE, size), rng.choice(OTHER_LABS, size))
    number = np.where(odd > 0.97, np.nan, value)
    columns = {
        "labevent_id": 1 + rng.permutation(size),
        "subject_id": subject[found.patient[of]],
        **{name: empty(size) for name in ("hadm_id", "specimen_id")},
        "itemid": item,
        "order_provider_id": empty(size),
        "charttime": time(hour + 60 * minute),
        "storetime": time(hour + 60 * minute + HOUR),
        "value": empty(size),
        "valuenum": number,
        "valueuom": choice(rng, ("mg/dL",), size),
    }
    others = ("ref_range_lower", "ref_range_upper", "flag", "priority", "comments")
    write_csv_gz(folder / "labevents.csv.gz", columns | {name: empty(size) for name in others})
