"""Writing TOML. Reading is the standard library's tomllib, which has no counterpart for writing."""

import json
from collections.abc import Mapping
from typing import Any


def dumps(table: Mapping[str, Any]) -> str:
    """TOML text of nested mappings, lists of mappings, and plain values; None is left out."""
    return "\n".join(_lines(table, ())).strip() + "\n"


def _lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    lines, nested = [], []
    for key, value in table.items():
        where = (*path, key)
        if isinstance(value, Mapping):
            nested += ["", f"[{'.'.join(map(_key, where))}]", *_lines(value, where)]
        elif isinstance(value, list | tuple) and value and all(isinstance(item, Mapping) for item in value):
            for item in value:
                nested += ["", f"[[{'.'.join(map(_key, where))}]]", *_lines(item, where)]
        elif value is not None:
            lines.append(f"{_key(key)} = {_value(value)}")
    return lines + nested


def _key(key: str) -> str:
    bare = key.isascii() and key.replace("_", "a").replace("-", "a").isalnum()
    return key if bare else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for DEL, which TOML wants escaped and JSON does not.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)  # inf and nan are spelt the same in TOML
    return json.dumps(value)
