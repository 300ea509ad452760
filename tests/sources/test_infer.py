"""What is inferred of a table is what it was made of, and what cannot be known is asked for."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.sources.column_names import unit_of_name, with_unit
from timediff.sources.column_profiles import resolution, same_meaning
from timediff.sources.extract import extract
from timediff.sources.infer import infer, read_settings
from timediff.sources.simulated import simulate


def table(folder: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    (folder / name).write_bytes(text.encode(encoding))
    return folder / name


def extracted(path: Path, found: Any) -> Cohort:
    config = path.parent / "settings.toml"
    config.write_text(found.to_toml(), encoding="utf-8")
    assert read_settings(config) == found.settings  # what is written is what was inferred
    return extract("table", path, config=config, accept_loss=True).cohort


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([60, 61, 75], 1), ([36.5, 36.6, 37.1], 0.1), ([0, 0.25, 1.5], 0.01), ([0.5, 1, 7], 0.1), ([1.05, 2.1], 0.01),
        (np.arange(0, 9, 0.5), 0.5), (np.arange(0, 9, 0.05), 0.05), (np.arange(0, 9, 0.25), 0.25),
        ([1.234, 2.5], 0.001), ([10, 20, 30], 1), ([*range(0, 130, 10)], 10), ([*range(0, 50, 2)], 2),
        ([np.pi, np.e], None), ([0], None), ([np.float64(np.float32(36.7)), 36.5], 0.1), ([1e-7, 3e-7], None),
        ([40], 1),
    ],
)  # fmt: skip
def test_the_resolution_is_the_coarsest_lattice_of_all_values(values: list[float], expected: float | None) -> None:
    assert resolution(np.sort(np.array(values, dtype=float))) == expected


@pytest.mark.parametrize(
    ("counts", "classes", "spellings"),
    [
        ({"F": 5, "M": 6}, ("F", "M"), {}),
        ({"female": 5, "male": 6}, ("female", "male"), {}),
        ({"f": 1, "F": 9, "Male": 2, "m": 3}, ("F", "M"), {"F": ("f",), "M": ("m", "Male")}),
        ({"no": 5, "Yes": 2, "yes": 1}, (0, 1), {"0": ("no",), "1": ("Yes", "yes")}),
        ({"ICU": 5, "icu": 1, "IMC": 2}, ("ICU", "IMC"), {"ICU": ("icu",)}),
        ({"a": 1, "b": 1, "c": 1}, ("a", "b", "c"), {}),
    ],
)
def test_spellings_of_one_meaning_are_one_class(
    counts: dict[str, int], classes: tuple[Any, ...], spellings: dict[str, tuple[str, ...]]
) -> None:
    assert same_meaning(counts) == (classes, spellings)


def test_names_say_units() -> None:
    assert with_unit("Temp (°C)") == ("Temp", "°C")
    assert with_unit("HR [bpm]") == ("HR", "bpm")
    assert with_unit("spo2") == ("spo2", None)
    assert [unit_of_name(name) for name in ("minutes_since_admission", "time_h", "observationoffset", "ICULOS")] == [
        "min", "h", "min", "h",
    ]  # fmt: skip
    assert unit_of_name("charttime") is None


GERMAN = "Fallnummer;Zeit;Puls [bpm];Körpertemperatur (°C);Geschlecht;Bemerkung\n" + "".join(
    f"{case};14.03.2024 {hour:02}:15;{60 + hour};36,{hour};{'w' if case < 3 else 'M'};note {case} {hour}{extra}\n"
    for case in (1, 2, 3, 4)
    for hour in range(6)
    for extra in range(1)
)


def test_a_german_export_is_understood_and_reads_back(tmp_path: Path) -> None:
    path = table(tmp_path, "a.csv", GERMAN, "latin-1")
    found = infer(path)
    s = found.settings
    assert (s.separator, s.decimal, s.encoding, s.date_order, s.step, s.steps) == (";", ",", "cp1252", "dmy", "1h", 6)
    assert (s.stay, s.time, s.origin) == ("Fallnummer", "Zeit", "first")
    assert [(e.name, e.place, e.unit, e.resolution) for e in s.feature[:2]] == [
        ("Puls", "Puls [bpm]", "bpm", 1),
        ("Körpertemperatur", "Körpertemperatur (°C)", "°C", 0.1),
    ]
    assert s.feature[2].scope == "static"
    assert s.feature[2].classes == ("M", "w")
    assert "'Bemerkung' is left out" in str(found)
    assert "note 1" not in str(found) + found.to_toml()
    cohort = extracted(path, found)
    np.testing.assert_array_equal(cohort.series["Puls"][0], 60 + np.arange(6))
    np.testing.assert_allclose(cohort.series["Körpertemperatur"][0], 36 + np.arange(6) / 10)
    assert cohort["Geschlecht"].tolist() == ["w", "w", "M", "M"]


LONG = "".join(
    f"{stay},{1 + day}/{20 + day}/2024 {hour}:00 PM,{what},{value},{unit}\n"
    for stay, day in ((1, 0), (2, 1), (3, 2))
    for hour in (1, 2, 4)
    for what, value, unit in (
        ("glucose", 90 + hour, "mg/dL"), ("glucose2", 5.5, "mmol/L"), ("alert", "yes" if hour > 2 else "no", ""),
        ("temp", 98.6 if hour == 4 else 37.1, "F" if hour == 4 else "°C"),
    )
)  # fmt: skip


def test_a_long_table_of_files_is_understood_and_reads_back(tmp_path: Path) -> None:
    path = table(tmp_path, "events.csv", "icustay_id,charttime,parameter,value,valueuom\n" + LONG)
    stays = table(tmp_path, "stays.csv", "icustay_id,subject_id,los_hours,age\n1,7,2.5,50\n2,7,9,61\n3,8,9,72\n")
    people = table(tmp_path, "people.csv", "subject_id,sex\n7,Female\n8,m\n")
    table(tmp_path, "outcomes.csv", "RecordID,saps,died\n1,4,0\n2,9,1\n3,7,0\n")
    found = infer(path, static=[stays, people], label=f"{tmp_path / 'outcomes.csv'}:died")
    s = found.settings
    assert (s.layout, s.variable, s.value, s.unit_column) == ("long", "parameter", "value", "valueuom")
    assert (s.date_order, s.step, s.length, s.length_unit) == ("mdy", "1h", "los_hours", "h")
    assert {e.name: (e.kind, e.unit) for e in s.feature if e.scope == "temporal"} == {
        "alert": ("binary", None), "glucose": ("continuous", "mg/dL"), "glucose2": ("continuous", "mmol/L"),
        "temp": ("continuous", "°C"),
    }  # fmt: skip
    cohort = extracted(path, found)
    assert cohort.lengths.tolist() == [3, 4, 4]
    np.testing.assert_array_equal(cohort.series["temp"][1], [37.1, 37.1, np.nan, 37.0])
    np.testing.assert_array_equal(cohort.series["alert"][1], [0, 0, np.nan, 1])
    assert cohort["sex"].tolist() == ["Female", "Female", "m"]
    assert cohort.label.tolist() == [0, 1, 0]
    assert cohort.static["subject_id"].tolist() == [7, 7, 8]
    assert "saps" not in cohort.static


def test_what_a_long_table_says_once_at_the_beginning_is_of_the_whole_stay(tmp_path: Path) -> None:
    first = [f"{stay},0,Age,{50 + stay}\n{stay},0,Gender,{stay % 2}\n{stay},0,HR,{60 + stay}\n" for stay in range(20)]
    begin = "".join(first)
    later = "".join(f"{stay},60,HR,{70 + stay}\n{stay},120,Lactate,{stay / 10}\n" for stay in range(20))
    path = table(tmp_path, "set.csv", f"RecordID,minute,Parameter,Value\n{begin}{later}")
    found = infer(path)
    assert {e.name: e.scope for e in found.settings.feature} == {
        "Age": "static", "Gender": "static", "HR": "temporal", "Lactate": "temporal",
    }  # fmt: skip
    cohort = extracted(path, found)
    assert cohort.static["Age"].tolist() == [50 + stay for stay in range(20)]
    assert cohort.static["Gender"].tolist() == [stay % 2 for stay in range(20)]


def test_a_simulated_icu_is_understood_whatever_it_is_written_as(tmp_path: Path) -> None:
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    cohort = simulate(40, steps=6, seed=0)
    series, static = cohort.tables()
    csv.write_csv(series, tmp_path / "series.csv")
    pq.write_table(series, tmp_path / "series.parquet")
    csv.write_csv(static, tmp_path / "static.csv")
    texts = infer(tmp_path / "series.csv", static=tmp_path / "static.csv", label="died")
    typed = infer(tmp_path / "series.parquet", static=tmp_path / "static.csv", label="died")
    assert texts.settings == typed.settings
    for inferred, true in zip(texts.schema.features, cohort.schema.features, strict=True):
        assert (inferred.name, inferred.kind, inferred.role) == (true.name, true.kind, true.role)
        assert inferred.resolution == true.resolution
        assert inferred.bounds is None


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("id,time,x\n1,01/02/2024,5\n1,03/02/2024,6\n", {}, "give --date-order dmy or --date-order mdy"),
        ("id,time,x\n1,13/02/2024,5\n1,03/14/2024,6\n", {}, "the day first in some rows and with the month first"),
        ("id,time,x\n1,soon,5\n", {}, "no time that could be read"),
        ("who,x\n1,5\n", {}, "name it with --stay"),
        ("id,a,b\n1,5,6\n", {}, "name it with --time"),
        ("id,time,note\n1,0,a b\n", {}, "no column has measurements"),
        ("id,time,x\n1,0,5\n1,1,6\n", {"date_order": "dym"}, "date_order is 'dym'; expected one of ymd, dmy, mdy"),
        ("id,time,x,out\n1,0,5,1\n1,1,6,1\n", {"label": "out"}, "1 different numbers; expected classes"),
    ],
)
def test_what_cannot_be_known_is_asked_for(text: str, options: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError) as caught:
        infer(table(tmp_path, "t.csv", text), **options)
    assert sentence in str(caught.value)


def test_what_is_given_is_not_guessed(tmp_path: Path) -> None:
    path = table(tmp_path, "t.csv", "bed,id,when_,hr\na,1,01/02/2024 10:00,60\na,1,03/02/2024 10:00,61\n")
    found = infer(path, stay="bed", time="when_", patient="id", date_order="dmy", step="12h", steps=5)
    s = found.settings
    assert (s.stay, s.time, s.date_order, s.step, s.steps, s.ids) == ("bed", "when_", "dmy", "12h", 5, "text")
    assert s.schema.patient is not None
    assert extracted(path, found).series["hr"][0, 4] == 61


def test_numbers_and_texts_that_stand_for_nothing_are_told_apart(tmp_path: Path) -> None:
    rows = "".join(
        f"{i // 30},{i % 30},{'NA' if i % 7 == 0 else i % 5 + 0.5},{'<5' if i == 3 else i}\n" for i in range(60)
    )
    found = infer(table(tmp_path, "t.csv", "id,hour,x,y\n" + rows))
    assert found.settings.missing == ("NA",)
    assert any("'y': 1 of 60 values are no numbers" in note for note in found.notes)
    with pytest.raises(TimeDiffError, match="'y': 1 value"):
        extracted(tmp_path / "t.csv", found)


def test_a_table_of_arrow_needs_no_file() -> None:
    frame = pa.table({"stay_id": ["a", "a"], "hour": [0, 1], "hr": [60.0, 61.5], "on": [True, False]})
    settings = infer(frame).settings
    assert settings.ids == "text"
    assert [(e.name, e.kind, e.resolution) for e in settings.feature] == [
        ("hr", "continuous", 0.1),
        ("on", "binary", None),
    ]
