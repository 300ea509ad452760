"""Whatever a file calls its columns, it is a name: no text from outside becomes a command."""

import shutil
from contextlib import suppress
from pathlib import Path

import duckdb
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from conftest import same
from timediff import cli
from timediff.data.cohort import read_cohort
from timediff.errors import TimeDiffError
from timediff.sources import sql
from timediff.sources.raw import write_raw
from timediff.sources.registry import resolve, source
from timediff.sources.table_files import find

HOSTILE = [
    "it's", 'a"b', "x': 'VARCHAR'}); COPY (SELECT 42) TO 'PWNED'; --", '"); COPY (SELECT 42) TO \'PWNED\'; --',
    "back\\slash\\", "`tick`", "a,b", "two\nlines", "NUL\0", "$1", "{}", "%s", "",
]  # fmt: skip
HEADERS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30), st.text("'\"`\\;,)(}{ \n\r\0ab*-", max_size=30))
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30))
PATIENTS = {"mimic3": "PATIENTS", "mimic4": "patients", "eicu": "patient"}
quick = settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_a_literal_and_an_identifier_come_back_as_they_were(text: str) -> None:
    try:
        statement = f"SELECT {sql.literal(text)} AS {sql.identifier(text or 'x')}"
    except TimeDiffError:
        assert "\0" in text
        return
    found = duckdb.sql(statement)
    assert found.columns == [text or "x"]
    assert found.fetchall() == [(text,)]


@given(TEXTS.filter(lambda text: "\0" not in text))
def test_a_spark_identifier_ends_where_it_should(text: str) -> None:
    quoted = sql.spark_identifier(text)
    assert quoted[0] == quoted[-1] == "`"
    assert quoted[1:-1].replace("``", "") == text.replace("`", "")
    assert quoted[1:-1].count("`") == 2 * text.count("`")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain")
    for database in PATIENTS:
        write_raw(database, folder / database, 8, seed=3)
    return folder


@pytest.mark.parametrize("database", PATIENTS)
@quick
@given(header=HEADERS)
@example(header=HOSTILE[2])
def test_any_header_gives_the_cohort_or_a_sentence(
    database: str, header: str, plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / database
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(plain / database / "raw", folder)
    path = find(folder, PATIENTS[database])
    lines = duckdb_lines(path)
    path.unlink()
    with path.with_suffix("").open("w", newline="", encoding="utf-8", errors="replace") as file:
        file.write("\n".join([f"{lines[0]},{header}", *(f"{line},1" for line in lines[1:]), ""]))
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with suppress(TimeDiffError):
        found = source(database).extract(str(folder), resolve(database))
        assert same(found.cohort, read_cohort(plain / database / "cohort"))
    assert sorted(tmp_path.rglob("*")) == before


def duckdb_lines(path: Path) -> list[str]:
    import gzip

    with gzip.open(path, "rt") as file:
        return file.read().splitlines()


@quick
@given(header=HEADERS, feature=HEADERS)
@example(header=HOSTILE[2], feature=HOSTILE[3])
def test_any_header_of_a_table_gives_a_cohort_or_a_sentence(
    header: str, feature: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    quoted = '"' + header.replace('"', '""') + '"'
    text = f"stay,time,{quoted}\n1,0,80\n1,1,81\n2,0,70\n2,1,71\n"
    (tmp_path / "rows.csv").write_text(text, encoding="utf-8", errors="replace", newline="")
    changes = {
        "layout": "wide", "stay": "stay", "time": "time", "time_unit": "h", "origin": "zero", "steps": 2,
        "feature": [{"name": feature or "x", "from": header or "column 3"}],
    }  # fmt: skip
    with suppress(TimeDiffError):
        found = source("table").extract(str(tmp_path / "rows.csv"), resolve("table", changes=changes))
        assert found.cohort.series[feature or "x"].tolist() == [[80, 81], [70, 71]]
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_names_that_engines_take_for_patterns_are_plain_names(plain: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data[1]*{a,b}'\""
    shutil.copytree(plain / "eicu" / "raw", folder)
    found = source("eicu").extract(str(folder), resolve("eicu"))
    assert same(found.cohort, read_cohort(plain / "eicu" / "cohort"))


def test_columns_that_nobody_reads_may_have_one_name(plain: Path, tmp_path: Path) -> None:
    folder = tmp_path / "raw"
    shutil.copytree(plain / "eicu" / "raw", folder)
    path = find(folder, "patient")
    lines = duckdb_lines(path)
    path.unlink()
    path.with_suffix("").write_text("\n".join([f"{lines[0]},note,NOTE", *(f"{line},1,2" for line in lines[1:]), ""]))
    found = source("eicu").extract(str(folder), resolve("eicu"))
    assert same(found.cohort, read_cohort(plain / "eicu" / "cohort"))
    path.with_suffix("").write_text("\n".join([f"{lines[0]},UniquePID", *(f"{line},1" for line in lines[1:]), ""]))
    with pytest.raises(TimeDiffError, match="has the column 'uniquepid' more than once"):
        source("eicu").extract(str(folder), resolve("eicu"))


def test_the_command_says_that_values_are_patient_data(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["timediff", "extract", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    assert "--show-values" in (text := capsys.readouterr().out)
    assert "patient data" in " ".join(text.split())
