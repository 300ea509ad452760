"""PhysioNet Challenge 2012: the real sets where they are at hand, and made-up files for each oddity."""

import csv
import math
import zipfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import same
from helpers.data import DATA
from timediff.data.cohort import read_cohort
from timediff.errors import TimeDiffError
from timediff.sources.extraction import Extraction
from timediff.sources.physionet_files import require_numbers
from timediff.sources.registry import resolve, source

REAL = DATA / "physionet2012"
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"no {REAL}: put the challenge's files there, or set TIMEDIFF_DATA")
DESCRIPTORS = ["00:00,RecordID,{}", "00:00,Age,70", "00:00,Gender,1", "00:00,Height,-1", "00:00,ICUType,3"]


def extract(path: Path, **changes: object) -> Extraction:
    return source("physionet2012").extract(str(path), resolve("physionet2012", changes=changes))


def write(folder: Path, stays: dict[int, list[str]], name: str = "a", deaths: tuple[int, ...] = ()) -> Path:
    """A set in the original layout; descriptors are added where a stay has none of its own."""
    (folder / f"set-{name}").mkdir(parents=True)
    for stay, lines in stays.items():
        own = any("RecordID" in line for line in lines)
        rows = lines if own else [line.format(stay) for line in DESCRIPTORS] + lines
        (folder / f"set-{name}" / f"{stay}.txt").write_text("\n".join(["Time,Parameter,Value", *rows, ""]))
    outcomes = [f"{stay},1,1,5,-1,{int(stay in deaths)}" for stay in stays]
    header = "RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death"
    (folder / f"Outcomes-{name}.txt").write_text("\n".join([header, *outcomes, ""]))
    return folder


def series(extraction: Extraction, name: str, stay: int = 1) -> list[float | None]:
    row = extraction.cohort.stay_id.tolist().index(stay)
    return [None if math.isnan(v) else v for v in extraction.cohort.series[name][row].tolist()]


@pytest.fixture(scope="module")
def set_a() -> Extraction:
    return extract(REAL / "set-a.parquet")


@pytest.fixture(scope="module")
def both() -> Extraction:
    return extract(REAL)


@real
def test_set_a_has_its_stays_and_deaths(set_a: Extraction) -> None:
    assert (set_a.found, len(set_a.cohort), int(set_a.cohort.label.sum())) == (4000, 3997, 554)
    assert set_a.dropped == {"a known outcome": 0, "at least one measurement": 3}
    assert not np.isin([140501, 140936, 141264], set_a.cohort.stay_id).any()
    assert "set" not in set_a.cohort.schema
    names = ["HR", "SBP", "DBP", "MAP", "Temp", "FiO2", "Urine", "GCS", "Age", "Gender", "ICUType", "died"]
    assert [feature.name for feature in set_a.cohort.schema.features] == names


@real
def test_a_folder_gives_all_its_sets(both: Extraction, set_a: Extraction) -> None:
    cohort = both.cohort
    assert (both.found, len(cohort), int(cohort.label.sum())) == (8000, 7990, 554 + 568)
    descriptors_only = [142731, 142998, 143656, 145611, 147514, 150309, 150649, *[140501, 140936, 141264]]
    assert not np.isin(descriptors_only, cohort.stay_id).any()
    assert cohort.schema["set"].classes == ("a", "b")
    assert np.bincount(cohort.static["set"].astype(int)).tolist() == [3997, 3993]
    first = cohort.take(cohort.static["set"] == 0)
    assert all(np.array_equal(first.series[k], v, equal_nan=True) for k, v in set_a.cohort.series.items())
    assert both.facts["engine"].startswith("DuckDB")
    assert both.facts["source_sha256"] != set_a.facts["source_sha256"]


@real
def test_missing_rates_of_the_real_set(set_a: Extraction) -> None:
    rates = {name: round(float(np.isnan(values).mean()), 4) for name, values in set_a.cohort.series.items()}
    assert rates == {
        "HR": 0.0989,
        "SBP": 0.1134,
        "DBP": 0.1135,
        "MAP": 0.1201,
        "Temp": 0.629,
        "FiO2": 0.8398,
        "Urine": 0.3076,
        "GCS": 0.6818,
    }


def by_hand(lines: list[tuple[int, str, float]]) -> dict[str, list[float]]:
    """The grid of one stay in plain Python."""
    limits = {"Temp": lambda v: v > 10, "FiO2": lambda v: 0.2 <= v <= 1, "Urine": lambda v: v >= 0}
    at: dict[str, dict[int, dict[int, list[float]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for minute, parameter, value in lines:
        if minute < 48 * 60 and limits.get(parameter, lambda v: v > 0)(value):
            at[parameter][minute // 60][minute].append(value)
    parameters = {
        "HR": ["HR"],
        "SBP": ["SysABP", "NISysABP"],
        "DBP": ["DiasABP", "NIDiasABP"],
        "MAP": ["MAP", "NIMAP"],
        "Temp": ["Temp"],
        "FiO2": ["FiO2"],
        "Urine": ["Urine"],
        "GCS": ["GCS"],
    }
    grid = {}
    for name, choices in parameters.items():
        grid[name] = [math.nan] * 48
        for step in range(48):
            cell = next((at[choice][step] for choice in choices if at[choice].get(step)), None)
            if cell and name == "Urine":
                grid[name][step] = sum(sum(values) for values in cell.values())
            elif cell:
                last = cell[max(cell)]
                grid[name][step] = sum(last) / len(last)
    return grid


@real
def test_thirty_stays_are_as_plain_python_reads_their_text() -> None:
    path = REAL / "set-a_first300_original_layout.zip"
    extraction = extract(path)
    with zipfile.ZipFile(path) as archive:
        for row in range(0, 300, 10):
            stay = extraction.cohort.stay_id[row]
            lines = list(csv.reader(archive.read(f"set-a/{stay}.txt").decode().splitlines()))[1:]
            parsed = [(int(t[:-3]) * 60 + int(t[-2:]), p, float(v)) for t, p, v in lines if p]
            for name, expected in by_hand(parsed).items():
                np.testing.assert_allclose(extraction.cohort.series[name][row], expected, rtol=1e-12, err_msg=name)


@real
def test_the_original_layout_gives_what_the_parquet_gives(set_a: Extraction, tmp_path: Path) -> None:
    path = REAL / "set-a_first300_original_layout.zip"
    zipped = extract(path)
    assert zipped.found == 302
    same_stays = set_a.cohort.take(np.isin(set_a.cohort.stay_id, zipped.cohort.stay_id))
    assert same(zipped.cohort, same_stays)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path)
    assert same(extract(tmp_path / "set-a").cohort, zipped.cohort)
    assert same(extract(tmp_path).cohort, zipped.cohort)


@real
def test_stays_without_a_value_on_the_grid_are_dropped_when_asked(set_a: Extraction) -> None:
    asked = extract(REAL / "set-a.parquet", observed=True)
    assert asked.dropped["at least one value on the grid"] == 59
    assert len(asked.cohort) == len(set_a.cohort) - 59


@real
def test_it_is_written_and_read_back(set_a: Extraction, tmp_path: Path) -> None:
    set_a.write(tmp_path / "cohort", source("physionet2012").default_toml())
    assert same(read_cohort(tmp_path / "cohort"), set_a.cohort)


def test_a_cell_holds_its_last_value_and_equal_times_are_averaged(tmp_path: Path) -> None:
    lines = ["00:10,HR,60", "00:59,HR,70", "00:30,HR,65", "01:00,HR,80", "01:00,HR,81", "47:59,HR,90", "48:00,HR,99"]
    extraction = extract(write(tmp_path, {1: lines}))
    assert series(extraction, "HR") == [70, 80.5, *[None] * 45, 90]
    assert extraction.cohort.series["HR"].shape == (1, 48)


def test_urine_is_summed_also_at_equal_times(tmp_path: Path) -> None:
    lines = ["00:10,Urine,30", "00:10,Urine,20", "00:40,Urine,0", "02:00,Urine,-5", "03:00,Urine,0", "01:00,HR,80"]
    assert series(extract(write(tmp_path, {1: lines})), "Urine")[:4] == [50, None, None, 0]


def test_invasive_pressure_comes_first_cell_by_cell(tmp_path: Path) -> None:
    lines = ["00:10,SysABP,120", "00:50,NISysABP,110", "01:10,NISysABP,111", "02:10,SysABP,0", "02:20,NISysABP,112"]
    assert series(extract(write(tmp_path, {1: lines})), "SBP")[:4] == [120, 111, 112, None]


def test_artefacts_do_not_count(tmp_path: Path) -> None:
    lines = ["00:10,HR,0", "00:10,Temp,-17.8", "01:10,Temp,36.5", "00:10,FiO2,0.1", "00:10,GCS,2", "00:10,MAP,-3"]
    extraction = extract(write(tmp_path, {1: lines}))
    assert series(extraction, "Temp")[:2] == [None, 36.5]
    assert all(series(extraction, name) == [None] * 48 for name in ("HR", "FiO2", "GCS", "MAP"))


def test_descriptors_stand_anywhere_at_midnight(tmp_path: Path) -> None:
    mixed = ["00:00,HR,70", "00:00,ICUType,2", "00:00,Gender,0", "00:00,Temp,37", "00:00,RecordID,1", "00:00,Age,55"]
    static = extract(write(tmp_path, {1: mixed})).cohort.static
    assert {name: values.tolist() for name, values in static.items()} == {
        "Age": [55],
        "Gender": [0],
        "ICUType": [1],
        "died": [0],
    }


def test_a_missing_descriptor_is_null(tmp_path: Path) -> None:
    stays = {
        1: ["00:00,RecordID,1", "00:00,Gender,-1", "00:00,Age,-1", "00:00,ICUType,4", "01:00,HR,70"],
        2: ["00:00,RecordID,2", "01:00,HR,70"],
    }
    static = extract(write(tmp_path, stays)).cohort.static
    assert np.isnan(static["Gender"]).all()
    assert np.isnan(static["Age"]).all()
    assert static["ICUType"].tolist()[0] == 3


def test_an_empty_parameter_and_a_stay_of_descriptors_only(tmp_path: Path) -> None:
    extraction = extract(write(tmp_path, {1: ["00:05,,42", "00:06,HR,70"], 2: [], 3: ["00:05,,42"]}, deaths=(1, 2)))
    assert extraction.found == 3
    assert extraction.dropped["at least one measurement"] == 2
    assert extraction.cohort.stay_id.tolist() == [1]
    assert extraction.cohort.label.tolist() == [1]


def test_a_stay_without_outcome_is_dropped(tmp_path: Path) -> None:
    folder = write(tmp_path, {1: ["00:05,HR,70"], 2: ["00:05,HR,70"]})
    text = (folder / "Outcomes-a.txt").read_text()
    (folder / "Outcomes-a.txt").write_text("\n".join(line for line in text.splitlines() if line[:2] != "2,"))
    assert extract(folder).dropped["a known outcome"] == 1


def test_windows_line_ends_and_stray_files(tmp_path: Path) -> None:
    folder = write(tmp_path, {1: ["00:05,HR,70"]})
    path = folder / "set-a" / "1.txt"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    (folder / "set-a" / "._1.txt").write_text("nothing")
    assert series(extract(folder), "HR")[0] == 70


def test_single_precision_is_read_as_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, {1: ["00:05,MAP,92.33"]})
    rows = [("Age", 70), ("Gender", 1), ("ICUType", 3), ("MAP", 92.33), ("HR", math.nan)]
    table = pa.table(
        {
            "RecordID": pa.array([1] * 5, pa.int32()),
            "minute": pa.array([0, 0, 0, 5, 5], pa.int32()),
            "Parameter": [name for name, _ in rows],
            "Value": pa.array([value for _, value in rows], pa.float32()),
        }
    )
    pq.write_table(table, tmp_path / "set-a.parquet")
    from_parquet = extract(tmp_path / "set-a.parquet")
    assert series(from_parquet, "MAP")[0] == 92.33
    assert same(from_parquet.cohort, extract(tmp_path / "set-a").cohort)
    assert same(from_parquet.cohort, extract(tmp_path).cohort)


def test_another_rule_and_grid(tmp_path: Path) -> None:
    folder = write(tmp_path, {1: ["00:10,HR,60", "01:50,HR,70"]})
    extraction = extract(folder, rule="mean", step="2h", steps=3)
    assert series(extraction, "HR") == [65, None, None]


def test_mistakes_are_told(tmp_path: Path) -> None:
    def told(path: Path) -> str:
        with pytest.raises(TimeDiffError) as error:
            extract(path)
        return str(error.value)

    assert "is not there" in told(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    assert "holds no set of the challenge" in told(tmp_path / "empty")
    folder = write(tmp_path / "x", {1: ["00:05,HR,high"]})
    assert told(folder).startswith("1.txt: a line cannot be read")
    (folder / "set-a" / "1.txt").write_text("Time,Parameter,Value\n5,HR,70\n")
    assert "1.txt: the time in line 2 is a number; expected HH:MM" in told(folder)
    (folder / "set-a" / "1.txt").write_text("Time,Value\n00:05,70\n")
    assert "there is no column Parameter" in told(folder)
    (folder / "Outcomes-a.txt").write_text("RecordID,Death\n1,0\n")
    (folder / "set-a" / "1.txt").write_text("Time,Parameter,Value\n00:05,HR,70\n")
    assert "Outcomes-a.txt: expected the columns RecordID and In-hospital_death" in told(folder)
    (folder / "Outcomes-a.txt").unlink()
    assert "Outcomes-a.csv or Outcomes-a.txt beside it" in told(folder)
    (folder / "set-b.parquet").write_bytes(b"PAR1")
    (folder / "Outcomes-b.csv").write_text("RecordID,In-hospital_death\n1,0\n")
    assert "not a readable Parquet file" in told(folder / "set-b.parquet")
    (folder / "set.zip").write_bytes(b"PK")
    assert "is not a readable zip" in told(folder / "set.zip")
    only = write(tmp_path / "y", {1: []})
    assert "no stay is left after the rule 'at least one measurement'" in told(only)


def test_a_parquet_file_with_a_column_twice_is_refused(tmp_path: Path) -> None:
    table = pa.table([[1], ["HR"], [1.0], [2.0]], names=["RecordID", "Parameter", "Value", "Value"])
    pq.write_table(table, tmp_path / "set-a.parquet")
    with pytest.raises(TimeDiffError, match="the column Value is there twice"):
        require_numbers(tmp_path / "set-a.parquet", {"RecordID": True, "Value": True})
