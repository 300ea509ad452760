"""Any table: long or wide, CSV or Parquet, comes back as the cohort it was written from; each mistake is a sentence."""

import gzip
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

from conftest import same
from timediff.data.cohort import Cohort, read_cohort
from timediff.data.schema import Feature
from timediff.errors import TimeDiffError
from timediff.sources.registry import resolve
from timediff.sources.simulated import simulate
from timediff.sources.table import TableFeature, TableSettings, TableSource


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return simulate(40, steps=6, seed=3)


def entries(cohort: Cohort) -> tuple[TableFeature, ...]:
    def entry(f: Feature) -> TableFeature:
        return TableFeature(f.name, None, f.kind, f.scope, f.role, f.unit, f.bounds, f.resolution, f.classes)

    return tuple(entry(feature) for feature in cohort.schema.features)


def wide(cohort: Cohort) -> pa.Table:
    """One row a step, the static values repeated in each."""
    series, static = cohort.tables()
    at = np.searchsorted(cohort.stay_id, series["stay_id"].to_numpy())
    for feature in cohort.schema.static:
        series = series.append_column(feature.name, static[feature.name].take(pa.array(at)))
    return series


def long(cohort: Cohort) -> pa.Table:
    """One row a value, in no order; the values of text features make the column text."""
    rows = []
    for row in wide(cohort).to_pylist():
        rows += [
            {"stay_id": row["stay_id"], "step": row["step"], "variable": name, "value": str(row[name])}
            for name in (f.name for f in cohort.schema.features)
            if row[name] is not None
        ]
    return pa.Table.from_pylist([rows[i] for i in np.random.default_rng(0).permutation(len(rows))])


def written(table: pa.Table, path: Path) -> str:
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".gz":
        with gzip.open(path, "wb") as file:
            pc.write_csv(table, file)
    else:
        pc.write_csv(table, path)
    return str(path)


def settings(cohort: Cohort, layout: str, **changes: Any) -> TableSettings:
    columns = {"variable": "variable", "value": "value"} if layout == "long" else {}
    given: dict[str, Any] = {
        "layout": layout,
        "stay": "stay_id",
        "time": "step",
        "time_unit": "step",
        "origin": "zero",
        **columns,
    }
    given |= {"step": "1h", "steps": cohort.schema.steps, "relation": cohort.schema.relations}
    return TableSettings(**given, feature=entries(cohort), **changes)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("layout", ["long", "wide"])
def test_a_cohort_comes_back_exactly(cohort: Cohort, tmp_path: Path, layout: str, suffix: str) -> None:
    source = written({"long": long, "wide": wide}[layout](cohort), tmp_path / f"table{suffix}")
    found = TableSource().extract(source, settings(cohort, layout))
    assert same(found.cohort, cohort)
    assert found.found == len(cohort)
    assert set(found.dropped.values()) == {0}
    assert found.facts["engine"].startswith("DuckDB")
    assert len(found.facts["source_sha256"]) == 64


def test_every_kind_of_feature_comes_back(mixed: Cohort, tmp_path: Path) -> None:
    found = TableSource().extract(written(wide(mixed), tmp_path / "mixed.csv"), settings(mixed, "wide")).cohort
    truth = replace(mixed, schema=settings(mixed, "wide").schema)
    assert same(found, truth)
    found.write(tmp_path / "cohort")
    assert same(read_cohort(tmp_path / "cohort"), truth)


def test_static_values_may_lie_in_a_second_file(cohort: Cohort, tmp_path: Path) -> None:
    series, static = cohort.tables()
    source = written(series, tmp_path / "series.parquet")
    written(static, tmp_path / "static.csv")
    assert same(TableSource().extract(source, settings(cohort, "wide", static="static.csv")).cohort, cohort)


def test_a_stay_without_rows_is_dropped_by_name(cohort: Cohort, tmp_path: Path) -> None:
    series, static = cohort.tables()
    source = written(series.filter(pa.compute.not_equal(series["stay_id"], cohort.stay_id[0])), tmp_path / "s.parquet")
    written(static, tmp_path / "static.csv")
    found = TableSource().extract(source, settings(cohort, "wide", static="static.csv"))
    assert found.found == 40
    assert len(found.cohort) == 39
    assert found.dropped["at least one measurement on the grid"] == 1


IRREGULAR = """who,when,what,number,admitted
b,2024-01-01 10:00:00,hr,80,2024-01-01 09:30:00
b,2024-01-01 10:59:59.5,hr,82,2024-01-01 09:30:00
b,2024-01-01 10:59:59,hr,81,2024-01-01 09:30:00
b,2024-01-01 11:00:00,hr,90,2024-01-01 09:30:00
b,2024-01-01 11:00:00,hr,92,2024-01-01 09:30:00
b,2024-01-01 12:30:00,hr,999,2024-01-01 09:30:00
b,2024-01-01 12:10:00,hr,NA,2024-01-01 09:30:00
b,2024-01-01 12:20:00,vent,1,2024-01-01 09:30:00
b,2024-01-01 12:40:00,vent,0,2024-01-01 09:30:00
b,2024-01-01 20:00:00,hr,70,2024-01-01 09:30:00
a,2024-01-02 00:00:00,hr,60,2024-01-02 00:00:00
a,2024-01-02 00:00:00,other,text,2024-01-02 00:00:00
"""
HR = TableFeature("heart_rate", "hr", below=300)
VENT = TableFeature("ventilated", "vent", "binary")


def irregular(tmp_path: Path, text: str = IRREGULAR, **changes: Any) -> Any:
    (tmp_path / "rows.csv").write_text(text)
    given: dict[str, Any] = {"layout": "long", "stay": "who", "time": "when", "variable": "what", "value": "number"}
    given |= {"ids": "text", "missing": ("NA",), "step": "1h", "steps": 3, "feature": (HR, VENT), **changes}
    return TableSource().extract(str(tmp_path / "rows.csv"), TableSettings(**given))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [82, 91, np.nan]),  # 999 is beyond the limit; two values at 11:00 are averaged
        ({"rule": "first"}, [80, 91, np.nan]),
        ({"rule": "mean"}, [81, 91, np.nan]),
        ({"rule": "sum"}, [243, 182, np.nan]),
        ({"rule": "at"}, [80, 91, np.nan]),
        ({"origin": "admitted"}, [80, 91, np.nan]),
        ({"feature": (replace(HR, rule="first"), VENT)}, [80, 91, np.nan]),
    ],
)
def test_irregular_times_fall_into_cells(tmp_path: Path, changes: dict[str, Any], expected: list[float]) -> None:
    cohort = irregular(tmp_path, **changes).cohort
    assert cohort.stay_id.tolist() == ["a", "b"]
    np.testing.assert_array_equal(cohort.series["heart_rate"], [[60, np.nan, np.nan], expected])


def test_a_class_is_the_last_one_whatever_the_rule(tmp_path: Path) -> None:
    ventilated = irregular(tmp_path, rule="mean").cohort.series["ventilated"]
    np.testing.assert_array_equal(ventilated[1], [np.nan, np.nan, 0])


@pytest.mark.parametrize(("unit", "factor"), [("h", 1), ("min", 60), ("s", 3600)])
def test_times_may_be_numbers(tmp_path: Path, unit: str, factor: float) -> None:
    rows = "".join(f"1,{hour * factor},{value}\n" for hour, value in ((0.5, 7), (0.9, 8), (1.0, 9), (-1, 1), (3, 1)))
    (tmp_path / "t.csv").write_text("id,t,x\n" + rows)
    given = TableSettings("wide", "id", "t", "1h", 3, (TableFeature("x"),), time_unit=unit, origin="zero")  # type: ignore[arg-type]
    np.testing.assert_array_equal(
        TableSource().extract(str(tmp_path / "t.csv"), given).cohort.series["x"], [[8, 9, np.nan]]
    )


def test_names_are_free_and_an_index_without_one_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",id,t,time,value_1\n1,9007199254740993,0,5,\n2,9007199254740993,1,,6\n")
    entries = (
        TableFeature("at", "time"),
        TableFeature("origin", "value_1"),
        TableFeature("time", "id", scope="static", role="patient"),
    )
    given = TableSettings("wide", "id", "t", "1h", 2, entries, time_unit="step", origin="zero")
    cohort = TableSource().extract(str(tmp_path / "t.csv"), given).cohort
    np.testing.assert_array_equal([cohort.series["at"][0], cohort.series["origin"][0]], [[5, np.nan], [np.nan, 6]])
    assert cohort.stay_id.tolist() == cohort.static["time"].tolist() == [2**53 + 1]


def test_short_stays_are_dropped(tmp_path: Path) -> None:
    found = irregular(tmp_path, hours=2)
    assert found.cohort.stay_id.tolist() == ["b"]
    assert found.dropped["measured for at least 2 h"] == 1


def test_a_parquet_table_keeps_its_own_types(tmp_path: Path) -> None:
    table = pa.table(
        {"id": [1, 1], "t": pa.array([0, 1], pa.int8()), "x": pa.array([36.7, None], pa.float32()), "on": [True, False]}
    )
    pq.write_table(table, tmp_path / "t.parquet")
    given = TableSettings(
        "wide",
        "id",
        "t",
        "1h",
        2,
        (TableFeature("x", resolution=0.1), TableFeature("on", kind="binary")),
        time_unit="h",
        origin="zero",
    )
    series = TableSource().extract(str(tmp_path / "t.parquet"), given).cohort.series
    np.testing.assert_array_equal(series["x"], [[36.7, np.nan]])
    np.testing.assert_array_equal(series["on"], [[1, 0]])


def test_the_template_reads_the_table_it_describes(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        "stay_id,time,variable,value\n1,2024-01-31 13:05:00,heart_rate,84\n1,2024-01-31 14:05:00,temperature,36.7\n"
    )
    cohort = TableSource().extract(str(tmp_path / "t.csv"), resolve("table")).cohort
    assert cohort.series["heart_rate"][0, 0] == 84
    assert cohort.series["temperature"][0, 1] == 36.7


@pytest.mark.parametrize(
    ("text", "changes", "sentences"),
    [
        (
            IRREGULAR,
            {"value": "nmber", "time": "time"},
            ["no column 'nmber'; did you mean 'number'?", "no column 'time'"],
        ),
        (IRREGULAR, {"missing": ()}, ["variable 'hr': 1 value, such as a text; expected a number"]),
        (IRREGULAR, {"ids": "number"}, ["column 'who': 12 values, such as a text; expected a whole number"]),
        (IRREGULAR, {"time_unit": "h", "origin": "zero"}, ["column 'when': 12 values", "set time_unit"]),
        (
            IRREGULAR,
            {"feature": (replace(VENT, classes=("0", "on")),)},
            ["such as a number; expected one of its classes ('0', 'on')"],
        ),
        (IRREGULAR, {"feature": (TableFeature("pulse"),)}, ["no row has the variable 'pulse'"]),
        (IRREGULAR, {"feature": (replace(HR, below=None, bounds=(0, 300)),)}, ["1 value outside its bounds 0 to 300"]),
        (IRREGULAR, {"origin": "zero"}, ["set time_unit to h, min, s or step"]),
        (IRREGULAR, {"feature": (replace(HR, rule="most"),)}, ["rule is 'most'; expected one of last, first"]),
        (IRREGULAR, {"feature": (HR, replace(VENT, role="labl"))}, ["role is 'labl'; expected one of label"]),
        (IRREGULAR, {"value": None}, ['needs value = "the column']),
        (IRREGULAR, {"step": "1parsec"}, ["a duration in s, min, h or d"]),
        (IRREGULAR, {"static": "nowhere.csv"}, ["nowhere.csv is not a file"]),
        (IRREGULAR, {"hours": 500}, ["no stay is left after the rule 'measured for at least 500 h'"]),
        (IRREGULAR.replace("09:30:00", "09:00:00", 1), {"origin": "admitted"}, ["more than one value in 1 stay"]),
        (IRREGULAR.replace("a,2024", ",2024"), {}, ["2 rows without a stay"]),
        (IRREGULAR + "b,2024\n", {}, ["a line with more or fewer columns than the first in line 14 of rows.csv"]),
        ("who,who\n1,2\n", {}, ["two columns are called 'who'"]),
        ("who,when,what,number\n", {}, ["rows.csv has no rows"]),
        ("", {}, ["no line with the columns' names"]),
    ],
)
def test_a_mistake_is_named(tmp_path: Path, text: str, changes: dict[str, Any], sentences: list[str]) -> None:
    with pytest.raises(TimeDiffError) as caught:
        irregular(tmp_path, text, **changes)
    for sentence in sentences:
        assert sentence in str(caught.value)


def test_two_values_of_a_static_feature_are_named(cohort: Cohort, tmp_path: Path) -> None:
    table = wide(cohort).to_pylist()
    for row in table[1::12]:
        row["age"] += 1
    source = written(pa.Table.from_pylist(table), tmp_path / "t.csv")
    with pytest.raises(TimeDiffError, match=r"'age' \(column 'age'\) has more than one value in 20 stays"):
        TableSource().extract(source, settings(cohort, "wide"))


def test_a_truncated_file_is_named(cohort: Cohort, tmp_path: Path) -> None:
    path = Path(written(wide(cohort), tmp_path / "t.csv.gz"))
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(TimeDiffError, match=r"t\.csv\.gz is damaged"):
        TableSource().extract(str(path), settings(cohort, "wide"))


YAIB = Path(os.environ.get("TIMEDIFF_DATA", "../shared/data")) / "eicu_demo" / "yaib_hourly"
SETTINGS = """
layout = "wide"
stay = "stay_id"
time = "time"
time_unit = "s"
static = "mortality24_outc.parquet"
step = "1h"
steps = 24
origin = "zero"
[[feature]]
name = "heart_rate"
from = "hr"
[[feature]]
name = "spo2"
from = "o2sat"
[[feature]]
name = "died"
from = "label"
kind = "binary"
scope = "static"
role = "label"
"""


@pytest.mark.skipif(not YAIB.is_dir(), reason=f"needs the hourly eICU demo in {YAIB}; set TIMEDIFF_DATA")
def test_the_hourly_eicu_demo_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "eicu.toml").write_text(SETTINGS)
    found = TableSource().extract(str(YAIB / "mortality24_dyn.parquet"), resolve("table", tmp_path / "eicu.toml"))
    dynamic, outcome = pq.read_table(YAIB / "mortality24_dyn.parquet"), pq.read_table(YAIB / "mortality24_outc.parquet")
    dropped = found.dropped["at least one measurement on the grid"]
    assert found.found == 1367
    assert len(found.cohort) == 1367 - dropped
    deaths = dict(zip(outcome["stay_id"].to_pylist(), outcome["label"].to_pylist(), strict=True))
    assert [deaths[stay] for stay in found.cohort.stay_id.tolist()] == found.cohort.label.tolist()
    truth = np.full((len(found.cohort), 24), np.nan)
    row = {stay: i for i, stay in enumerate(found.cohort.stay_id.tolist())}
    for stay, time, value in zip(*(dynamic[c].to_pylist() for c in ("stay_id", "time", "hr")), strict=True):
        seconds = time if isinstance(time, int) else int(time.total_seconds())
        if stay in row and 0 <= seconds < 86400 and value is not None:
            truth[row[stay], seconds // 3600] = value
    np.testing.assert_array_equal(found.cohort.series["heart_rate"], truth)


def test_a_stay_without_a_time_of_death_is_kept(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,t,x,died_at\n1,0,5,\n2,0,6,3\n")
    entries = (TableFeature("x"), TableFeature("died_at", scope="static", role="event_time"))
    given = TableSettings("wide", "id", "t", "1h", 2, entries, time_unit="step", origin="zero")
    cohort = TableSource().extract(str(tmp_path / "t.csv"), given).cohort
    np.testing.assert_array_equal(cohort.static["died_at"], [np.nan, 3])
