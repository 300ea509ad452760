"""Engines: where raw tables lie. One Ibis expression runs on each; a source never asks which one it has.

SOURCE is a folder of .csv, .csv.gz or Parquet files (DuckDB in process), `duckdb:///FILE`,
`postgresql://USER@HOST/DB`, or `spark://MASTER?path=FOLDER` or `?schema=NAME`.
"""

import hashlib
import os
import re
import sys
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import ibis
import pyarrow as pa

from timediff.errors import Problems, TimeDiffError, listed
from timediff.runtime.progress import Progress, silent
from timediff.sources import sql
from timediff.sources.addresses import HIDDEN, is_address, port_is_a_number, public, without_secrets
from timediff.sources.driver_messages import connection_reason, from_driver, reason
from timediff.sources.duckdb_process import DuckDB, duckdb_process
from timediff.sources.gzip_files import GRACE, Verification
from timediff.sources.sql import DUCKDB_TYPES, csv_relation, parquet_relation
from timediff.sources.table_files import find, header_of, is_parquet, tables_in

# local, local[4], local[*, 2], or hosts with their ports
SPARK_MASTER = re.compile(r"local(\[[\d*]+(, ?\d+)?\])?|[\w.-]+:\d{1,5}(,[\w.-]+:\d{1,5})*", re.ASCII)
SPARK_TYPES = {"int64": "long", "float64": "double", "string": "string", "timestamp": "timestamp"}


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
        self.verification = Verification()
        self.names: Mapping[str, str] = {}  # of files, by the name that the engine knows them by

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

    def __init__(self, folder: Path, duckdb: DuckDB) -> None:
        super().__init__(duckdb.backend)
        self.folder, self.duckdb, self.read = folder, duckdb, []  # type: tuple[Path, DuckDB, list[Path]]
        self.hashes: list[str] = []  # of tables in memory
        self.names = duckdb.names

    @property
    def where(self) -> str:
        return str(self.folder)

    def version(self) -> str:
        return self.duckdb.version

    def fingerprint(self) -> str:
        state = hashlib.sha256("\n".join(self.hashes).encode())
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
            self.duckdb.run(sql.table(name, self.backend.compile(expression)))
        return self.backend.table(name)

    def open(self, path: Path, query: Callable[[Path], str], view: str) -> Any:
        """A file as an Ibis table: the view of a query of it."""
        self.duckdb.run(sql.view(view, query(self.admit(path))))
        return self.backend.table(view)

    def admit(self, path: Path) -> Path:
        """The file as DuckDB may read it; a packed one is also read to its end by us."""
        self.read.append(path)
        self.verification.add(path)
        return self.duckdb.admit(path)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Asks DuckDB four times a second how far it is."""
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
        header = header_of(path)
        _require(table, header, path.name)
        chosen = [(_named(header, column), kind, column) for column, kind in table.columns.items()]

        def query(file: Path) -> str:
            if is_parquet(path):
                return sql.select(parquet_relation(file), chosen)
            names = _numbered(header, table)
            types = {name: DUCKDB_TYPES[table.columns.get(name, "string")] for name in names}
            return sql.select(csv_relation(file, types), [(column, kind, column) for _, kind, column in chosen])

        return self.open(path, query, f"file_{table.name.lower()}")


class Database(Engine):
    """Tables in a database (PostgreSQL, a DuckDB file), in the schemas that the official build scripts create."""

    def __init__(self, url: str, backend: Any) -> None:
        super().__init__(backend)
        self.url = url

    @property
    def where(self) -> str:
        return public(self.url)

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
        return public(self.url)

    def version(self) -> str:
        return f"Spark {self.session.version}"

    def fingerprint(self) -> str:
        return hashlib.sha256(self.where.encode()).hexdigest()

    def keep(self, expression: Any, name: str) -> Any:
        frame = self.session.sql(str(ibis.to_sql(expression, dialect="pyspark"))).cache()
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)

    def put(self, rows: Mapping[str, Sequence[Any]], name: str) -> Any:
        frame = self.session.createDataFrame(list(zip(*rows.values(), strict=True)), list(rows))
        frame.createOrReplaceTempView(name)
        return self.backend.table(name)

    def _table(self, table: Table) -> Any:
        from pyspark.sql.functions import col

        frame = self._catalogued(table) if self.folder is None else self._file(find(self.folder, table.name), table)
        _require(table, frame.columns, table.name)
        view = f"spark_{table.name.lower()}"
        chosen = [
            col(sql.spark_identifier(_named(frame.columns, c))).cast(SPARK_TYPES[k]).alias(c)
            for c, k in table.columns.items()
        ]
        frame.select(*chosen).createOrReplaceTempView(view)
        return self.backend.table(view)

    def _catalogued(self, table: Table) -> Any:
        parts = [*str(self.schema).split("."), table.name.lower()]
        return self.session.table(".".join(map(sql.spark_identifier, parts)))

    def _file(self, path: Path, table: Table) -> Any:
        from pyspark.sql.types import StructType

        if is_parquet(path):
            header_of(path)  # says what a damaged file is
            return self.session.read.parquet(str(path))
        self.verification.add(path)
        header = header_of(path)
        _require(table, header, path.name)
        types = StructType()
        for name in _numbered(header, table):
            types.add(name, SPARK_TYPES[table.columns.get(name, "string")])
        form = {"header": True, "mode": "FAILFAST", "escape": '"', "timestampFormat": "yyyy-MM-dd HH:mm:ss"}
        return self.session.read.csv(str(path), schema=types, **form)


@contextmanager
def connect(source: str, progress: Progress = silent) -> Iterator[Engine]:
    """Opens SOURCE; what it makes on the way is gone afterwards. What an engine says no to becomes a sentence."""
    with _connected(source) as engine, _explained(engine, source):
        engine.progress = progress
        yield engine


@contextmanager
def connect_files(where: Path, files: Sequence[Path], progress: Progress = silent) -> Iterator[Files]:
    """The same for files that are known already, whatever their layout."""
    with _files(where, files) as engine, _explained(engine, str(where)):
        engine.progress = progress
        yield engine


@contextmanager
def _explained(engine: Engine, source: str) -> Iterator[None]:
    """What an engine says no to as a sentence; nothing was read whole before every file is known to be whole."""
    try:
        yield
        engine.verification.confirm()
    except Exception as error:
        if not isinstance(error, TimeDiffError) and not from_driver(error):
            raise
        engine.verification.confirm(GRACE)  # a damaged file explains all else
        if isinstance(error, TimeDiffError):
            raise
        why = without_secrets(reason(error, engine.names), source)
        raise TimeDiffError(f"{public(source)} could not be read: {why}.") from error
    finally:
        engine.verification.stop()


@contextmanager
def _connected(source: str) -> Iterator[Engine]:
    kind, separator, rest = source.partition("://")
    if separator and kind in ("postgresql", "postgres"):
        if not port_is_a_number(source):
            raise TimeDiffError(
                f"no connection to {public(source)}: its port is not a number; expected "
                "postgresql://USER@HOST:PORT/DATABASE, with / and @ of a password as %2F and %40."
            )
        backend = _opened(source, lambda: ibis.connect(source))
        try:
            yield Database(source, backend)
        finally:
            backend.disconnect()
    elif separator and kind == "duckdb":
        path = Path(rest.removeprefix("/") if rest.startswith("/./") else rest)
        if not path.is_file():
            raise TimeDiffError(f"{path} is not a DuckDB file.")
        with ExitStack() as stack:
            yield Database(source, _opened(source, lambda: stack.enter_context(duckdb_process(database=path)).backend))
    elif separator and kind == "spark":
        with _spark(source, rest) as engine:
            yield engine
    elif is_address(source):
        shown = public(source) if separator else HIDDEN
        raise TimeDiffError(
            f"{shown.partition('://')[0]}:// is not known; expected a folder, duckdb:///FILE, postgresql://… or spark://…."
        )
    else:
        folder = _folder(source)
        with _files(folder, tables_in(folder)) as engine:
            yield engine


@contextmanager
def _files(folder: Path, files: Sequence[Path]) -> Iterator[Files]:
    # DuckDB takes a CSV file for an empty table and would build its joins' hash tables from it: as written, the
    # right side of a join is the small one.
    with duckdb_process(files, options={"disabled_optimizers": "join_order,build_side_probe_side"}) as duckdb:
        yield Files(folder, duckdb)


def _folder(path: str) -> Path:
    if not Path(path).is_dir():
        raise TimeDiffError(
            f"{path} is not a folder; expected one with the database's .csv, .csv.gz or .parquet files."
        )
    return Path(path)


@contextmanager
def _spark(source: str, rest: str) -> Iterator[Engine]:
    master, _, query = rest.partition("?")
    if not SPARK_MASTER.fullmatch(master):  # Spark would print what it cannot read, whatever is in it
        raise TimeDiffError(
            f"spark://{HIDDEN}: the master is not one that Spark has; expected local, local[N], local[*], or "
            "HOST:PORT without a user or a password."
        )
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise TimeDiffError("reading with Spark needs pyspark: pip install 'timediff-icu[spark]'.") from error
    options = parse_qs(query)
    path, schema = options.get("path", [None])[0], options.get("schema", [None])[0]
    if (path is None) == (schema is None):
        raise TimeDiffError(f"{public(source)}: expected spark://MASTER?path=FOLDER or spark://MASTER?schema=NAME.")
    folder = None if path is None else _folder(path)
    # Times in the databases have no zone; any that shifts its clocks would move them.
    os.environ["TZ"] = "UTC"
    # Spark would start the python3 of PATH, which need not be the one of this environment.
    if master.startswith("local"):
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = (
        SparkSession.builder.master(master if master.startswith("local") else f"spark://{master}")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.extraJavaOptions", "-Duser.timezone=UTC")
    )
    session = _opened(source, builder.getOrCreate)
    session.sparkContext.setLogLevel("ERROR")
    yield Spark(source, ibis.pyspark.connect(session), session, folder, schema)


def _opened(source: str, connection: Callable[[], Any]) -> Any:
    try:
        return connection()
    except Exception as error:
        if isinstance(error, TimeDiffError):
            raise
        why = without_secrets(connection_reason(error), source)
        raise TimeDiffError(f"no connection to {public(source)}: {why}.") from error


def _require(table: Table, header: Sequence[str], name: str) -> None:
    known = Counter(column.lower() for column in header)
    if missing := [column for column in table.columns if column not in known]:
        raise Problems(name, [f"{name} has no column {listed(missing)}"])
    if twice := [column for column in table.columns if known[column] > 1]:
        raise Problems(name, [f"{name} has the column {listed(twice)} more than once"])


def _named(header: Sequence[str], column: str) -> str:
    return next(name for name in header if name.lower() == column)


def _numbered(header: Sequence[str], table: Table) -> list[str]:
    """Columns that are read by their own names, the others by numbers: an engine never sees what a file calls them."""
    return [name.lower() if name.lower() in table.columns else f"unread {i}" for i, name in enumerate(header)]
