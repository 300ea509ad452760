"""The SQL that we write ourselves: what comes from outside is a quoted identifier or a quoted literal in it.

What Ibis writes from expressions is quoted by Ibis.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from timediff.errors import TimeDiffError

DUCKDB_TYPES = {"int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR", "timestamp": "TIMESTAMP"}


def identifier(name: str) -> str:
    """A name in DuckDB's SQL, whatever is in it."""
    return '"' + _whole(name).replace('"', '""') + '"'


def spark_identifier(name: str) -> str:
    """A name in Spark's SQL, whatever is in it."""
    return "`" + _whole(name).replace("`", "``") + "`"


def literal(text: object) -> str:
    """A text in DuckDB's SQL, whatever is in it."""
    return "'" + _whole(str(text)).replace("'", "''") + "'"


def _whole(text: str) -> str:
    """Engines end a statement at NUL, so no text may hold one."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise TimeDiffError("a name holds a character that no table can have (NUL, or half of one): rename the column.")
    return text


def parquet_relation(path: Path) -> str:
    return f"read_parquet({literal(path)})"


def csv_relation(path: Path, types: Mapping[str, str], separator: str = ",") -> str:
    """A CSV file with all its columns in order; types are DuckDB's, never guessed."""
    columns = ", ".join(f"{literal(name)}: {literal(kind)}" for name, kind in types.items())
    form = f"""header=true, auto_detect=false, delim={literal(separator)}, quote='"', escape='"'"""
    packed = "gzip" if path.name.lower().endswith(".gz") else "none"
    return f"read_csv({literal(path)}, {form}, compression={literal(packed)}, columns={{{columns}}})"


def select(relation: str, columns: Iterable[tuple[str, str, str]] = ()) -> str:
    """All columns of a relation, or some: (name, type, new name) each."""
    chosen = ", ".join(
        f"CAST({identifier(name)} AS {DUCKDB_TYPES[kind]}) AS {identifier(new)}" for name, kind, new in columns
    )
    return f"SELECT {chosen or '*'} FROM {relation}"


def view(name: str, query: str) -> str:
    return f"CREATE OR REPLACE TEMP VIEW {identifier(name)} AS {query}"


def table(name: str, query: str) -> str:
    return f"CREATE OR REPLACE TEMP TABLE {identifier(name)} AS {query}"


def meds_events(relation: str, value: str) -> str:
    """subject, moment, code and number of a MEDS shard."""
    # Values are 32 bits wide in the standard: by way of text, 36.7 is 36.7 and not 36.70000076.
    return (
        'SELECT CAST("subject_id" AS BIGINT) AS subject, CAST("time" AS TIMESTAMP) AS moment, '
        f'CAST("code" AS VARCHAR) AS code, CAST(CAST({identifier(value)} AS VARCHAR) AS DOUBLE) AS number '
        f"FROM {relation}"
    )


def settings(values: Mapping[str, str | bool | list[str]]) -> list[str]:
    """SET statements, in order."""

    def written(value: str | bool | list[str]) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return f"[{', '.join(map(literal, value))}]" if isinstance(value, list) else literal(value)

    return [f"SET {identifier(name)} = {written(value)}" for name, value in values.items()]
