"""Engines: where raw tables lie. One Ibis expression runs on each; a source never asks which one it has.

SOURCE is a folder of .csv, .csv.gz or Parquet files (DuckDB in process), `duckdb:///FILE`,
`postgresql://USER@HOST/DB`, or `spark://MASTER?path=FOLDER` or `?schema=NAME`.
"""

import gzip
import hashlib
import os
import re
import tempfile
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import ibis
import pyarrow as pa

from timediff.errors import Problems, TimeDiffError
from timediff.runtime.progress import Progress, silent

MEMORY = "3.5GB"  # given to DuckDB; what does not fit goes to a temporary file, and the rest of us needs about 1 GB
DUCKDB_TYPES = {"int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR", "timestamp": "TIMESTAMP"}
SPARK_TYPES = {"int64": "BIGINT", "float64": "DOUBLE", "string": "STRING", "timestamp": "TIMESTAMP"}


@dataclass(frozen=True)
class Table:
    """A table of a published layout: its name, the columns that are read and their types, its home in a database."""

    name: str
    columns: Mapping[str, str]
    schema: str


class Engine(ABC):
    progress: Progress = staticmethod(silent)  # how far the scan of the large table is, in per cent

    def __init__(self, backend: Any) -> None:
        self.backend = backend

    def tables(self, wanted: Sequence[Table]) -> list[Any]:
        """The tables as Ibis expressions with just the declared columns; what is missing is named, all of it."""
        found: list[Any] = []
        problems: list[str] = []
        for table in wanted:
            try:
                found.append(self._table(table))
            except Problems as error:
                problems += error.problems
        if problems:
            raise Problems(self.where, problems)
        return found

    def keep(self, expression: Any, name: str) -> Any:
        """The expression's rows, computed once and kept where the data is, for the rest of this session."""
        self.backend.create_table(name, expression, temp=True, overwrite=True)
        return self.backend.table(name)

    def put(self, rows: Mapping[str, Sequence[Any]], name: str) -> Any:
        """A small table of our own, laid where the data is."""
        self.backend.create_table(name, pa.table(dict(rows)), temp=True, overwrite=True)
        return self.backend.table(name)

    def facts(self) -> dict[str, str]:
        return {"engine": self.version(), "source_sha256": self.fingerprint()}

    @property
    @abstractmethod
    def where(self) -> str:
        """What the user called it, without a password."""

    @abstractmethod
    def version(self) -> str:
        """The engine's name and version."""

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash that changes when the data do: of names, sizes, first and last bytes of files."""

    @abstractmethod
    def _table(self, table: Table) -> Any: ...


class Files(Engine):
    """A folder of files, read by DuckDB in process."""

    def __init__(self, folder: Path, backend: Any) -> None:
        super().__init__(backend)
        self.folder, self.read = folder, []  # type: tuple[Path, list[Path]]

    @property
    def where(self) -> str:
        return str(self.folder)

    def version(self) -> str:
        return f"DuckDB {self.backend.version}"

    def fingerprint(self) -> str:
        state = hashlib.sha256()
        for path in sorted(set(self.read)):
            size = path.stat().st_size
            state.update(f"{path.name} {size}".encode())
            with path.open("rb") as file:
                state.update(file.read(2**20))
                file.seek(max(0, size - 2**20))
                state.update(file.read())
        return state.hexdigest()

    def keep(self, expression: Any, name: str) -> Any:
        # On the connection itself, not on a cursor of it: only then can it be asked how far it is.
        with self._watched():
            self.backend.raw_sql(f"CREATE OR REPLACE TEMP TABLE {name} AS {self.backend.compile(expression)}")
        return self.backend.table(name)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Asks DuckDB four times a second how far it is."""
        self.backend.raw_sql("SET enable_progress_bar = true")
        self.backend.raw_sql("SET enable_progress_bar_print = false")
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.25):
                percent = self.backend.con.query_progress()
                if percent > 0:
                    self.progress(min(int(percent), 99), 100)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _table(self, table: Table) -> Any:
        path = find(self.folder, table.name)
        self.read.append(path)
        header = header_of(path)
        _require(table, header, path.name)
        types = {name: DUCKDB_TYPES[table.columns.get(name.lower(), "string")] for name in header}
        relation = parquet_relation(path) if path.suffix == ".parquet" else csv_relation(path, types)
        view = f"file_{table.name.lower()}"
        selected = ", ".join(
            f'CAST({identifier(_named(header, c))} AS {DUCKDB_TYPES[k]}) AS "{c}"' for c, k in table.columns.items()
        )
        self.backend.raw_sql(f"CREATE OR REPLACE TEMP VIEW {view} AS SELECT {selected} FROM {relation}")
        return self.backend.table(view)


class Database(Engine):
    """Tables in a database (PostgreSQL, a DuckDB file), in the schemas that the official build scripts create."""

    def __init__(self, url: str, backend: Any) -> None:
        super().__init__(backend)
        self.url = url

    @property
    def where(self) -> str:
        return _public(self.url)

    def version(self) -> str:
        return f"{self.backend.name} {self.backend.version}"

    def fingerprint(self) -> str:
        return hashlib.sha256(self.where.encode()).hexdigest()

    def _table(self, table: Table) -> Any:
        homes = {name.lower(): name for name in self._schemas()}
        for schema in (table.schema, "main", "public"):
            if schema not in homes:
                continue
            names = {n.lower(): n for n in self.backend.list_tables(database=homes[schema])}
            if table.name.lower() in names:
                found = self.backend.table(names[table.name.lower()], database=homes[schema])
                _require(table, found.columns, table.name)
                return found.select(**{c: found[_named(found.columns, c)].cast(k) for c, k in table.columns.items()})
        raise Problems(self.where, [f"there is no table {table.schema}.{table.name.lower()}"])

    def _schemas(self) -> list[str]:
        return list(self.backend.list_databases())


class Spark(Engine):
    """Files or catalogue tables read by Spark."""

    def __init__(self, url: str, backend: Any, session: Any, folder: Path | None, schema: str | None) -> None:
        super().__init__(backend)
        self.url, self.session, self.folder, self.schema = url, session, folder, schema

    @property
    def where(self) -> str:
        return self.url

    def version(self) -> str:
        return f"Spark {self.session.version}"

    def fingerprint(self) -> str:
        return hashlib.sha256(self.url.encode()).hexdigest()

    def keep(self, expression: Any, name: str) -> Any:
        frame = self.session.sql(str(ibis.to_sql(expression, dialect="pyspark"))).cache()
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)

    def put(self, rows: Mapping[str, Sequence[Any]], name: str) -> Any:
        frame = self.session.createDataFrame(list(zip(*rows.values(), strict=True)), list(rows))
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)

    def _table(self, table: Table) -> Any:
        if self.folder is None:
            frame = self.session.table(f"{self.schema}.{table.name.lower()}")
        else:
            path = find(self.folder, table.name)
            if path.suffix == ".parquet":
                frame = self.session.read.parquet(str(path))
            else:
                header = header_of(path)
                kinds = {n.replace("`", "``"): table.columns.get(n.lower(), "string") for n in header}
                types = ", ".join(f"`{n}` {SPARK_TYPES[kind]}" for n, kind in kinds.items())
                frame = self.session.read.csv(
                    str(path),
                    schema=types,
                    header=True,
                    mode="FAILFAST",
                    escape='"',
                    timestampFormat="yyyy-MM-dd HH:mm:ss",
                )
        _require(table, frame.columns, table.name)
        chosen = [f"CAST(`{_named(frame.columns, c)}` AS {SPARK_TYPES[k]}) AS `{c}`" for c, k in table.columns.items()]
        view = f"spark_{table.name.lower()}"
        frame.selectExpr(*chosen).createOrReplaceTempView(view)
        return self.backend.table(view)


@contextmanager
def connect(source: str, progress: Progress = silent) -> Iterator[Engine]:
    """Opens SOURCE; what it makes on the way is gone afterwards. What an engine says no to becomes a sentence."""
    try:
        with _connected(source) as engine:
            engine.progress = progress
            yield engine
    except Exception as error:
        if type(error).__module__.split(".")[0] not in ("duckdb", "_duckdb", "psycopg", "pyspark", "py4j", "ibis"):
            raise
        raise TimeDiffError(f"{_public(source)} could not be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """What is wrong, without the row it is wrong in: that would show a patient's data."""
    text = " ".join(str(error).split())
    number = re.search(r"line:? (\d+)", text, re.IGNORECASE)
    column = re.search(r'convert(?:ing)? (?:column|string) "([^"]{1,40})"', text, re.IGNORECASE)
    file = re.search(r"file[^\"\']{0,12}[\"\']?([^\"\'\s]+\.(?:csv|gz|parquet))", text, re.IGNORECASE)
    if column:
        where = f" in line {number[1]}" if number else ""
        which = re.search(r'convert(?:ing)? column "([^"]{1,40})"', text, re.IGNORECASE)
        what = f"column {which[1]} has" if which else "a column has"
        return f"{what} a value that is not of its type{where}{f' of {Path(file[1]).name}' if file else ''}."
    return re.split(r"(?i)original line|possible (?:solution|fix)|LINE 1:|JVM stacktrace", text)[0][:300].strip()


def _public(source: str) -> str:
    """SOURCE without a password."""
    before, at, after = source.rpartition("@")
    return f"{before.partition('://')[0]}://…@{after}" if at else source


@contextmanager
def _connected(source: str) -> Iterator[Engine]:
    kind, separator, rest = source.partition("://")
    if separator and kind in ("postgresql", "postgres"):
        yield Database(source, _opened(source, lambda: ibis.connect(source)))
    elif separator and kind == "duckdb":
        path = Path(rest.removeprefix("/") if rest.startswith("/./") else rest)
        if not path.is_file():
            raise TimeDiffError(f"{path} is not a DuckDB file.")
        yield Database(source, _opened(source, lambda: ibis.duckdb.connect(path, read_only=True)))
    elif separator and kind == "spark":
        with _spark(source, rest) as engine:
            yield engine
    elif separator:
        raise TimeDiffError(f"{kind}:// is not known; expected a folder, duckdb:///FILE, postgresql://… or spark://….")
    else:
        folder = Path(source)
        if not folder.is_dir():
            raise TimeDiffError(
                f"{folder} is not a folder; expected one with the database's .csv, .csv.gz or .parquet files."
            )
        with tempfile.TemporaryDirectory(prefix="timediff-") as scratch:
            backend = ibis.duckdb.connect(Path(scratch) / "scratch.duckdb", memory_limit=MEMORY, temp_directory=scratch)
            # DuckDB takes a CSV file for an empty table and would build its joins' hash tables from it: as written, the
            # right side of a join is the small one.
            backend.raw_sql("SET disabled_optimizers = 'join_order,build_side_probe_side'")
            try:
                yield Files(folder, backend)
            finally:
                backend.disconnect()


@contextmanager
def _spark(source: str, rest: str) -> Iterator[Engine]:
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise TimeDiffError("reading with Spark needs pyspark: pip install 'timediff[spark]'.") from error
    master, _, query = rest.partition("?")
    options = parse_qs(query)
    path, schema = options.get("path", [None])[0], options.get("schema", [None])[0]
    if (path is None) == (schema is None):
        raise TimeDiffError(f"{source}: expected spark://MASTER?path=FOLDER or spark://MASTER?schema=NAME.")
    # Times in the databases have no zone; any that shifts its clocks would move them.
    os.environ["TZ"] = "UTC"
    session = (
        SparkSession.builder.master(master if master.startswith("local") else f"spark://{master}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    folder = Path(path) if path else None
    if folder is not None and not folder.is_dir():
        raise TimeDiffError(
            f"{folder} is not a folder; expected one with the database's .csv, .csv.gz or .parquet files."
        )
    yield Spark(source, ibis.pyspark.connect(session), session, folder, schema)


def _opened(source: str, connection: Any) -> Any:
    try:
        return connection()
    except Exception as error:
        raise TimeDiffError(f"no connection to {_public(source)}: {_reason(error)}") from error


def literal(text: object) -> str:
    """A text in DuckDB's SQL, whatever is in it."""
    return "'" + str(text).replace("'", "''") + "'"


def identifier(name: str) -> str:
    """A column's name in DuckDB's SQL, whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def parquet_relation(path: Path) -> str:
    return f"read_parquet({literal(path)})"


def csv_relation(path: Path, types: Mapping[str, str], separator: str = ",") -> str:
    """A CSV file with all its columns in order; types are DuckDB's, never guessed."""
    columns = ", ".join(f"{literal(name)}: '{kind}'" for name, kind in types.items())
    form = f"""header=true, auto_detect=false, delim={literal(separator)}, quote='"', escape='"'"""
    return f"read_csv({literal(path)}, {form}, columns={{{columns}}})"


def find(folder: Path, table: str) -> Path:
    """The file of a table, in the folder or one below it, in upper or lower case."""
    for suffix in (".parquet", ".csv", ".csv.gz"):
        wanted = f"{table}{suffix}".lower()
        for path in sorted([*folder.iterdir(), *folder.glob("*/*")]):
            if path.name.lower() == wanted:
                return path
    raise Problems(
        str(folder), [f"there is no {table}.csv, {table}.csv.gz or {table}.parquet in {folder} or its folders"]
    )


def header_of(path: Path) -> list[str]:
    """The column names of a file, as they are written."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return list(pq.read_schema(path).names)
    try:
        with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
            line = file.readline()
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise Problems(path.name, [f"{path.name} cannot be read ({error})"]) from error
    return [name.strip().strip('"') for name in line.strip().lstrip("\ufeff").split(",")]


def _require(table: Table, header: Sequence[str], name: str) -> None:
    known = {column.lower() for column in header}
    if missing := [column for column in table.columns if column not in known]:
        raise Problems(name, [f"{name} has no column {', '.join(missing)}"])


def _named(header: Sequence[str], column: str) -> str:
    return next(name for name in header if name.lower() == column)
