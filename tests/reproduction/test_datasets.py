"""What is found under a folder, and what stands in for what."""

import gzip
from pathlib import Path

import pytest

from helpers.data import DATA
from timediff.errors import TimeDiffError
from timediff.reproduction.datasets import KINDS, STATIC, VARIABLE, WHOLE, find, folder_of


def table(path: Path, rows: int = 3) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "a,b\n" + "1,2\n" * rows
    path.write_bytes(gzip.compress(text.encode())) if path.suffix == ".gz" else path.write_text(text)


def mimic3(folder: Path, rows: int) -> None:
    table(folder / "ICUSTAYS.csv.gz", rows)
    for name in ("CHARTEVENTS", "PATIENTS", "ADMISSIONS"):
        table(folder / f"{name}.csv.gz")


def names(folder: Path) -> list[str]:
    return [one.kind.name for one in find(folder)]


def test_databases_that_are_not_there_have_stand_ins(tmp_path: Path) -> None:
    table(tmp_path / "a" / "stock_data.csv")
    table(tmp_path / "b" / "c" / "energydata_complete.csv.gz")
    found = find(tmp_path)
    assert [one.kind.name for one in found] == [
        "stocks",
        "energy",
        "simulated-mimic3",
        "simulated-mimic4",
        "simulated-eicu",
    ]
    assert [one.path for one in found] == [tmp_path / "a", tmp_path / "b" / "c", None, None, None]
    assert all(one.kind.stand_in for one in found if one.path is None)


def test_a_database_that_is_there_has_no_stand_in(tmp_path: Path) -> None:
    mimic3(tmp_path / "mimic", WHOLE + 1)
    (tmp_path / "sepsis").mkdir()
    (tmp_path / "sepsis" / "p000001.psv").touch()
    assert names(tmp_path) == ["mimic3", "simulated-mimic4", "simulated-eicu"]


def test_a_database_of_few_stays_is_a_demo(tmp_path: Path) -> None:
    mimic3(tmp_path, WHOLE - 1)
    found = {one.kind.name: one for one in find(tmp_path)}
    assert "mimic3" not in found
    assert found["mimic3-demo"].kind.stand_in
    assert "simulated-mimic3" in found


def test_the_fourth_database_brings_the_supplement_for_one_experiment_alone(tmp_path: Path) -> None:
    (tmp_path / "hosp").mkdir()
    table(tmp_path / "icu" / "icustays.csv", WHOLE + 5)
    found = {one.kind.name: one for one in find(tmp_path)}
    assert found["mimic4"].kind.only == ()
    assert found["mimic4-static"].kind.only == (STATIC,)
    assert found["mimic4-static"].kind.changes == {"extended": True, "packed": True}
    assert found["mimic4-static"].path == tmp_path


def test_a_table_that_cannot_be_read_hides_nothing(tmp_path: Path) -> None:
    mimic3(tmp_path, 3)
    (tmp_path / "ICUSTAYS.csv.gz").write_bytes(b"\x1f\x8bdamaged")
    assert "mimic3-demo" in names(tmp_path)  # and extraction says what is wrong with it


def test_each_name_is_one_data_set_of_the_paper() -> None:
    assert len({kind.name for kind in KINDS}) == len(KINDS)
    assert {kind.paper for kind in KINDS} == {kind.name for kind in KINDS if not kind.stand_in}


def test_nothing_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TimeDiffError, match="holds none of the data sets"):
        find(tmp_path)
    with pytest.raises(TimeDiffError, match="is no folder"):
        folder_of(tmp_path / "nowhere")
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(TimeDiffError, match="add --data FOLDER"):
        folder_of(None)
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    assert folder_of(None) == tmp_path


@pytest.mark.skipif(not (DATA / "mimic4_demo").is_dir(), reason="no open data")
def test_the_open_data() -> None:
    found = names(DATA)
    assert {"stocks", "energy", "physionet2012", "physionet2019", "mimic3-demo", "mimic4-demo", "eicu-demo"} <= {*found}
    assert not {"mimic3", "mimic4", "eicu"} & {*found}
