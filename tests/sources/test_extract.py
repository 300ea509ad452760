"""Extraction finds the truth: on every engine, in every form of the files, and on the real demos."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from conftest import same
from helpers import engines
from helpers.data import DATA
from timediff import cli
from timediff.data.cohort import read_cohort
from timediff.errors import TimeDiffError
from timediff.sources import eicu, mimic, mimic4_extended
from timediff.sources.engines import Table, connect
from timediff.sources.raw import write_raw
from timediff.sources.registry import SOURCES, resolve, source

TABLES: dict[str, list[Table]] = {
    "mimic3": [mimic.TABLES3.stays, mimic.TABLES3.admissions, mimic.TABLES3.patients, mimic.TABLES3.events],
    "mimic4": [mimic.TABLES4.stays, mimic.TABLES4.admissions, mimic.TABLES4.patients, mimic.TABLES4.events],
    "eicu": [eicu.PATIENT, resolve("eicu").vitals],
}
SUPPLEMENT = [mimic4_extended.DIAGNOSES, mimic4_extended.PRESCRIPTIONS, mimic4_extended.LABS]
pytestmark = pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::DeprecationWarning", "ignore::ResourceWarning"
)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The simulated databases: raw tables and the truth."""
    folder = tmp_path_factory.mktemp("raw")
    for database in TABLES:
        write_raw(database, folder / database, 40, seed=2)
    return {database: folder / database for database in TABLES}


@pytest.fixture(scope="module")
def postgres(raw: dict[str, Path]) -> Iterator[str]:
    with engines.postgres_server() as url:
        for database, tables in TABLES.items():
            engines.into_postgres(raw[database] / "raw", tables, url)
        engines.into_postgres(raw["mimic4"] / "raw", SUPPLEMENT, url)
        yield url


def spark_source(raw: Path) -> str:
    if find_spec("pyspark") is None or shutil.which("java") is None:
        engines.missing("Spark", "pip install 'timediff-icu[spark]', and Java 17")
    return f"spark://local[2]?path={raw / 'raw'}"


FORMS: dict[str, Callable[..., str]] = {
    "csv.gz": lambda raw, tmp_path, tables, request: str(raw / "raw"),
    "parquet": lambda raw, tmp_path, tables, request: str(
        engines.as_parquet(raw / "raw", tables, tmp_path / "parquet")
    ),
    "duckdb": lambda raw, tmp_path, tables, request: engines.as_duckdb(raw / "raw", tables, tmp_path / "x.duckdb"),
    "postgres": lambda raw, tmp_path, tables, request: request.getfixturevalue("postgres"),
    "spark": lambda raw, tmp_path, tables, request: spark_source(raw),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("database", TABLES)
def test_the_truth_is_found_exactly(
    database: str, form: str, raw: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = FORMS[form](raw[database], tmp_path, TABLES[database], request)
    found = source(database).extract(where, resolve(database))
    assert same(found.cohort, read_cohort(raw[database] / "cohort"))
    assert found.found == len(found.cohort) + sum(found.dropped.values())
    assert all(count > 0 for rule, count in found.dropped.items() if "outcome" not in rule or database == "eicu")


@pytest.mark.parametrize("form", ["postgres", "spark"])
@pytest.mark.parametrize("rule", ["first", "mean", "median", "at", "nearest"])
@pytest.mark.parametrize("database", TABLES)
def test_engines_agree_on_every_rule(
    database: str, rule: str, form: str, raw: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    settings = resolve(database, changes={"rule": rule})
    other = FORMS[form](raw[database], tmp_path, TABLES[database], request)
    files, server = (source(database).extract(where, settings).cohort for where in (str(raw[database] / "raw"), other))
    assert np.array_equal(files.stay_id, server.stay_id)
    for name, values in files.series.items():
        exact = {"rtol": 1e-9} if rule in ("mean", "median") else {"rtol": 0, "atol": 0}
        assert np.allclose(values, server.series[name], equal_nan=True, **exact)


@pytest.mark.parametrize("form", ["postgres", "spark"])
@pytest.mark.parametrize("database", TABLES)
def test_engines_agree_as_published(
    database: str, form: str, raw: dict[str, Path], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The nearest rows, the clock's hours with the packed supplement, an unbroken rhythm."""
    changes = {"extended": True} if database == "mimic4" else {}
    settings = resolve(database, changes=changes, as_published=True)
    other = FORMS[form](raw[database], tmp_path, TABLES[database], request)
    files, server = (source(database).extract(w, settings) for w in (str(raw[database] / "raw"), other))
    assert files.dropped == server.dropped
    assert same(files.cohort, server.cohort)


def test_names_in_upper_and_lower_case_and_plain_csv(raw: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "lower"
    folder.mkdir()
    for path in (raw["mimic3"] / "raw").iterdir():
        with gzip.open(path, "rt") as file:
            header, rest = file.readline(), file.read()
        (folder / path.name.lower().removesuffix(".gz")).write_text(header.upper() + rest)
    found = source("mimic3").extract(str(folder), resolve("mimic3"))
    assert same(found.cohort, read_cohort(raw["mimic3"] / "cohort"))


def test_another_cohort_is_an_edit(raw: dict[str, Path], tmp_path: Path) -> None:
    text = source("mimic3").default_toml().replace("steps = 25", "steps = 12").replace("hours = 24", "hours = 36")
    (tmp_path / "mine.toml").write_text(text)
    found = source("mimic3").extract(str(raw["mimic3"] / "raw"), resolve("mimic3", tmp_path / "mine.toml")).cohort
    truth = read_cohort(raw["mimic3"] / "cohort")
    assert found.schema.steps == 12
    assert 0 < len(found) < len(truth)
    chosen = np.isin(truth.stay_id, found.stay_id)
    assert np.array_equal(truth.take(chosen).series["sbp"][:, :12], found.series["sbp"], equal_nan=True)


def test_the_command_writes_what_it_did(raw: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sys.argv", ["timediff", "extract", "mimic3", str(raw["mimic3"] / "raw"), str(tmp_path / "out")]
    )
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    report = json.loads((tmp_path / "out" / "extraction.json").read_text())
    assert report["stays"] == 40
    assert report["stays_found"] == 40 + sum(report["stays_dropped"].values())
    assert report["engine"].startswith("DuckDB")
    assert len(report["source_sha256"]) == 64
    assert set(report["features"]) == {"heart_rate", "sbp", "dbp", "mbp", "resp_rate", "temperature", "spo2", "died"}
    assert same(read_cohort(tmp_path / "out"), read_cohort(raw["mimic3"] / "cohort"))


def test_every_source_prints_its_settings_and_reads_them_back(tmp_path: Path) -> None:
    for name in SOURCES.names():
        (tmp_path / f"{name}.toml").write_text(source(name).default_toml())
        assert resolve(name, tmp_path / f"{name}.toml") == resolve(name)


def copy(raw: Path, tmp_path: Path) -> Path:
    shutil.copytree(raw / "raw", tmp_path / "raw")
    return tmp_path / "raw"


def _truncate(folder: Path) -> None:
    path = folder / "CHARTEVENTS.csv.gz"
    path.write_bytes(path.read_bytes()[:20_000])


def _rewrite(change: Callable[[str], str]) -> Callable[[Path], None]:
    def apply(folder: Path) -> None:
        path = folder / "CHARTEVENTS.csv.gz"
        with gzip.open(path, "rt") as file:
            text = file.read()
        with gzip.open(path, "wt") as file:
            file.write(change(text))

    return apply


def _text_in_number(text: str) -> str:
    lines = text.splitlines()
    fields = lines[5].split(",")
    place = lines[0].split(",").index("icustay_id")
    fields[place] = "secret"
    return "\n".join([*lines[:5], ",".join(fields), *lines[6:]]) + "\n"


MISTAKES = {
    "no tables": (
        lambda folder: [(folder / f"{n}.csv.gz").unlink() for n in ("CHARTEVENTS", "PATIENTS")],
        "(?s)no PATIENTS.csv.*no CHARTEVENTS.csv",
    ),
    "truncated": (_truncate, "CHARTEVENTS.csv.gz is damaged: it ends in the middle"),
    "no column": (
        _rewrite(lambda text: text.replace("valuenum", "valuenumber", 1)),
        "CHARTEVENTS.csv.gz has no column 'valuenum'",
    ),
    "text": (_rewrite(_text_in_number), "icustay_id has a value that is not of its type"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_bad_tables_are_one_sentence(mistake: str, raw: dict[str, Path], tmp_path: Path) -> None:
    folder = copy(raw["mimic3"], tmp_path)
    change, said = MISTAKES[mistake]
    change(folder)
    with pytest.raises(TimeDiffError, match=said) as caught:
        source("mimic3").extract(str(folder), resolve("mimic3"))
    assert "Original Line" not in str(caught.value)


def test_an_empty_result_names_the_rule(raw: dict[str, Path]) -> None:
    with pytest.raises(TimeDiffError, match="no stay is left after the rule 'unit stay of at least 99999 h'"):
        source("mimic3").extract(str(raw["mimic3"] / "raw"), resolve("mimic3", changes={"hours": 99999}))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("nowhere", "is not a folder"),
        ("oracle://x", "is not known"),
        ("duckdb:///nowhere.duckdb", "is not a DuckDB file"),
        ("postgresql://me:secret@127.0.0.1:1/db", "no connection to postgresql://127.0.0.1:1/db"),
        ("spark://local[2]", "expected spark://MASTER"),
    ],
)
def test_sources_that_are_not_there(where: str, said: str) -> None:
    with pytest.raises(TimeDiffError, match=said.replace("[", r"\[")) as caught, connect(where):
        pass
    assert "secret" not in str(caught.value)


def test_a_wrong_password_is_one_sentence(postgres: str) -> None:
    import psycopg

    with psycopg.connect(postgres) as connection:
        connection.execute("CREATE ROLE locked LOGIN PASSWORD 'right'")
    wrong = postgres.replace("tester@", "locked:secret@")
    with pytest.raises(TimeDiffError, match=r"no connection.*password authentication failed") as caught, connect(wrong):
        pass
    assert "secret" not in str(caught.value)


def test_another_databases_tables(raw: dict[str, Path]) -> None:
    with pytest.raises(TimeDiffError, match=r"ICUSTAYS\.csv\.gz has no column 'stay_id'"):
        source("mimic4").extract(str(raw["mimic3"] / "raw"), resolve("mimic4"))


def test_tables_of_a_spark_catalogue(raw: dict[str, Path], tmp_path: Path) -> None:
    with connect(f"spark://local[2]?path={raw['mimic3'] / 'raw'}") as engine:
        session = engine.session
        session.sql(f"CREATE DATABASE IF NOT EXISTS mimic LOCATION '{tmp_path / 'warehouse'}'")
        for table in TABLES["mimic3"]:
            path = engines.find(raw["mimic3"] / "raw", table.name)
            session.read.csv(str(path), header=True, escape='"').write.mode("overwrite").saveAsTable(
                f"mimic.{table.name}"
            )
    found = source("mimic3").extract("spark://local[2]?schema=mimic", resolve("mimic3"))
    assert same(found.cohort, read_cohort(raw["mimic3"] / "cohort"))


def test_spark_runs_the_python_of_this_environment(raw: dict[str, Path], tmp_path: Path) -> None:
    """Nobody has to activate an environment; the python3 of PATH may be of another version."""
    where = spark_source(raw["mimic3"])
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    variables = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    variables["PATH"] = f"{tmp_path}:{variables['PATH']}"
    call = [sys.executable, "-m", "timediff", "extract", "mimic3", where, str(tmp_path / "cohort")]
    done = subprocess.run(call, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert same(read_cohort(tmp_path / "cohort"), read_cohort(raw["mimic3"] / "cohort"))


def test_a_database_without_the_tables(tmp_path: Path) -> None:
    import duckdb

    duckdb.connect(str(tmp_path / "empty.duckdb")).close()
    with pytest.raises(TimeDiffError, match=r"there is no table mimiciii\.icustays"):
        source("mimic3").extract(f"duckdb:///{tmp_path / 'empty.duckdb'}", resolve("mimic3"))


needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the open demos are not here: see TIMEDIFF_DATA")


@needs_data
def test_mimic3_demo() -> None:
    found = source("mimic3").extract(str(DATA / "mimic3_demo"), resolve("mimic3"))
    assert (found.found, len(found.cohort)) == (136, 111)
    assert dict(found.dropped) == {
        "unit stay of at least 24 h": 22, "age of at least 16": 0, "a known outcome": 0, "at least one measurement": 3,
    }  # fmt: skip
    missing = {name: np.isnan(values).mean() for name, values in found.cohort.series.items()}
    assert missing["heart_rate"] < 0.15
    assert 0.4 < missing["temperature"] < 0.8


@needs_data
def test_the_hours_of_the_clock_lose_little_of_the_mimic4_demo() -> None:
    """Admissions to the second: only 4 of these 55 stays have a value whole hours after theirs."""
    found = source("mimic4").extract(str(DATA / "mimic4_demo"), resolve("mimic4", changes={"rule": "at"})).cohort
    missing = {name: np.isnan(values).mean() for name, values in found.series.items()}
    assert len(found) == 55
    assert missing["heart_rate"] < 0.05
    assert 0.3 < missing["sbp"] < 0.4  # a cuff is seldom read on the hour


@needs_data
def test_mimic4_demo() -> None:
    found = source("mimic4").extract(str(DATA / "mimic4_demo"), resolve("mimic4"))
    assert (found.found, len(found.cohort)) == (140, 55)
    assert all(np.isnan(values).mean() < 0.35 for values in found.cohort.series.values())


def test_settings_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small long table with a mapping given word by word; classes may be whole numbers."""
    rows = [f"{stay},{hour},{code},{value}" for stay in (1, 2) for hour, code, value in ((0, "hr", 80), (1, "gcs", 15))]
    (tmp_path / "events.csv").write_text("\n".join(["id,hour,code,value", *rows]))
    features = '[{name = "hr", kind = "continuous"}, {name = "gcs", kind = "categorical", classes = [3, 15]}]'
    words = {
        "layout": "long", "stay": "id", "time": "hour", "time_unit": "h", "variable": "code", "value": "value",
        "step": "1h", "steps": 2, "origin": "zero", "feature": features,
    }  # fmt: skip
    chosen = [text for key, value in words.items() for text in ("--set", f"{key}={value}")]
    arguments = ["extract", "table", str(tmp_path / "events.csv"), str(tmp_path / "out"), *chosen]
    monkeypatch.setattr("sys.argv", ["timediff", *arguments])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    cohort = read_cohort(tmp_path / "out")
    assert np.array_equal(cohort.series["hr"], [[80, np.nan]] * 2, equal_nan=True)
    assert np.array_equal(cohort.series["gcs"], [[np.nan, 1]] * 2, equal_nan=True)


@pytest.mark.parametrize("header", ["it's", "x': 'VARCHAR'}); COPY (SELECT 42) TO 'PWNED'; --", 'a"b'])
def test_a_header_is_a_name_and_never_a_command(
    header: str, raw: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy(raw["eicu"], tmp_path)
    with gzip.open(folder / "patient.csv.gz", "rt") as file:
        lines = file.read().splitlines()
    with gzip.open(folder / "patient.csv.gz", "wt") as file:
        file.write("\n".join([f"{lines[0]},{header}", *(f"{line},1" for line in lines[1:]), ""]))
    monkeypatch.chdir(tmp_path)
    found = source("eicu").extract(str(folder), resolve("eicu"))
    assert same(found.cohort, read_cohort(raw["eicu"] / "cohort"))
    assert not (tmp_path / "PWNED").exists()
