"""What a driver (DuckDB, PostgreSQL's, Spark, Arrow) complains of, without the row it complains of.

A driver quotes values, lines and statements. So its words are only looked at for what is known to be harmless: the
column, the line number, the kind of mistake.
"""

import re
from collections.abc import Mapping, Sequence

from timediff.errors import listed
from timediff.runtime.cell_values import shown

NOT_UTF8 = "text that is not UTF-8"
LONGEST = 300  # characters of a driver's own words, where values are shown
MODULES = ("duckdb", "_duckdb", "psycopg", "pyspark", "py4j", "ibis", "pyarrow")
KINDS = {
    "a value that is not of its type": "converting|not convert|cast_invalid|invalid input syntax|conversion error",
    "a line with more or fewer columns than the first": "expected number of columns|malformed_record",
    NOT_UTF8: "invalid unicode|not utf-?8|invalid byte sequence",
    "a quotation mark that is not closed": "quote",
    "a line that is too long": "maximum line size|exceeds maximum",
    "a number that is too large": "out of range|overflow",
    "a packed stream that ends in the middle or is damaged": "gzip|unexpected end of|eofexception|zipexception",
    "bytes that are not those of a Parquet file": "parquet|thrift|snappy|zstd|could not read enough bytes",
    "two columns of one name": "duplicate|ambiguous|already exists",
    "a file or table that may not be read": "permission|access denied",
    "no such table, column or file": "does not exist|not_found|no such|undefined",
    "more than memory and the temporary folder hold": "out of memory|could not allocate|no space left|max_temp",
}
CONNECTIONS = {
    "password authentication failed": "password authentication failed|no password supplied",
    "the server does not answer there (connection refused)": "connection refused",
    "there is no such host": "resolve|translate host name|name or service not known|nodename",
    "it did not answer in time": "timeout|timed out",
    "it has no such database": "database .* does not exist",
    "it has no such user": "role .* does not exist",
    "it does not admit this user from here": "pg_hba",
    "SSL failed": "ssl|certificate",
    "it is not a DuckDB file of this version": "not a valid duckdb|magic bytes|newer version|older version|serializ",
    "another process has it open": "lock",
}


def from_driver(error: Exception) -> bool:
    return type(error).__module__.split(".")[0] in MODULES


def reason(error: Exception, names: Mapping[str, str] | None = None) -> str:
    """What is wrong with the data; `names` are files by the name that the driver knows them by."""
    text = " ".join(str(error).split())
    own = _without_rows(text)
    plain = re.sub(r"\"[^\"]*\"|'[^']*'", "", own)
    kind = _known(KINDS, plain) or f"something {_driver(error)} cannot read ({type(error).__name__})"
    column = re.search(r'converting column "([^"]{1,60})"', own, re.IGNORECASE)
    line = re.search(r"\bline:? (\d{1,12})\b", plain, re.IGNORECASE)
    file = re.search(r"\bfile\d+\.(?:csv|parquet)(?:\.gz)?\b", text)
    said = f"column {column[1]} has {kind}" if column else f"there is {kind}"
    said += f" in line {line[1]}" if line else ""
    said += f" of {names[file[0]]}" if names and file and file[0] in names else ""
    return f"{said}{_own_words(text)}"


def connection_reason(error: Exception) -> str:
    """Why there is no connection."""
    text = " ".join(str(error).split())
    return _known(CONNECTIONS, text) or f"{_driver(error)} says no ({type(error).__name__}{_own_words(text)})"


def arrow_reason(error: Exception, header: Sequence[str]) -> str:
    """What Arrow cannot read in a CSV file with these columns."""
    text = " ".join(str(error).split())
    column, row = re.search(r"column #(\d{1,9})", text), re.search(r"Row #(\d{1,12})", text)
    said = [f"column {header[int(column[1])]!r}"] if column and int(column[1]) < len(header) else []
    said += [f"row {row[1]}"] if row else []
    if "Expected" in text and "columns" in text:
        said.append("a line with more or fewer columns than the first")
    elif "conversion error" in text:
        said.append("a value that is not of its type")
    elif isinstance(error, KeyError) or "does not exist" in text or "in include_columns" in text:
        said.append(f"a column that is not there; there are {listed(header)}")
    return (", ".join(said) or type(error).__name__) + _own_words(text)


def _known(kinds: Mapping[str, str], text: str) -> str | None:
    return next((words for words, pattern in kinds.items() if re.search(pattern, text, re.IGNORECASE)), None)


def _own_words(text: str) -> str:
    return f" ({text[:LONGEST].strip()})" if shown() else ""


def _without_rows(text: str) -> str:
    """A driver's words without the line of a file that it quotes, and without its advice."""
    text = re.split(r"(?i)possible (?:solution|fix)|LINE 1:|JVM stacktrace|SQL expression", text)[0]
    own = "error when|expected number|invalid unicode|value with|maximum line"
    return re.sub(rf"(?i)original line:(?:.*(?={own})|.*)", "", text)


def _driver(error: Exception) -> str:
    known = {"duckdb": "DuckDB", "_duckdb": "DuckDB", "psycopg": "PostgreSQL", "pyarrow": "Arrow", "ibis": "Ibis"}
    return known.get(type(error).__module__.split(".")[0], "Spark")
