"""A stay that ends within the grid has its length, and nothing beyond it, where the tables say when it ended."""

from collections import defaultdict
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from helpers.data import DATA
from helpers.raw_tables import Tables
from timediff.data.cohort import Cohort
from timediff.sources.raw import write_raw
from timediff.sources.registry import resolve, source

needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the open data sets are not here: see TIMEDIFF_DATA")


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lengths")
    for database in ("mimic3", "mimic4", "eicu"):
        write_raw(database, folder / database, 30, seed=4)
    return folder


def extracted(raw: Path, database: str, **changes: object) -> Cohort:
    return source(database).extract(str(raw / database / "raw"), resolve(database, changes=changes)).cohort


def nothing_beyond(cohort: Cohort) -> bool:
    return all(np.isnan(grid[~cohort.step_mask]).all() for grid in cohort.series.values())


@pytest.mark.parametrize("database", ["mimic3", "mimic4", "eicu"])
def test_by_default_every_stay_reaches_the_last_step(database: str, raw: Path) -> None:
    assert extracted(raw, database).length is None


def test_mimic4_counts_from_admission_to_the_end_of_the_stay(raw: Path) -> None:
    cohort = extracted(raw, "mimic4", hours=1, steps=100)
    lasted = {
        int(row["stay_id"]): datetime.fromisoformat(row["outtime"]) - datetime.fromisoformat(row["intime"])
        for row in Tables(raw / "mimic4")["icu/icustays"]
    }
    hours = np.array([lasted[stay].total_seconds() / 3600 for stay in cohort.stay_id])
    assert np.array_equal(cohort.lengths, np.minimum(np.ceil(hours), 100))
    assert cohort.lengths.min() < 72 < cohort.lengths.max() == 100
    assert nothing_beyond(cohort)


def test_mimic3_counts_from_the_first_measurement(raw: Path) -> None:
    by_admission, by_first = (
        extracted(raw, "mimic3", hours=1, steps=48, origin=origin) for origin in ("intime", "first")
    )
    common = np.intersect1d(by_admission.stay_id, by_first.stay_id)
    earlier, later = (c.lengths[np.isin(c.stay_id, common)] for c in (by_admission, by_first))
    assert len(common) > 20
    assert (np.abs(earlier - later) <= 2).all()  # charts begin within two hours of admission
    assert (earlier != later).any()
    assert nothing_beyond(by_first)


def test_eicu_counts_from_the_begin_of_the_grid_to_discharge_from_the_unit(raw: Path) -> None:
    cohort = extracted(raw, "eicu", hours=2, steps=600)
    left = {int(row["patientunitstayid"]): int(row["unitdischargeoffset"]) for row in Tables(raw / "eicu")["patient"]}
    minutes = np.array([left[stay] for stay in cohort.stay_id])
    assert np.array_equal(cohort.lengths, np.clip(np.ceil((minutes - 60) / 5), 1, 600))
    assert cohort.lengths.min() < 300
    assert nothing_beyond(cohort)


def test_where_no_stay_ends_early_all_are_equally_long(raw: Path) -> None:
    assert extracted(raw, "mimic4", hours=72, steps=74).length is not None
    long = extracted(raw, "mimic4", hours=72)
    settings = resolve("mimic4", changes={"hours": 70})
    found = source("mimic4").extract(str(raw / "mimic4" / "raw"), settings).cohort
    kept = found.take(np.isin(found.stay_id, long.stay_id))
    assert np.array_equal(kept.lengths, np.full(len(long), 72))


@needs_data
def test_meds_counts_to_the_event_that_ends_a_stay() -> None:
    settings = resolve("meds", changes={"hours": 1, "steps": 48})
    cohort = source("meds").extract(str(DATA / "mimic4_demo" / "mimic_iv_demo_meds_events.parquet"), settings).cohort
    assert cohort.lengths.min() < 24
    assert cohort.lengths.max() == 48
    assert nothing_beyond(cohort)


@needs_data
def test_a_record_of_physionet2019_is_as_long_as_its_rows() -> None:
    settings = resolve("physionet2019", changes={"hours": 1, "steps": 30})
    cohort = source("physionet2019").extract(str(DATA / "physionet2019"), settings).cohort
    counts: defaultdict[int, int] = defaultdict(int)
    import pyarrow.parquet as pq

    rows = pq.read_table(DATA / "physionet2019" / "training_setA.parquet", columns=["patient_id", "ICULOS"])
    for patient in rows["patient_id"].to_pylist():
        counts[int(patient)] += 1
    assert np.array_equal(cohort.lengths, [min(counts[int(stay)], 30) for stay in cohort.stay_id])
    assert nothing_beyond(cohort)
