"""Frozen dataclasses of settings ⇄ nested tables, as TOML has them. A mistake names what was meant."""

import difflib
import math
import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

from timediff.errors import Problems, TimeDiffError

T = TypeVar("T")
UNIONS = (types.UnionType, typing.Union)  # Literal[…] | None is of the second kind
LONGEST = 80  # characters of a value in a message


def update(settings: T, table: Mapping[str, Any], where: str, renamed: Mapping[str, str] | None = None) -> T:
    """`settings` with the values of a table in their place; all that is wrong is said at once.

    `renamed` are paths that were other ones before: they are answered with those of today.
    """
    found: list[str] = []
    updated = _updated(settings, table, "", found, list(flat(settings)), renamed or {})
    if found:
        raise Problems(where, found)
    return typing.cast(T, updated)


def build(kind: type[T], table: Mapping[str, Any], where: str) -> T:
    """A dataclass from a table that gives at least what has no default."""
    found: list[str] = []
    built = _built(kind, table, "", found)
    if found:
        raise Problems(where, found)
    return typing.cast(T, built)


def plain(settings: Any) -> dict[str, Any]:
    """A dataclass as nested tables and lists, ready for TOML."""
    return {_key(f.name): _plain(getattr(settings, f.name), f.default) for f in fields(settings)}


def flat(settings: Any, prefix: str = "") -> dict[str, Any]:
    """Values by dotted path; lists of tables are values."""
    found: dict[str, Any] = {}
    for f in fields(settings):
        path, value = f"{prefix}{_key(f.name)}", getattr(settings, f.name)
        found |= flat(value, f"{path}.") if is_dataclass(value) else {path: value}
    return found


def _plain(value: Any, default: Any = None) -> Any:
    if value is None and default is not None and default is not MISSING:
        return "unset"  # TOML has no null, and leaving it out would mean the default
    if is_dataclass(value):
        return plain(value)
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _updated(
    settings: Any, table: Mapping[str, Any], prefix: str, found: list[str], every: list[str], renamed: Mapping[str, str]
) -> Any:
    known, hints = {_key(f.name): f.name for f in fields(settings)}, typing.get_type_hints(type(settings))
    before = len(found)
    changes: dict[str, Any] = {}
    for key, value in table.items():
        path = f"{prefix}{key}"
        if path in renamed:
            found.append(f"{path} is {renamed[path]} now: give it by that name")
            continue
        if key not in known:
            found.append(f"there is no setting {_cut(path)}{_choice(settings, prefix)}; {_nearest(path, every)}")
            continue
        current = getattr(settings, known[key])
        if not is_dataclass(current):
            changes[known[key]] = _converted(value, hints[known[key]], path, found)
        elif isinstance(value, Mapping):
            current, chosen = _chosen(current, value, path, found)
            paths = every if current is getattr(settings, known[key]) else [*flat(current, f"{path}.")]
            changes[known[key]] = _updated(current, chosen, f"{path}.", found, paths, renamed)
        else:
            first = _key(fields(current)[0].name)
            found.append(f"{path} is a table of settings; set one of them, such as {path}.{first}")
    return settings if len(found) > before else replace(settings, **changes)


def _chosen(current: Any, table: Mapping[str, Any], path: str, found: list[str]) -> tuple[Any, Mapping[str, Any]]:
    """A table whose type its own first value names (`choose_by`): the settings that are named, and the table for them.

    Another name begins with that type's defaults.
    """
    key = getattr(type(current), "choose_by", None)
    if key is None or not isinstance(table.get(key), str):
        return current, table
    try:
        kind = type(current).choose(table[key])
    except TimeDiffError as error:
        found.append(f"{path}.{key}: {str(error).rstrip('.')}")
        return current, {k: v for k, v in table.items() if k != key}
    chosen = current if type(current) is kind else kind()
    return chosen, {**table, key: getattr(chosen, key)}


def _choice(settings: Any, prefix: str) -> str:
    """What was chosen that may lack a setting, in words."""
    key = getattr(type(settings), "choose_by", None)
    return "" if key is None else f" where {prefix}{key} is {getattr(settings, key)}"


def _built(kind: Any, table: Mapping[str, Any], prefix: str, found: list[str]) -> Any:
    known, hints = {_key(f.name): f for f in fields(kind)}, typing.get_type_hints(kind)
    before = len(found)
    values = {}
    for key, value in table.items():
        if key in known:
            values[known[key].name] = _converted(value, hints[known[key].name], f"{prefix}{key}", found)
        else:
            found.append(f"there is no setting {_cut(prefix + key)}; {_nearest(key, list(known))}")
    for key, f in known.items():
        if key not in table and f.default is MISSING and f.default_factory is MISSING:
            found.append(f"{prefix}{key} is missing; expected {_described(hints[f.name])}")
    return None if len(found) > before else kind(**values)


def _converted(value: Any, expected: Any, path: str, found: list[str]) -> Any:
    """The value as the type a setting has; a whole number serves where a number is wanted."""
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if is_dataclass(expected) and isinstance(value, Mapping):
        return _built(expected, value, f"{path}.", found)
    if origin is Literal and isinstance(value, str) and value in arguments:
        return value
    if origin in UNIONS:  # the first kind that fits; "unset" is how a command line says None
        kinds = [kind for kind in arguments if kind is not type(None)]
        if value in (None, "unset") and len(kinds) < len(arguments):
            return None
        for kind in kinds:
            tried: list[str] = []
            result = _converted(value, kind, path, tried)
            if not tried:
                return result
        return _converted(value, kinds[0], path, found)
    if origin is tuple and isinstance(value, list | tuple):
        inner = arguments[:1] * len(value) if arguments[1:] == (...,) else arguments
        if len(inner) == len(value):
            places = [f"{path}[{i}]" for i in range(len(value))]
            return tuple(_converted(v, k, p, found) for v, k, p in zip(value, inner, places, strict=True))
    if origin is dict and isinstance(value, Mapping):
        return {str(k): _converted(v, arguments[1], f"{path}.{_cut(str(k))}", found) for k, v in value.items()}
    if expected is float and isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if type(value) is expected and expected is not float:
        return value
    found.append(f"{path} is {shown(value)}; expected {_described(expected)}")
    return None


def shown(value: Any) -> str:
    """A value as a message may have it."""
    if isinstance(value, int) and abs(value) >= 10**LONGEST:
        return "a whole number of too many digits"  # which Python may refuse to write
    return _cut(repr(value[:LONGEST] if isinstance(value, str | list | tuple) else value))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"


def _described(expected: Any) -> str:
    origin, arguments = typing.get_origin(expected), typing.get_args(expected)
    if origin is Literal:
        return f"one of {', '.join(arguments)}"
    if origin in UNIONS:
        return f"{_described(arguments[0])}, or unset"
    if origin is tuple:
        many = arguments[1:] == (...,)
        if many and typing.get_origin(arguments[0]) is Literal:
            return f"a list of {_described(arguments[0]).removeprefix('one of ')}"
        return f"a list of {_described(arguments[0])}s" if many else f"a list of {len(arguments)} numbers"
    if origin is dict:
        return "a table"
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    return names.get(expected, "a table of settings")


def _nearest(path: str, every: list[str]) -> str:
    path = path[-LONGEST:]  # what is longer is near to nothing
    ends = {p.rpartition(".")[2]: p for p in every}
    close = difflib.get_close_matches(path, every, n=1, cutoff=0.6)
    close = close or [ends[e] for e in difflib.get_close_matches(path.rpartition(".")[2], ends, n=1, cutoff=0.6)]
    return f"did you mean {close[0]}?" if close else f"the settings are {', '.join(every)}"


def _key(name: str) -> str:
    return name.rstrip("_")  # `lambda` is a word of Python's, so its field is `lambda_`
