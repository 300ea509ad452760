"""Dataclasses from JSON that a folder holds: every value has the type of its field, or a sentence says where not."""

import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, TypeVar

from timediff.errors import listed
from timediff.runtime.parsing import Unreadable

T = TypeVar("T")
UNIONS = (types.UnionType, typing.Union)
WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", type(None): "null"}


def restored(kind: type[T], tree: Any, where: str) -> T:
    """The dataclass whose fields a JSON object holds; a class says itself, by ValueError, what does not go together."""
    if not isinstance(tree, dict):
        raise Unreadable(f"{where} is not what TimeDiff writes: expected a table of {kind.__name__}.")
    hints, known = typing.get_type_hints(kind), {f.name: f for f in fields(typing.cast(Any, kind))}
    if strange := [key for key in tree if key not in known]:
        raise Unreadable(f"{where} is not what TimeDiff writes: {listed(strange)} is none of {kind.__name__}'s fields.")
    wanted = [name for name, f in known.items() if f.default is MISSING and f.default_factory is MISSING]
    if absent := [name for name in wanted if name not in tree]:
        raise Unreadable(f"{where} is not what TimeDiff writes: it lacks {listed(absent)}.")
    values = {key: value_of(hints[key], value, where, key) for key, value in tree.items()}
    try:
        return kind(**values)
    except ValueError as error:
        raise Unreadable(f"{where} is not what TimeDiff writes: {error}.") from error


def value_of(hint: Any, value: Any, where: str, path: str) -> Any:
    """The value, if it is of a type: a number, text, list, table, dataclass, or one of several of these."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin in UNIONS:
        for one in inner:
            try:
                return value_of(one, value, where, path)
            except Unreadable:
                continue
    elif origin in (list, Sequence) and isinstance(value, list):
        return [value_of(inner[0], item, where, f"{path}[{i}]") for i, item in enumerate(value)]
    elif origin in (dict, Mapping) and isinstance(value, dict):
        return {key: value_of(inner[1], item, where, f"{path}.{key}") for key, item in value.items()}
    elif is_dataclass(hint) and isinstance(hint, type):
        return restored(hint, value, f"{where}, {path}")
    elif hint is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    elif type(value) is hint:
        return value
    raise Unreadable(f"{where} is not what TimeDiff writes: {path} is not {_word(hint)}.")


def _word(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in UNIONS:
        return " or ".join(map(_word, inner))
    return WORDS.get(hint, "a list" if origin in (list, Sequence) else "a table")
