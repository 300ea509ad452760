"""Text from outside, parsed in one place: limits on size, depth and range, and a sentence for what is beyond them.

Every TOML, JSON and plain text file that a user or another machine may have written is read by these functions. What
they return holds only finite trees of mappings, lists, texts, booleans, None and numbers that fit a machine word.
"""

import json
import math
import tomllib
from pathlib import Path
from typing import Any

from timediff.errors import TimeDiffError

MAX_BYTES = 256 * 2**20  # of a text file
MAX_DEPTH = 32  # of tables and lists within each other
MAX_DIGITS = 400  # of a number
MAX_INTEGER = 2**63 - 1
SHOWN = 120  # characters of a parser's own complaint


class Unreadable(TimeDiffError, ValueError):
    """A file that is not what it should be. A ValueError too, for whoever can go on without the file."""


def read_text(path: Path, *, max_bytes: int = MAX_BYTES) -> str:
    """The text of a file, which is UTF-8."""
    try:
        size = path.stat().st_size
        if size > max_bytes:
            raise Unreadable(f"{path} has {size:,} bytes; expected at most {max_bytes:,}.")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Unreadable(f"{path} is not a text in UTF-8 (byte {error.start:,}).") from error
    except OSError as error:
        raise Unreadable(f"{path} could not be read: {error.strerror or type(error).__name__}.") from error


def read_json(path: Path, *, finite: bool = True) -> Any:
    return parse_json(read_text(path), str(path), finite=finite)


def read_toml(path: Path) -> dict[str, Any]:
    return parse_toml(read_text(path), str(path))


def parse_json(text: str, where: str, *, finite: bool = True) -> Any:
    """JSON; without `finite` its numbers may be NaN and Infinity."""

    def constant(name: str) -> float:
        if finite:
            raise ValueError(f"it holds {name}")
        return float(name)

    try:
        tree = json.loads(text, parse_int=_integer, parse_float=_number, parse_constant=constant)
    except RecursionError as error:
        raise _too_deep(where) from error
    except ValueError as error:
        raise Unreadable(f"{where} is not valid JSON: {_shortened(error)}.") from error
    _check(tree, where, finite)
    return tree


def parse_toml(text: str, where: str) -> dict[str, Any]:
    try:
        tree = tomllib.loads(text, parse_float=_float_or_constant)
    except RecursionError as error:
        raise _too_deep(where) from error
    except ValueError as error:  # tomllib's own is one, and so is Python's limit on digits
        raise Unreadable(f"{where} is not valid TOML: {_shortened(error)}.") from error
    _check(tree, where, finite=False)  # a setting says itself whether it may be infinite
    return tree


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS or abs(int(digits)) > MAX_INTEGER:
        raise ValueError(f"a whole number has {len(digits)} digits, more than 64 bits hold")
    return int(digits)


def _number(digits: str) -> float:
    value = float(digits) if len(digits) <= MAX_DIGITS else math.inf
    if not math.isfinite(value):
        raise ValueError("a number is beyond double precision")
    return value


def _float_or_constant(digits: str) -> float:
    return float(digits) if digits.lstrip("+-") in ("inf", "nan") else _number(digits)


def _check(tree: Any, where: str, finite: bool) -> None:
    """Of all that is in the tree: its depth, its texts, its whole numbers."""
    level = [tree]
    for _ in range(MAX_DEPTH + 1):
        below: list[Any] = []
        for node in level:
            if isinstance(node, dict):
                below += [*node, *node.values()]
            elif isinstance(node, list):
                below += node
            else:
                _check_leaf(node, where, finite)
        level = below
        if not level:
            return
    raise _too_deep(where)


def _check_leaf(value: Any, where: str, finite: bool) -> None:
    if isinstance(value, str) and not _encodable(value):
        raise Unreadable(f"{where} holds a text that is not valid Unicode.")
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        raise Unreadable(f"{where} holds a whole number that is more than 64 bits hold.")
    if finite and isinstance(value, float) and not math.isfinite(value):
        raise Unreadable(f"{where} holds a number that is not finite.")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_deep(where: str) -> Unreadable:
    return Unreadable(f"{where} is nested more than {MAX_DEPTH} deep.")


def _shortened(error: Exception) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
