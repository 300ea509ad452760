"""DuckDB with the doors shut: it reads what it was given and its scratch folder, and cannot be told otherwise."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import duckdb
import pytest

from timediff.sources import engines
from timediff.sources.duckdb_process import duckdb_process
from timediff.sources.engines import connect


def folder_source(tmp_path: Path) -> str:
    (tmp_path / "given.csv").write_text("a\n1\n")
    return str(tmp_path)


def database_source(tmp_path: Path) -> str:
    with duckdb.connect(str(tmp_path / "x.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
        connection.execute("CREATE VIEW outside AS SELECT * FROM read_text('/etc/hosts')")
    return f"duckdb:///{tmp_path / 'x.duckdb'}"


SOURCES: dict[str, Callable[[Path], str]] = {"folder": folder_source, "database": database_source}
FORBIDDEN = (
    "COPY (SELECT 42) TO 'PWNED'",
    "COPY (SELECT 42) TO '{folder}/PWNED'",
    "EXPORT DATABASE '{folder}/PWNED'",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SELECT * FROM read_csv('/etc/passwd')",
    "SELECT * FROM read_text('/etc/passwd')",
    "SELECT * FROM glob('/etc/*')",
    "ATTACH '{folder}/other.duckdb'",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET lock_configuration = false",
    "RESET lock_configuration",
    "SET temp_directory = '/'",
)


@pytest.mark.parametrize("kind", SOURCES)
def test_no_statement_reaches_beyond_what_was_given(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    where = SOURCES[kind](tmp_path)
    before = sorted(tmp_path.iterdir())
    with connect(where) as engine:
        for statement in FORBIDDEN:
            with pytest.raises(duckdb.Error):
                engine.backend.raw_sql(statement.format(folder=tmp_path)).fetchall()
    assert sorted(tmp_path.iterdir()) == before


def test_a_view_of_a_database_file_cannot_read_another_file(tmp_path: Path) -> None:
    with connect(database_source(tmp_path)) as engine, pytest.raises(duckdb.PermissionException):
        engine.backend.raw_sql("SELECT * FROM outside").fetchall()


def test_only_files_that_were_given_are_read(tmp_path: Path) -> None:
    given, other = tmp_path / "given.csv", tmp_path / "other.csv"
    for path in (given, other):
        path.write_text("a\n1\n")
    with duckdb_process([given]) as process:
        read = "SELECT * FROM read_csv('{}', header=true, auto_detect=false, columns={{'a': 'BIGINT'}})"
        assert process.backend.raw_sql(read.format(process.admit(given))).fetchall() == [(1,)]
        with pytest.raises(duckdb.PermissionException):
            process.backend.raw_sql(read.format(process.admit(other)))


def test_what_does_not_fit_into_memory_goes_to_the_scratch_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("timediff.sources.duckdb_process.MEMORY", "40MB")
    with duckdb_process() as process:
        process.run("CREATE TEMP TABLE large AS SELECT range AS a, random() AS b FROM range(3000000)")
        assert process.backend.raw_sql("SELECT count(*) FROM large").fetchall() == [(3_000_000,)]
        assert sum(path.stat().st_size for path in process.folder.glob("duckdb_temp*")) > 2**20


def test_times_are_on_one_clock_and_progress_can_be_asked_for(tmp_path: Path) -> None:
    opened: AbstractContextManager[Any] = connect(folder_source(tmp_path))
    with opened as engine:
        assert isinstance(engine, engines.Files)
        assert engine.backend.raw_sql("SELECT current_setting('TimeZone')").fetchall() == [("UTC",)]
        assert engine.backend.raw_sql("SELECT current_setting('enable_progress_bar')").fetchall() == [(True,)]
