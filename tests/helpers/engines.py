"""Real engines for the tests: raw tables as Parquet, in a DuckDB file, and on a PostgreSQL server of our own."""

import gzip
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

from timediff.sources.engines import DUCKDB_TYPES, Table, csv_relation, find, header_of


def missing(engine: str, how: str) -> None:
    """Under CI a missing engine is a failure; elsewhere a skip that says how to get it."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"{engine} is missing: {how}")
    pytest.skip(f"{engine} is missing: {how}")


def as_parquet(raw: Path, tables: list[Table], folder: Path) -> Path:
    """The tables as Parquet files, all columns of unknown type as text."""
    folder.mkdir()
    for table in tables:
        path = find(raw, table.name)
        duckdb.sql(_select(path, table)).write_parquet(str(folder / f"{table.name.lower()}.parquet"))
    return folder


def as_duckdb(raw: Path, tables: list[Table], file: Path) -> str:
    """A DuckDB file with the schemas of the official build scripts."""
    with duckdb.connect(str(file)) as connection:
        for table in tables:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.schema}")
            select = _select(find(raw, table.name), table)
            connection.execute(f"CREATE TABLE {table.schema}.{table.name.lower()} AS {select}")
    return f"duckdb:///{file}"


def _types(path: Path, table: Table) -> dict[str, str]:
    return {name: DUCKDB_TYPES[table.columns.get(name.lower(), "string")] for name in header_of(path)}


def _select(path: Path, table: Table) -> str:
    return f"SELECT * FROM {csv_relation(path, _types(path, table))}"


def into_postgres(raw: Path, tables: list[Table], url: str) -> None:
    """The tables in the schemas that the official build scripts create."""
    import psycopg

    with psycopg.connect(url) as connection:
        for table in tables:
            path = find(raw, table.name)
            kinds = {n: k.replace("DOUBLE", "DOUBLE PRECISION") for n, k in _types(path, table).items()}
            columns = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {table.schema}")
            connection.execute(f"CREATE TABLE {table.schema}.{table.name} ({columns})")
            copy = f"COPY {table.schema}.{table.name} FROM STDIN WITH (FORMAT csv, HEADER true)"
            with gzip.open(path, "rb") as file, connection.cursor().copy(copy) as stream:
                shutil.copyfileobj(file, _Writer(stream))


class _Writer:
    def __init__(self, stream: object) -> None:
        self.write = stream.write


@contextmanager
def postgres_server() -> Iterator[str]:
    """A server on a free port, as the user postgres where we are root; yields its URL."""
    # Not in pytest's folders, which are closed to other users.
    with tempfile.TemporaryDirectory(prefix="postgres-") as folder, _server(Path(folder)) as url:
        yield url


@contextmanager
def _server(folder: Path) -> Iterator[str]:
    if shutil.which("initdb") is None or shutil.which("pg_ctl") is None:
        missing("PostgreSQL", "install its server, with initdb and pg_ctl on the path")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    data = folder / "data"
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres")
    run(["initdb", "-D", data, "-U", "tester", "--auth=trust", "-E", "UTF8", "--no-sync"])
    rules = data / "pg_hba.conf"  # one user needs a password, so that a wrong one can be tried
    rules.write_text(f"host all locked 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    options = f"-p {port} -k {folder} -c listen_addresses=127.0.0.1 -c fsync=off"
    run(["pg_ctl", "-D", data, "-o", options, "-l", folder / "log", "-w", "start"])
    try:
        yield f"postgresql://tester@127.0.0.1:{port}/postgres"
    finally:
        run(["pg_ctl", "-D", data, "-m", "immediate", "stop"])


def run(command: list[object]) -> None:
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    done = subprocess.run([*prefix, *map(str, command)], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
