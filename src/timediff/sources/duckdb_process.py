"""DuckDB in this process, with the doors shut: it reads the files that we hand it and its scratch folder, nothing else.

No statement can open another file, attach a database, load an extension or change these settings.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ibis

from timediff.sources import sql
from timediff.sources.scratch import scratch

MEMORY = "3.5GB"  # given to DuckDB; what does not fit goes to a temporary file, and the rest of us needs about 1 GB


class DuckDB:
    """An Ibis backend, and the files that it may read."""

    def __init__(self, backend: Any, folder: Path) -> None:
        self.backend, self.folder = backend, folder
        self.names: dict[str, str] = {}  # of files, by the name that DuckDB knows them by

    @property
    def version(self) -> str:
        return f"DuckDB {self.backend.version}"

    def admit(self, path: Path) -> Path:
        """A link to one of its files, named by us: DuckDB takes a * in a name for many files."""
        ending = ".parquet" if path.name.lower().endswith(".parquet") else ".csv"
        link = self.folder / f"file{len(self.names)}{ending}{'.gz' if path.name.lower().endswith('.gz') else ''}"
        link.symlink_to(path.resolve())
        self.names[link.name] = path.name
        return link

    def run(self, statement: str) -> None:
        self.backend.raw_sql(statement)


@contextmanager
def duckdb_process(
    files: Sequence[Path] = (), database: Path | None = None, options: Mapping[str, str] | None = None
) -> Iterator[DuckDB]:
    """DuckDB that may read `files`: its database is one of our own in a scratch folder, or a file that is only read."""
    with scratch() as folder:
        backend = ibis.duckdb.connect(
            folder / "scratch.duckdb" if database is None else database,
            read_only=database is not None,
            memory_limit=MEMORY,
            temp_directory=str(folder),
        )
        try:
            for statement in sql.settings({**(options or {}), **_shut(folder, files)}):
                backend.raw_sql(statement)
            yield DuckDB(backend, folder)
        finally:
            backend.disconnect()


def _shut(folder: Path, files: Sequence[Path]) -> dict[str, str | bool | list[str]]:
    return {
        "TimeZone": "UTC",  # times without a zone are read as they stand; those with one all come to the same clock
        "enable_progress_bar": True,
        "enable_progress_bar_print": False,
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "allowed_paths": [str(path.resolve()) for path in files],
        "allowed_directories": [str(folder)],
        "enable_external_access": False,
        "lock_configuration": True,
    }
