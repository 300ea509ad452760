"""Extraction as the paper's authors did it: a plain reading of their rules finds the same in simulated raw tables."""

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.raw_tables import EICU_COLUMNS, MIMIC4_ITEMS, Tables, charted
from timediff.data.cohort import Cohort
from timediff.sources.raw import write_raw
from timediff.sources.registry import resolve, source

DATABASES = ("mimic3", "mimic4", "eicu")
# As MIMIC_ITEMS has it, of the newer system alone; the authors take these for both versions.
METAVISION = (
    *(rule for rule in MIMIC4_ITEMS),
    ("mbp", {220052, 220181, 225312}, 0, 300),
    ("fahrenheit", {223761}, 70, 120),
    ("temperature", {223762}, 10, 50),
)
Found = dict[int, dict[tuple[str, int], float]]  # by stay: values by variable and step


def averaged(points: list[tuple[Any, str, float]]) -> dict[tuple[Any, str], float]:
    """Equal times as one."""
    found = defaultdict(list)
    for moment, variable, value in points:
        found[moment, variable].append(value)
    return {key: sum(values) / len(values) for key, values in found.items()}


def hours(moment: datetime, origin: datetime) -> float:
    return (moment - origin).total_seconds() / 3600


def nearest_rows(points: list[tuple[Any, str, float]], steps: int, forget: str | None) -> dict[tuple[str, int], float]:
    """Of each hour after the first measurement, the row of measurements that is nearest to it."""
    found, values = {}, averaged(points)
    moments = sorted({moment for moment, _, _ in points}, reverse=forget == "earlier")
    origin = min(moments)
    for step in range(steps):
        near = [m for m in moments if -0.5 <= hours(m, origin) - step < 0.5]
        rows = [{v: x for (m, v), x in values.items() if m == moment} for moment in near]
        if forget == "rows":  # each variable's own nearest measurement
            for variable in {v for row in rows for v in row}:
                own = [m for m in near if (m, variable) in values]
                found[variable, step] = values[min(own, key=lambda m: abs(hours(m, origin) - step)), variable]
        elif near:
            nearest = min(near, key=lambda m: abs(hours(m, origin) - step))
            found |= {(v, step): x for v, x in rows[near.index(nearest)].items()}
    return found


def long_enough(stay: dict[str, str], least: int) -> bool:
    lasted = datetime.fromisoformat(stay["outtime"]) - datetime.fromisoformat(stay["intime"])
    return lasted >= timedelta(hours=least)


def read_mimic3(tables: Tables, forget: str | None = None) -> Found:
    measured = charted(tables["CHARTEVENTS"], "icustay_id", METAVISION, None)
    found = {}
    for stay in tables["ICUSTAYS"]:
        points = measured[stay["icustay_id"]]
        if points and long_enough(stay, 24):
            values = nearest_rows(points, 25, forget)
            found[int(stay["icustay_id"])] = {k: round(x, 2) if k[0] == "temperature" else x for k, x in values.items()}
    return found


def read_mimic4(tables: Tables, forget: str | None = None) -> Found:
    measured = charted(tables["icu/chartevents"], "stay_id", MIMIC4_ITEMS, None)
    found = {}
    for stay in tables["icu/icustays"]:
        admitted = datetime.fromisoformat(stay["intime"])
        full = admitted.replace(minute=0, second=0)
        origin = full if admitted == full or forget == "after admission" else full + timedelta(hours=1)
        points = [(hours(m, origin), v, x) for m, v, x in measured[stay["stay_id"]]]
        exact = [(h, v, x) for h, v, x in points if 0 <= h < 72 and (h == int(h) or forget == "exactly")]
        if exact and long_enough(stay, 72):
            found[int(stay["stay_id"])] = {(v, int(h)): x for (h, v), x in averaged(exact).items()}
    return found


def read_eicu(tables: Tables, forget: str | None = None) -> Found:
    rows = defaultdict(list)
    for row in tables["vitalPeriodic"]:
        rows[row["patientunitstayid"]].append((int(row["observationoffset"]), row))
    found = {}
    for stay in tables["patient"]:
        mine = sorted(rows[stay["patientunitstayid"]], key=lambda pair: pair[0])
        offsets = [offset for offset, _ in mine]
        inside = [(offset, row) for offset, row in mine if 60 <= offset <= 1440]
        gaps = set(np.diff([offset for offset, _ in inside]))
        if int(stay["unitdischargeoffset"]) < 1440 or not stay["hospitaldischargestatus"] or not inside:
            continue
        if (offsets[0] > 60 and forget != "first") or (offsets[-1] < 1440 and forget != "last"):
            continue
        if (gaps != {5} and forget != "unbroken") or len(inside) < 276:
            continue
        values = {
            (variable, step): float(row[column])
            for step, (_, row) in enumerate(inside[:276])
            for column, variable in EICU_COLUMNS.items()
            if row[column] != ""
        }
        if values:
            found[int(stay["patientunitstayid"])] = values
    return found


READ: dict[str, Callable[..., Found]] = {"mimic3": read_mimic3, "mimic4": read_mimic4, "eicu": read_eicu}
FORGET = [
    *(("mimic3", rule) for rule in ("rows", "earlier")),
    *(("mimic4", rule) for rule in ("after admission", "exactly")),
    *(("eicu", rule) for rule in ("first", "last", "unbroken")),
]


def of(cohort: Cohort) -> Found:
    grids = [(name, k, values[:, k]) for name, values in cohort.series.items() for k in range(cohort.schema.steps)]
    return {
        int(stay): {(name, k): float(column[n]) for name, k, column in grids if not np.isnan(column[n])}
        for n, stay in enumerate(cohort.stay_id)
    }


def extracted(raw: Path, database: str) -> Cohort:
    settings = resolve(database, as_published=True)
    return source(database).extract(str(raw / database / "raw"), settings).cohort


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("published")
    for database in DATABASES:
        write_raw(database, folder / database, 40, seed=3)
    return folder


@pytest.fixture(scope="module")
def tables(raw: Path) -> dict[str, Tables]:
    return {database: Tables(raw / database) for database in DATABASES}


@pytest.mark.parametrize("database", DATABASES)
def test_a_plain_reading_of_the_authors_rules_finds_the_same(
    database: str, raw: Path, tables: dict[str, Tables]
) -> None:
    truth, found = READ[database](tables[database]), of(extracted(raw, database))
    assert len(truth) > 5
    assert found.keys() == truth.keys()
    for stay, values in truth.items():
        assert found[stay].keys() == values.keys()
        assert found[stay] == pytest.approx(values, rel=1e-12)


@pytest.mark.parametrize(("database", "forget"), FORGET)
def test_forgetting_one_of_them_changes_the_answer(database: str, forget: str, tables: dict[str, Tables]) -> None:
    assert READ[database](tables[database], forget) != READ[database](tables[database])


RHYTHMS = {  # of a grid of four steps from minute 60
    "every five minutes": ([58, 60, 65, 70, 75, 80], True),
    "begun between two steps": ([59, 62, 67, 72, 77, 82], True),
    "irregular outside of the grid": ([1, 2, 60, 65, 70, 75, 80, 81, 99], True),
    "a hole": ([60, 65, 75, 80], False),
    "a hole, and a row twice": ([60, 65, 65, 75, 80], False),
    "a minute late once": ([60, 66, 70, 75, 80], False),
    "too few": ([60, 65, 70, 80], False),
    "begun late": ([61, 66, 71, 76, 81], False),
    "ended early": ([60, 65, 70, 75], False),
}


def test_a_rhythm_is_unbroken_or_the_stay_is_dropped(tmp_path: Path) -> None:
    patients = [f"{n},p{n},90,Alive" for n, _ in enumerate(RHYTHMS)]
    vitals = [f"{n},{minute},80,16,97,70" for n, (minutes, _) in enumerate(RHYTHMS.values()) for minute in minutes]
    header = "patientunitstayid,uniquepid,unitdischargeoffset,hospitaldischargestatus"
    (tmp_path / "patient.csv").write_text("\n".join([header, *patients, ""]))
    header = "patientunitstayid,observationoffset,heartrate,respiration,sao2,systemicmean"
    (tmp_path / "vitalPeriodic.csv").write_text("\n".join([header, *vitals, ""]))
    changes = {"steps": 4, "hours": 1, "first_minute": 60, "last_minute": 80}
    settings = resolve("eicu", changes=changes, as_published=True)
    cohort = source("eicu").extract(str(tmp_path), settings).cohort
    assert [name for n, name in enumerate(RHYTHMS) if n in cohort.stay_id] == [
        name for name, (_, unbroken) in RHYTHMS.items() if unbroken
    ]
    assert not np.isnan(cohort.series["heart_rate"]).any()
