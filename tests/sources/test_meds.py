"""MEDS events: stays by their codes, values as a plain loop has them, on a made-up table and on the MIMIC-IV demo."""

import os
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import same
from timediff.data.cohort import read_cohort
from timediff.errors import TimeDiffError
from timediff.sources.meds import MEDS, Codes, MEDSSettings, MEDSVariable
from timediff.sources.registry import resolve

DEMO = Path(os.environ.get("TIMEDIFF_DATA", "../shared/data")) / "mimic4_demo" / "mimic_iv_demo_meds_events.parquet"
NOON = datetime(2150, 1, 1, 12)
EVENTS = [  # subject, hours after noon, code, value
    (2, None, "GENDER//F", None),
    (2, 0, "ICU//IN//A", None),
    (2, 0.0, "HR", 70),
    (2, 0.5, "HR", 72),
    (2, 1.0, "HR", 80),
    (2, 1.0, "HR", 90),
    (2, 2.5, "HR", 0),  # an artefact
    (2, 2.6, "TEMP//F", 98.6),
    (2, 2.7, "TEMP//C", 36.7),
    (2, 4, "ICU//OUT", None),
    (2, 4.5, "HR", 999),
    (2, 30, "ICU//IN//B", None),  # the second stay of the patient, who dies in it
    (2, 30.2, "HR", 130),
    (2, 34, "DEATH", None),
    (2, 35, "ICU//OUT", None),
    (1, 0, "ICU//IN//A", None),  # too short
    (1, 0.1, "HR", 61),
    (1, 1, "ICU//OUT", None),
    (3, 0, "ICU//IN//A", None),  # never ends
    (3, 0.1, "HR", 61),
    (4, 0, "ICU//IN//A", None),  # never measured; dies at home
    (4, 5, "ICU//OUT", None),
    (4, 300, "DEATH", None),
    (5, 0, "ICU//IN//A", None),
    (5, 0.1, "HR", 65),
    (5, 5, "ICU//OUT", None),
    (5, 12, "DEATH", None),
]
SETTINGS = MEDSSettings(
    start=("ICU//IN//*",),
    end=("ICU//OUT",),
    death=("DEATH",),
    step="1h",
    steps=3,
    hours=3,
    variable=(
        MEDSVariable(name="heart_rate", events=(Codes(codes=("HR",), above=0, below=300),)),
        MEDSVariable(
            name="temperature",
            events=(Codes(codes=("TEMP//F",), fahrenheit=True), Codes(codes=("TEMP//C",))),
            resolution=0.1,
        ),
    ),
)


def table(events: list[tuple[Any, ...]] = EVENTS) -> pa.Table:
    subject, hours, code, value = zip(*events, strict=True)
    times = [None if h is None else NOON + timedelta(hours=h) for h in hours]
    return pa.table(
        {
            "subject_id": pa.array(subject, pa.int64()),
            "time": pa.array(times, pa.timestamp("us")),
            "code": pa.array(code, pa.string()),
            "numeric_value": pa.array(value, pa.float32()),
        }
    )


@pytest.fixture
def source(tmp_path: Path) -> str:
    pq.write_table(table(), tmp_path / "events.parquet")
    return str(tmp_path / "events.parquet")


def test_stays_start_and_end_with_their_codes(source: str) -> None:
    found = MEDS().extract(source, SETTINGS)
    assert found.found == 6
    assert found.dropped == {"a recorded end": 1, "a stay of at least 3 h": 1, "at least one measurement": 1}
    assert found.cohort.stay_id.tolist() == [2, 3, 6]  # counted by patient and start, before any rule
    assert found.cohort.static["patient"].tolist() == [2, 2, 5]
    nan = np.nan
    np.testing.assert_array_equal(found.cohort.series["heart_rate"], [[72, 85, nan], [130, nan, nan], [65, nan, nan]])
    np.testing.assert_array_equal(found.cohort.series["temperature"][0], [nan, nan, 36.7])
    assert found.facts["engine"].startswith("DuckDB")
    assert len(found.facts["source_sha256"]) == 64


@pytest.mark.parametrize(
    ("changes", "died"),
    [({}, [0, 1, 0]), ({"grace": 7.0}, [0, 1, 1]), ({"discharge": ("DEATH",)}, [1, 1, 1]), ({"death": ()}, [0, 0, 0])],
)
def test_death_counts_until_the_discharge_and_its_grace(source: str, changes: dict[str, Any], died: list[int]) -> None:
    assert MEDS().extract(source, replace(SETTINGS, **changes)).cohort.static["died"].tolist() == died


def test_fahrenheit_is_converted(source: str) -> None:
    warm = replace(SETTINGS.variable[1], rule="first")
    cohort = MEDS().extract(source, replace(SETTINGS, variable=(SETTINGS.variable[0], warm))).cohort
    assert cohort.series["temperature"][0, 2] == 37.0


def test_the_grid_may_start_with_the_first_measurement(source: str) -> None:
    cohort = MEDS().extract(source, replace(SETTINGS, origin="first", rule="first")).cohort
    np.testing.assert_array_equal(cohort.series["heart_rate"][1:, 0], [130, 65])


def test_shards_are_one_table(source: str, tmp_path: Path) -> None:
    for name, part in (("data/train/0", EVENTS[:9]), ("data/train/1", EVENTS[9:20]), ("data/held_out/0", EVENTS[20:])):
        path = tmp_path / "meds" / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table(part), path)
    (tmp_path / "meds" / "metadata").mkdir()
    pq.write_table(pa.table({"code": ["HR"]}), tmp_path / "meds" / "metadata" / "codes.parquet")
    whole, parts = MEDS().extract(source, SETTINGS), MEDS().extract(str(tmp_path / "meds"), SETTINGS)
    assert same(whole.cohort, parts.cohort)
    assert whole.facts["source_sha256"] != parts.facts["source_sha256"]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"start": ("WARD",)}, "no event has a code that starts a stay (WARD)"),
        ({"start": ()}, "start lists no code"),
        ({"step": "1parsec"}, "a duration in s, min, h or d"),
        ({"value": ("number",)}, "has no column number; it has 'subject_id', 'time', 'code', 'numeric_value'"),
        (
            {"variable": (MEDSVariable(name="pulse", events=(Codes(codes=("PULSE//*",)),)),)},
            "variable 'pulse': no event has a code of its own",
        ),
        ({"hours": 500.0}, "no stay is left after the rule 'a stay of at least 500 h'"),
        (
            {"variable": (MEDSVariable(name="heart_rate", events=(Codes(codes=("HR",)),), bounds=(1, 300)),)},
            "1 value outside its bounds",
        ),
    ],
)
def test_a_mistake_is_named(source: str, changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TimeDiffError) as caught:
        MEDS().extract(source, replace(SETTINGS, **changes))
    assert sentence in str(caught.value)


def test_a_file_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "events.parquet").write_text("text")
    with pytest.raises(TimeDiffError, match="not a readable Parquet file"):
        MEDS().extract(str(tmp_path / "events.parquet"), SETTINGS)
    with pytest.raises(TimeDiffError, match="neither a Parquet file nor a folder"):
        MEDS().extract(str(tmp_path / "nowhere"), SETTINGS)


@pytest.mark.skipif(not DEMO.is_file(), reason=f"needs the MIMIC-IV demo as MEDS events at {DEMO}; set TIMEDIFF_DATA")
def test_the_demo_is_as_a_plain_loop_has_it(tmp_path: Path) -> None:
    found = MEDS().extract(str(DEMO), resolve("meds"))
    events = pq.read_table(DEMO).to_pydict()
    rows = list(zip(events["subject_id"], events["time"], events["code"], events["value"], strict=True))
    starts = sorted((s, t) for s, t, code, _ in rows if code.startswith("ICU_ADMISSION//"))
    ends = sorted((s, t) for s, t, code, _ in rows if code.startswith("ICU_DISCHARGE//"))
    lasting = [(s, t, min(e for p, e in ends if p == s and e >= t)) for s, t in starts]
    kept = [(s, t) for s, t, e in lasting if e - t >= timedelta(hours=24)]
    assert found.found == len(starts) == 140
    assert len(found.cohort) == len(kept) == 117
    assert found.cohort.static["patient"].tolist() == [s for s, _ in kept]
    assert found.cohort.label.sum() == 14  # as hospital_expire_flag of the same stays says

    pulses = [(s, t, value) for s, t, code, value in rows if code.startswith("LAB//220045//")]
    truth = np.full((len(kept), 24), np.nan)
    for i, (subject, start) in enumerate(kept):
        mine = sorted((t - start, value) for s, t, value in pulses if s == subject)
        for after, value in mine:
            if timedelta(0) <= after < timedelta(hours=24) and 0 < value < 300:
                truth[i, after // timedelta(hours=1)] = value
    np.testing.assert_array_equal(found.cohort.series["heart_rate"], truth)
    assert np.isnan(truth).mean() == pytest.approx(0.041, abs=0.001)
    found.write(tmp_path / "cohort", MEDS.defaults)
    assert same(read_cohort(tmp_path / "cohort"), found.cohort)
