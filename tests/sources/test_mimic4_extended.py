"""The supplement to MIMIC-IV on the real demo: its features are what Python's csv module finds in the same files."""

import csv
import gzip
import os
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from conftest import same
from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import TimeDiffError
from timediff.sources import charted_events
from timediff.sources.engines import connect
from timediff.sources.mimic import TABLES4
from timediff.sources.mimic4_extended import ExtendedSettings, extend, extended_settings
from timediff.sources.raw import write_raw
from timediff.sources.registry import resolve

DEMO = Path(os.environ.get("TIMEDIFF_DATA", "../shared/data")) / "mimic4_demo"
pytestmark = pytest.mark.skipif(
    not DEMO.is_dir(), reason="no MIMIC-IV demo: set TIMEDIFF_DATA to the folder that holds it"
)


def records(table: str) -> Iterator[dict[str, str]]:
    with gzip.open(DEMO / f"{table}.csv.gz", "rt") as file:
        yield from csv.DictReader(file)


def extended(folder: Path, settings: ExtendedSettings) -> tuple[Cohort, Cohort]:
    """The cohort of the vital signs alone, and with the supplement."""
    with connect(str(folder)) as engine:
        cohort = charted_events.extract(engine, TABLES4, resolve("mimic4")).cohort
        return cohort, extend(engine, cohort, settings)


@pytest.fixture(scope="module")
def cohorts() -> tuple[Cohort, Cohort]:
    return extended(DEMO, extended_settings())


@pytest.fixture(scope="module")
def vitals(cohorts: tuple[Cohort, Cohort]) -> Cohort:
    return cohorts[0]


@pytest.fixture(scope="module")
def cohort(cohorts: tuple[Cohort, Cohort]) -> Cohort:
    return cohorts[1]


@pytest.fixture(scope="module")
def stays(cohort: Cohort) -> list[dict[str, str]]:
    """The cohort's rows of icustays, in its order."""
    rows = {int(row["stay_id"]): row for row in records("icu/icustays")}
    return [rows[stay] for stay in cohort.stay_id]


def named(cohort: Cohort, prefix: str) -> list[str]:
    return [feature.name for feature in cohort.schema.static if feature.name.startswith(prefix)]


def test_it_adds_to_the_cohort_and_changes_nothing(vitals: Cohort, cohort: Cohort) -> None:
    own = vitals.schema.features
    assert len(cohort) == 55
    assert cohort.schema.features[: len(own)] == own
    assert len(cohort.schema.temporal) == len(vitals.schema.temporal) + 1
    first = {name: cohort.series[name] for name in vitals.series}, {name: cohort.static[name] for name in vitals.static}
    assert same(Cohort(vitals.schema, cohort.stay_id, *first), vitals)


def test_it_is_a_cohort_that_can_be_written(cohort: Cohort, tmp_path: Path) -> None:
    cohort.write(tmp_path / "cohort")
    assert same(read_cohort(tmp_path / "cohort"), cohort)


def test_codes_are_the_most_frequent_of_the_database(cohort: Cohort, stays: list[dict[str, str]]) -> None:
    admissions = defaultdict(set)
    for row in records("hosp/diagnoses_icd"):
        admissions[row["icd_code"].strip(), row["icd_version"]].add(row["hadm_id"])
    most = sorted(admissions, key=lambda key: (-len(admissions[key]), key))[:72]
    assert named(cohort, "icd") == [f"icd{version}_{code}" for code, version in most]
    for code, version in most:
        expected = [row["hadm_id"] in admissions[code, version] for row in stays]
        assert np.array_equal(cohort.static[f"icd{version}_{code}"], expected)
    assert len(admissions["4019", "9"]) == 68
    assert cohort.static["icd9_4019"].sum() == 12


def test_antibiotics_are_the_most_frequent_of_the_database(cohort: Cohort, stays: list[dict[str, str]]) -> None:
    admissions = defaultdict(set)
    for row in records("hosp/prescriptions"):
        admissions[" ".join(row["drug"].lower().split())].add(row["hadm_id"])
    names = named(cohort, "abx_")
    counts = [len(admissions[name.removeprefix("abx_").replace("_", " ")]) for name in names]
    assert len(names) == 43  # the demo has no more
    assert counts == sorted(counts, reverse=True)
    assert names[:4] == ["abx_vancomycin", "abx_ceftriaxone", "abx_cefepime", "abx_cefazolin"]
    for drug in ("vancomycin", "ceftriaxone"):
        assert np.array_equal(cohort.static[f"abx_{drug}"], [row["hadm_id"] in admissions[drug] for row in stays])
    assert not [name for name in names if "ophth" in name or "cream" in name or "fluconazole" in name]


def test_glucose_is_what_was_measured_within_ten_minutes_of_the_grid(
    cohort: Cohort, stays: list[dict[str, str]]
) -> None:
    charted: defaultdict[str, list[tuple[datetime, float]]] = defaultdict(list)
    labs: defaultdict[str, list[tuple[datetime, float]]] = defaultdict(list)
    for table, ids, key, found in (
        ("icu/chartevents", ("225664", "220621", "226537"), "stay_id", charted),
        ("hosp/labevents", ("50809", "50931"), "subject_id", labs),
    ):
        for row in records(table):
            if row["itemid"] in ids and row["valuenum"] and float(row["valuenum"]) > 0:
                found[row[key]].append((datetime.fromisoformat(row["charttime"]), float(row["valuenum"])))
    expected = np.full((len(cohort), 72), np.nan)
    for n, stay in enumerate(stays):
        cell = defaultdict(list)
        for time, value in charted[stay["stay_id"]] + labs[stay["subject_id"]]:
            minutes = (time - datetime.fromisoformat(stay["intime"])).total_seconds() / 60
            hour = round(minutes / 60)
            if 0 <= hour < 72 and -10 <= minutes - 60 * hour < 10:
                cell[hour].append(value)
        for hour, values in cell.items():
            expected[n, hour] = np.mean(values)
    np.testing.assert_allclose(cohort.series["glucose"], expected, rtol=1e-12)


def test_glucose_is_sparse_and_sane(cohort: Cohort) -> None:
    glucose = cohort.series["glucose"]
    observed = glucose[~np.isnan(glucose)]
    assert cohort.schema["glucose"].unit == "mg/dL"
    assert len(observed) == 272  # of 3,960 cells
    assert observed.min() == 64
    assert observed.max() == 505


def test_age_is_that_of_the_first_visit(cohort: Cohort, stays: list[dict[str, str]]) -> None:
    ages = {row["subject_id"]: float(row["anchor_age"]) for row in records("hosp/patients")}
    assert np.array_equal(cohort.static["age"], [ages[row["subject_id"]] for row in stays])
    assert cohort.static["age"].min() >= 18
    assert cohort.schema["age"].bounds == (16, 91)


def test_fewer_are_the_first_of_the_many(cohort: Cohort) -> None:
    _, few = extended(DEMO, replace(extended_settings(), codes=3, antibiotics=2))
    assert named(few, "icd") == named(cohort, "icd")[:3]
    assert named(few, "abx_") == named(cohort, "abx_")[:2]


def test_without_the_laboratory_there_is_less_glucose(cohort: Cohort, tmp_path: Path) -> None:
    for path in DEMO.glob("*/*.csv.gz"):
        if not path.name.startswith("labevents"):
            (tmp_path / path.name).symlink_to(path.resolve())
    _, poorer = extended(tmp_path, extended_settings())
    glucose = poorer.series["glucose"]
    assert 0 < np.isfinite(glucose).sum() < np.isfinite(cohort.series["glucose"]).sum()


def test_missing_tables_are_named(tmp_path: Path) -> None:
    write_raw("mimic4", tmp_path / "simulated", 5)
    for table in ("diagnoses_icd", "prescriptions"):
        (tmp_path / "simulated" / "raw" / "hosp" / f"{table}.csv.gz").unlink()
    with pytest.raises(TimeDiffError, match=r"diagnoses_icd(.|\n)*prescriptions"):
        extended(tmp_path / "simulated" / "raw", extended_settings())
