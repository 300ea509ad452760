"""Tables as hospitals export them: types, dates, decimals, encodings, Excel, units, spellings, several files."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.sources.table import TableSource
from timediff.sources.table_settings import Join, TableFeature, TableSettings

HR, TEMP = TableFeature("hr"), TableFeature("temp", unit="°C", resolution=0.1)


def extract(path: Path, *features: TableFeature, **changes: Any) -> Any:
    given: dict[str, Any] = {"layout": "wide", "stay": "id", "time": "t", "step": "1h", "steps": 3}
    given |= {"time_unit": "h", "origin": "zero", "feature": features or (HR,), **changes}
    return TableSource().extract(str(path), TableSettings(**given))


def table(folder: Path, text: str, name: str = "t.csv", encoding: str = "utf-8") -> Path:
    (folder / name).write_bytes(text.encode(encoding))
    return folder / name


def values(cohort: Cohort, name: str = "hr") -> Any:
    return cohort.series[name].tolist()


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_column_of_durations_says_itself_what_it_counts(unit: str, tmp_path: Path) -> None:
    ticks = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    time = pa.array([0, 3600 * ticks, 7200 * ticks], pa.duration(unit))
    pq.write_table(pa.table({"id": [1, 1, 1], "t": time, "hr": [60, 61, 62]}), tmp_path / "t.parquet")
    for stated in ("h", "s", "duration"):
        found = extract(tmp_path / "t.parquet", time_unit=stated)
        assert values(found.cohort) == [[60, 61, 62]]
        assert found.losses.by_reason() == {}


def test_a_duration_is_no_timestamp_and_a_timestamp_no_number(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1], "t": pa.array([0], pa.duration("s")), "hr": [60]}), tmp_path / "d.parquet")
    pq.write_table(pa.table({"id": [1], "t": pa.array([0], pa.timestamp("us")), "hr": [60]}), tmp_path / "m.parquet")
    with pytest.raises(TimeDiffError, match='set time_unit = "duration"'):
        extract(tmp_path / "d.parquet", time_unit="timestamp", origin="first")
    with pytest.raises(TimeDiffError, match='set time_unit = "timestamp"'):
        extract(tmp_path / "m.parquet")


GERMAN = "id;t;Größe\n1;31.01.2024 22:10;1,5\n1;31.01.2024 23:30;1.002,25\n1;01.02.2024 00:20;-0,5\n"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8", "utf-8-sig"])
def test_a_german_export_is_read(encoding: str, tmp_path: Path) -> None:
    path = table(tmp_path, GERMAN, encoding=encoding)
    form = {"separator": ";", "decimal": ",", "thousands": ".", "date_order": "dmy"}
    stated = "utf-8" if encoding == "utf-8-sig" else encoding
    found = extract(
        path, TableFeature("size", "Größe"), encoding=stated, **form, time_unit="timestamp", origin="first"
    )  # fmt: skip
    assert values(found.cohort, "size") == [[1.5, 1002.25, -0.5]]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, 'set separator = ";"'),
        ({"separator": ";"}, "set encoding to what the file is in"),
        ({"separator": ";", "encoding": "latin-1"}, 'set date_order = "dmy" or "mdy"'),
        ({"separator": ";", "encoding": "latin-1", "date_order": "dmy"}, 'set decimal = ","'),
        ({"separator": ";", "encoding": "latin-1", "date_order": "dmy", "decimal": ","}, 'thousands = "."'),
        ({"encoding": "rot13"}, "encoding is 'rot13'"),
        ({"decimal": ",", "thousands": ","}, "thousands is ','"),
    ],
)
def test_each_way_of_writing_that_is_not_stated_is_named(
    changes: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    text = GERMAN.replace("Größe", "Groesse") if not changes else GERMAN
    path = table(tmp_path, text, encoding="latin-1")
    with pytest.raises(TimeDiffError) as caught:
        extract(path, TableFeature("size", "Größe"), time_unit="timestamp", origin="first", **changes)
    assert sentence in str(caught.value)
    assert "1,5" not in str(caught.value)


def test_text_of_another_encoding_below_the_first_line_is_named(tmp_path: Path) -> None:
    path = table(tmp_path, "id,t,hr,ward\n1,0,60,Größe\n", encoding="latin-1")
    with pytest.raises(TimeDiffError, match=r"t\.csv: there is text that is not UTF-8; set encoding"):
        extract(path, HR, TableFeature("ward", kind="categorical", scope="static", classes=("Größe", "Mitte")))


def test_tabs_and_bars_are_known_by_the_name_of_the_file(tmp_path: Path) -> None:
    for name, mark in (("t.tsv", "\t"), ("t.psv", "|"), ("t.txt", ",")):
        path = table(tmp_path, "id,t,hr\n1,1,60\n".replace(",", mark), name)
        np.testing.assert_array_equal(extract(path).cohort.series["hr"], [[np.nan, 60, np.nan]])


def test_a_sheet_of_excel_is_a_table(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    from datetime import datetime, timedelta

    book = openpyxl.Workbook()
    book.active.append(["id", "t", "hr", "ward", None])
    for hour in range(3):
        book.active.append([7, datetime(2024, 1, 31, 22, 30) + timedelta(hours=hour), 60.5 + hour, "ICU", None])
    book.create_sheet("notes").append(["nothing"])
    book.save(tmp_path / "t.xlsx")
    ward = TableFeature("ward", kind="categorical", scope="static", classes=("ICU", "IMC"))
    found = extract(tmp_path / "t.xlsx", HR, ward, time_unit="timestamp", origin="first")
    assert values(found.cohort) == [[60.5, 61.5, 62.5]]
    assert found.cohort["ward"].tolist() == ["ICU"]
    assert len(found.facts["source_sha256"]) == 64
    with pytest.raises(TimeDiffError, match="there is no sheet 'charts'; the sheets are 'Sheet', 'notes'"):
        extract(tmp_path / "t.xlsx", sheet="charts")
    (tmp_path / "broken.xlsx").write_bytes(b"PK no workbook")
    with pytest.raises(TimeDiffError, match="not a readable Excel file"):
        extract(tmp_path / "broken.xlsx")


UNITS = (
    "id,t,what,number,unit\n1,0,temp,98.6,°F\n1,1,temp,36.9,C\n1,2,temp,37.2,\n"
    "1,0,glucose,99,mg/dL\n1,1,glucose,5,mmol/l\n"
)
LONG = {"layout": "long", "variable": "what", "value": "number"}


def test_values_are_brought_to_the_unit_of_their_feature(tmp_path: Path) -> None:
    path = table(tmp_path, UNITS)
    glucose = TableFeature("glucose", unit="mmol/L", resolution=0.1)
    cohort = extract(path, TEMP, glucose, unit_column="unit", **LONG).cohort
    assert values(cohort, "temp") == [[37.0, 36.9, 37.2]]  # without a unit: the feature's
    np.testing.assert_array_equal(cohort.series["glucose"], [[5.5, 5.0, np.nan]])


def test_a_unit_that_nothing_is_known_of_is_named_and_so_are_two_without_a_choice(tmp_path: Path) -> None:
    path = table(tmp_path, UNITS.replace("mmol/l", "furlong"))
    glucose = TableFeature("glucose", unit="mmol/L")
    with pytest.raises(TimeDiffError, match=r"1 value, .* in a unit of column 'unit' that can be brought to 'mmol/L'"):
        extract(path, glucose, unit_column="unit", **LONG)
    with pytest.raises(TimeDiffError, match="'temp': its values have 2 different units in column 'unit'; set its unit"):
        extract(path, TableFeature("temp"), unit_column="unit", **LONG)
    with pytest.raises(TimeDiffError, match=r"recorded is 'kPa'; what can be brought to '°C': °F, K"):
        TableSettings("wide", "id", "t", "1h", 3, (TableFeature("temp", unit="°C", recorded="kPa"),))


def test_a_whole_column_may_be_in_another_unit_and_a_wide_table_has_columns_of_units(tmp_path: Path) -> None:
    path = table(tmp_path, "id,t,temp,weight,in_what\n1,0,98.6,154,lb\n1,1,99.5,70,kg\n")
    fahrenheit = TableFeature("temp", unit="°C", recorded="°F", resolution=0.1, above=30, below=45)
    weight = TableFeature("weight", unit="kg", resolution=0.1, unit_column="in_what")
    cohort = extract(path, fahrenheit, weight, steps=2).cohort
    assert values(cohort, "temp") == [[37.0, 37.5]]
    assert values(cohort, "weight") == [[69.9, 70.0]]


def test_values_that_look_like_another_unit_are_told(tmp_path: Path) -> None:
    rows = "".join(f"{i},0,{98 + i % 3}\n" for i in range(5)) + "".join(f"{i},1,{36.5 + i % 3}\n" for i in range(20))
    found = extract(table(tmp_path, f"id,t,temp\n{rows}"), TEMP)
    (note,) = [note for note in found.notes if "temp" in note]
    assert "5 values that would be likelier in °F" in note
    assert "unit_column" in note
    whole = extract(table(tmp_path, f"id,t,temp\n{rows}"), TableFeature("temp", unit="°F", recorded="°F"))
    assert any("likelier in °C" in note for note in whole.notes)


def test_a_few_odd_values_among_many_are_not_worth_a_word(tmp_path: Path) -> None:
    rows = "".join(f"{i},0,{98 if i < 4 else 36.5 + i % 3}\n" for i in range(1000))
    assert not any("likelier" in note for note in extract(table(tmp_path, f"id,t,temp\n{rows}"), TEMP).notes)


def test_spellings_mean_a_class(tmp_path: Path) -> None:
    path = table(tmp_path, "id,t,hr,sex,vent\n1,0,60,f,yes\n2,0,60,Male,no\n3,0,60,M,1\n4,0,60,F,0\n")
    sex = TableFeature("sex", None, "binary", "static", classes=("F", "M"), spellings={"F": ("f",), "M": ("Male",)})
    vent = TableFeature("vent", kind="binary", spellings={"0": ("no",), "1": ("yes",)})
    cohort = extract(path, HR, sex, vent, steps=1).cohort
    assert cohort["sex"].tolist() == ["F", "M", "M", "F"]
    assert cohort.series["vent"].ravel().tolist() == [1, 0, 1, 0]
    with pytest.raises(TimeDiffError, match="spellings of 'W', which is none of its classes"):
        TableSettings("wide", "id", "t", "1h", 3, (TableFeature("s", None, "binary", spellings={"W": ("w",)}),))


def test_files_of_stays_patients_and_outcomes_are_joined_by_their_ids(tmp_path: Path) -> None:
    path = table(tmp_path, "id,t,hr\n11,0,60\n12,0,61\n21,0,62\n")
    table(tmp_path, "id,t,lactate\n11,1,2.5\n21,1,3.5\n", "labs.csv")
    table(tmp_path, "id,person,age\n11,1,50\n12,1,51\n21,2,70\n99,2,1\n", "stays.csv")
    table(tmp_path, "person,sex\n1,F\n2,M\n", "people.csv")
    table(tmp_path, "RecordID,died,age\n21,1,0\n12,0,0\n11,0,0\n", "outcomes.csv")
    features = (
        HR,
        TableFeature("lactate"),
        TableFeature("age", scope="static", file="stays.csv"),
        TableFeature("sex", None, "binary", "static", classes=("F", "M")),
        TableFeature("died", None, "binary", "static", "label"),
        TableFeature("person", scope="static", role="patient"),
    )
    joins = (Join("people.csv", "person"), Join("outcomes.csv", "RecordID", "id"))
    given: dict[str, Any] = {"series": ("labs.csv",), "static": "stays.csv", "join": joins, "steps": 2}
    found = extract(path, *features, **given)
    cohort = found.cohort
    assert cohort.stay_id.tolist() == [11, 12, 21]
    np.testing.assert_array_equal(cohort.series["hr"], [[60, np.nan], [61, np.nan], [62, np.nan]])
    np.testing.assert_array_equal(cohort.series["lactate"], [[np.nan, 2.5], [np.nan, np.nan], [np.nan, 3.5]])
    assert cohort["sex"].tolist() == ["F", "F", "M"]
    assert cohort.label.tolist() == [0, 0, 1]
    assert cohort.static["age"].tolist() == [50, 51, 70]
    assert cohort.static["person"].tolist() == [1, 1, 2]
    unsaid = [TableFeature("age", scope="static") if f.name == "age" else f for f in features]
    with pytest.raises(TimeDiffError, match=r"'age' of feature 'age' stands in 'stays\.csv', 'outcomes\.csv'"):
        extract(path, *unsaid, **given)
    with pytest.raises(TimeDiffError, match=r"no table before people\.csv has the column 'persn'"):
        extract(path, *features, **given | {"join": (Join("people.csv", "person", "persn"), joins[1])})
    table(tmp_path, "person,sex\n7,F\n", "people.csv")
    with pytest.raises(TimeDiffError, match=r"no value of 'person' is a 'person' of stays\.csv"):
        extract(path, *features, **given)


STAYS = "id,t,hr,out\n1,0,60,2\n1,1,61,2\n2,0,70,1.5\n2,2,72,1.5\n3,0,80,99\n3,5,81,99\n4,0,90,\n"


@pytest.mark.parametrize(
    ("length", "expected", "dropped"),
    [("grid", None, {}), ("last", [2, 3, 3, 1], {}), ("out", [2, 2, 3], {"a known end (out)": 1})],
)
def test_a_stay_is_as_long_as_is_said(
    length: str, expected: list[int] | None, dropped: dict[str, int], tmp_path: Path
) -> None:
    found = extract(table(tmp_path, STAYS), length=length)
    cohort = found.cohort
    assert (None if cohort.length is None else cohort.length.tolist()) == expected
    assert {rule: count for rule, count in found.dropped.items() if count} == dropped
    late = 1 if length == "out" else 0  # of stay 2, measured at 2 h and discharged at 1.5 h
    assert found.losses.by_reason().get("after the end of the stay", 0) == late
    assert any("If they were discharged" in note for note in found.notes) == (length == "grid")


def test_the_end_may_be_a_moment_of_another_file(tmp_path: Path) -> None:
    path = table(tmp_path, "id,t,hr\n1,2024-01-01 10:00,60\n2,2024-01-01 10:00,61\n3,2024-01-01 10:00,62\n")
    table(tmp_path, "id,gone\n1,2024-01-01 12:00\n2,2024-01-01 10:30\n3,2024-01-01 09:00\n", "s.csv")
    given: dict[str, Any] = {"time_unit": "timestamp", "origin": "first", "static": "s.csv", "length": "gone"}
    found = extract(path, **given)
    assert found.cohort.stay_id.tolist() == [1, 2]  # the third ends before it begins
    assert found.cohort.lengths.tolist() == [2, 1]
    table(tmp_path, "id,gone\n1,1\n2,0.5\n3,0.05\n", "s.csv")
    found = extract(path, **given | {"length_unit": "d"})
    assert found.cohort.lengths.tolist() == [3, 3, 2]


def test_of_fifty_columns_all_are_counted_and_the_nearest_is_named(tmp_path: Path) -> None:
    names = [f"lab_{i:02}" for i in range(48)]
    path = table(tmp_path, f"id,t,{','.join(names)}\n1,0{',1' * 48}\n")
    with pytest.raises(TimeDiffError) as caught:
        extract(path, TableFeature("zzz"), TableFeature("lab_047"))
    assert "it has 50 columns: " in str(caught.value)
    assert "and 42 more" in str(caught.value)
    assert "did you mean 'lab_" in str(caught.value)
