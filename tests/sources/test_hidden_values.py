"""No message shows a cell of the data, whatever is wrong with it, unless someone asks for that."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from timediff.errors import TimeDiffError
from timediff.runtime.cell_values import show_values
from timediff.sources.driver_messages import connection_reason, reason
from timediff.sources.raw import write_raw
from timediff.sources.registry import resolve, source
from timediff.sources.table_files import find

SECRET = "Jane Doe"


@pytest.fixture(scope="module")
def mimic4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mimic4") / "x"
    write_raw("mimic4", folder, 8, seed=1)
    return folder / "raw"


def rewritten(raw: Path, folder: Path, table: str, change: Callable[[list[list[str]]], None]) -> str:
    """A copy of raw tables with one that was changed: rows of fields, the first with the names."""
    import gzip

    shutil.copytree(raw, folder)
    path = find(folder, table)
    rows = [line.split(",") for line in gzip.decompress(path.read_bytes()).decode().splitlines()]
    change(rows)
    path.unlink()
    path.with_suffix("").write_text("\n".join(map(",".join, rows)) + "\n")
    return str(folder)


def put(column: str, value: str, row: int = 3) -> Callable[[list[list[str]]], None]:
    def change(rows: list[list[str]]) -> None:
        rows[row][rows[0].index(column)] = value

    return change


def text_file(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def physionet2012(folder: Path, line: str, outcome: str = "1,0") -> str:
    text_file(folder / "set-a" / "1.txt", f"Time,Parameter,Value\n00:00,RecordID,1\n{line}\n")
    text_file(folder / "Outcomes-a.txt", f"RecordID,In-hospital_death\n{outcome}\n")
    return str(folder)


def physionet2019(folder: Path, value: str) -> str:
    names = ["HR", "O2Sat", "Temp", "SBP", "MAP", "DBP", "Resp", "Age", "Gender", "ICULOS", "SepsisLabel"]
    row = "|".join([value, *"23456", "7", "60", "1", "1", "0"])
    return text_file(folder / "p000001.psv", f"{'|'.join(names)}\n{row}\n")


def meds(folder: Path, **columns: Any) -> str:
    table = {
        "subject_id": [1],
        "time": [datetime(2024, 1, 1)],
        "code": ["ICU_ADMISSION//A"],
        "numeric_value": [1.0],
    } | columns
    pq.write_table(pa.table(table), folder / "events.parquet")
    return str(folder / "events.parquet")


TABLE = {"stay": "stay", "time": "time", "time_unit": "h", "origin": "zero", "layout": "wide", "steps": 2,
         "feature": [{"name": "hr"}]}  # fmt: skip
LONG = TABLE | {"layout": "long", "variable": "what", "value": "number"}
WRONG: dict[str, tuple[str, dict[str, Any], Callable[[Path], str]]] = {
    "a time": ("physionet2012", {}, lambda p: physionet2012(p, f"{SECRET},HR,80")),
    "a value": ("physionet2012", {}, lambda p: physionet2012(p, f"00:10,HR,{SECRET}")),
    "a line": ("physionet2012", {}, lambda p: physionet2012(p, f"00:10,HR,80,{SECRET}")),
    "an outcome": ("physionet2012", {}, lambda p: physionet2012(p, "00:10,HR,80", f"{SECRET},0")),
    "a vital sign": ("physionet2019", {}, lambda p: physionet2019(p, SECRET)),
    "a price": ("stocks", {}, lambda p: text_file(p / "stock_data.csv", f"Open,Close\n1,2\n3,{SECRET}\n")),
    "more prices": ("stocks", {}, lambda p: text_file(p / "stock_data.csv", f"Open,Close\n1,2\n3,4,{SECRET}\n")),
    "a subject": ("meds", {}, lambda p: meds(p, subject_id=[SECRET])),
    "a number": ("meds", {}, lambda p: meds(p, numeric_value=[SECRET])),
    "a stay": ("table", TABLE, lambda p: text_file(p / "t.csv", f"stay,time,hr\n{SECRET},0,80\n")),
    "a cell": ("table", TABLE, lambda p: text_file(p / "t.csv", f"stay,time,hr\n1,0,{SECRET}\n")),
    "a moment": ("table", TABLE, lambda p: text_file(p / "t.csv", f"stay,time,hr\n1,{SECRET},80\n")),
    "a row": ("table", TABLE, lambda p: text_file(p / "t.csv", f"stay,time,hr\n1,0,80\n1,1,81,{SECRET}\n")),
    "a variable": ("table", LONG, lambda p: text_file(p / "t.csv", f"stay,time,what,number\n1,0,{SECRET},1\n")),
    "a quotation": ("table", TABLE, lambda p: text_file(p / "t.csv", f'stay,time,hr\n1,0,"{SECRET}\n')),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_told_without_the_value(what: str, tmp_path: Path) -> None:
    name, changes, write = WRONG[what]
    where, settings = write(tmp_path), resolve(name, changes=changes)
    with pytest.raises(TimeDiffError) as caught:
        source(name).extract(where, settings)
    assert not any(part in str(caught.value) for part in SECRET.split())


@pytest.mark.parametrize("what", ["a time", "a stay", "a cell", "a price", "a subject"])
def test_the_value_is_shown_to_who_asks(what: str, tmp_path: Path) -> None:
    name, changes, write = WRONG[what]
    where, settings = write(tmp_path), resolve(name, changes=changes)
    with show_values(), pytest.raises(TimeDiffError, match=SECRET):
        source(name).extract(where, settings)


COLUMNS = [
    ("icustays", "stay_id"), ("icustays", "intime"), ("admissions", "hospital_expire_flag"),
    ("patients", "anchor_age"), ("chartevents", "valuenum"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_text_among_numbers_is_told_by_column_line_and_file(
    table: str, column: str, mimic4: Path, tmp_path: Path
) -> None:
    where = rewritten(mimic4, tmp_path / "raw", table, put(column, SECRET))
    with pytest.raises(TimeDiffError) as caught:
        source("mimic4").extract(where, resolve("mimic4"))
    assert f"column {column} has a value that is not of its type in line 4 of {table}.csv" in str(caught.value)
    assert "Jane" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "column", "value", "said"),
    [
        ("admissions", "hospital_expire_flag", "-1", None),
        ("icustays", "stay_id", "", "1 row without a stay"),
        ("icustays", "subject_id", "", "1 row without a patient"),
        ("chartevents", "stay_id", str(2**63 - 1), None),
    ],
)
def test_odd_values_are_counted_or_refused(
    table: str, column: str, value: str, said: str | None, mimic4: Path, tmp_path: Path
) -> None:
    where = rewritten(mimic4, tmp_path / "raw", table, put(column, value))
    if said is None:
        found = source("mimic4").extract(where, resolve("mimic4"))
        assert set(np.unique(found.cohort.static["died"])) <= {0, 1}
        found.write(tmp_path / "out", "")
    else:
        with pytest.raises(TimeDiffError, match=said):
            source("mimic4").extract(where, resolve("mimic4"))


def test_a_stay_that_is_there_twice_is_refused(mimic4: Path, tmp_path: Path) -> None:
    where = rewritten(mimic4, tmp_path / "raw", "icustays", lambda rows: rows.append(rows[1]))
    with pytest.raises(TimeDiffError, match="1 stay more than once"):
        source("mimic4").extract(where, resolve("mimic4"))


@pytest.mark.parametrize("hour", ["1e300", "1e18", "-9e18", "nan", "inf"])
def test_an_hour_beyond_all_hours_is_a_sentence_or_no_hour(hour: str, tmp_path: Path) -> None:
    path = Path(physionet2019(tmp_path, "80"))
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, lines[1].replace("|60|1|1|0", f"|60|1|{hour}|0"), ""]))
    try:
        found = source("physionet2019").extract(str(path), resolve("physionet2019", changes={"hours": 1}))
        found.write(tmp_path / "out", "")
    except TimeDiffError:
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("shown", [False, True])
def test_a_driver_that_says_something_new_is_not_quoted(shown: bool) -> None:
    error = duckdb.Error(f'Strange Error: the row "{SECRET}" is odd')
    with show_values(shown):
        assert (SECRET in reason(error)) == shown
        assert (SECRET in connection_reason(error)) == shown


def test_a_line_that_quotes_a_driver_is_not_taken_for_its_words() -> None:
    line = f'Error when converting column "{SECRET}" possible'
    error = duckdb.Error(f'CSV Error on Line: 3 Original Line: {line} Error when converting column "b". Could not')
    assert reason(error) == "column b has a value that is not of its type in line 3"


def test_thousands_of_missing_columns_are_a_short_message(tmp_path: Path) -> None:
    features = [{"name": f"feature_{i}"} for i in range(3000)]
    path = text_file(tmp_path / "t.csv", "stay,time\n1,0\n")
    with pytest.raises(TimeDiffError, match="and 2,980 more") as caught:
        source("table").extract(path, resolve("table", changes=TABLE | {"feature": features}))
    assert len(str(caught.value)) < 4000


def test_of_two_extractions_into_one_folder_one_wins_whole(tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{i * 2}" for i in range(60))
    text_file(tmp_path / "stock_data.csv", f"Open,Close\n{rows}\n")
    command = [sys.executable, "-m", "timediff", "extract", "stocks", str(tmp_path), str(tmp_path.parent / "one_out")]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[1] for process in running]
    codes = [process.returncode for process in running]
    assert sorted(codes) == [0, 2], said
    assert "one_out" in said[codes.index(2)]
    assert (tmp_path.parent / "one_out" / "extraction.json").is_file()
