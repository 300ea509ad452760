"""What can be wrong with a file: its bytes, its text, its table, its zip. Each mutation says what it did."""

import io
import json
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

MARK = "Zyxomma7319"  # planted in cells, ids and passwords: no output may show it
MARKED_ID = 7319246508
SECRETS = (MARK, str(MARKED_ID), f"{MARKED_ID:,}")

HUGE = ("9" * 5000, "1" + "0" * 30, "9223372036854775808", "18446744073709551616", "-9223372036854775809", "1e999")
NUMBERS = (*HUGE, "-1", "0", "-0.0", "1e308", "-1e308", "5e-324", "0.1", "2147483648", "1000000000000")
HOSTILE = (
    "it's", '"', "\\", "x'; DROP TABLE x; --", "x': 'VARCHAR'}); COPY (SELECT 42) TO 'PWNED'; --", "a`b", "[bold]x[/]",
    "[/]", "<script>alert(1)</script>", "{0}", "%s", "../../x", "", " ", "\t", "\u202e", "é" * 300, "x" * 5000, "ÿ",
    "nan", "None", "stay_id", "step", "length", "time", "💉",
)  # fmt: skip
TOML_VALUES = (
    *NUMBERS, "nan", "inf", "-inf", "true", '""', '"x"', "[]", "{}", "[[]]", "{a = {b = 1}}", "1979-05-27", "07:32:00",
    "[1, 'a', {}]", "0x10", "[" * 3000 + "]" * 3000, "[" * 40 + "]" * 40, '"\\u0000"', '"unset"', "[1e308, -1e308]",
    "[nan, nan]", "[inf, 1]", "[2, 1]", "[1, 2, 3]",
)  # fmt: skip
JSON_VALUES = (
    *NUMBERS, "NaN", "Infinity", "-Infinity", "null", "true", '""', '"x"', "[]", "{}", "[[]]", '{"a": {"b": 1}}',
    "[" * 3000 + "]" * 3000, "[" * 40 + "]" * 40, '"\\ud800"', '"\\u0000"', '[1, "a", {}]', "[null]", "[NaN, 1]",
)  # fmt: skip


@dataclass(frozen=True)
class Done:
    what: str
    sure: bool = False  # nothing but the undamaged result or a refusal is right


# Bytes


def cut(rng: Random, content: bytes) -> tuple[bytes, str]:
    at = rng.randrange(1, max(2, len(content) - 1))
    return content[:at], f"cut at byte {at} of {len(content)}"


def flip(rng: Random, content: bytes, end: int | None = None) -> tuple[bytes, str]:
    at, bit = rng.randrange(end or len(content)), rng.randrange(8)
    damaged = bytearray(content)
    damaged[at] ^= 1 << bit
    return bytes(damaged), f"bit {bit} of byte {at} of {len(content)} flipped"


def zeros(rng: Random, content: bytes) -> tuple[bytes, str]:
    at = rng.randrange(len(content))
    width = min(512, len(content) - at)
    return content[:at] + bytes(width) + content[at + width :], f"{width} zero bytes at {at}"


def garbage(rng: Random, content: bytes) -> tuple[bytes, str]:
    return content + rng.randbytes(100), "100 odd bytes appended"


def digit(rng: Random, content: bytes) -> tuple[bytes, str]:
    """What a slip of the hand does: still a number, another one."""
    places = [i for i, byte in enumerate(content) if chr(byte).isdigit() and byte < 128]
    if not places:
        return flip(rng, content)
    at = rng.choice(places)
    other = rng.choice([d for d in b"123456789" if d != content[at]])
    return content[:at] + bytes([other]) + content[at + 1 :], f"digit at byte {at} of {len(content)} → {chr(other)}"


def moved(rng: Random, content: bytes) -> tuple[bytes, str]:
    """Bytes that belong elsewhere, at a distance of whole numbers: still valid floats in an array."""
    width = min(64, len(content) // 4)
    source, target = (rng.randrange(0, len(content) - width + 1, 4) for _ in range(2))
    changed = content[:target] + content[source : source + width] + content[target + width :]
    return changed, f"{width} bytes of {source} at {target} of {len(content)}"


def no_trailer(rng: Random, content: bytes) -> tuple[bytes, str]:
    return content[:-8], "without its last 8 bytes"


BYTES: dict[str, Callable[[Random, bytes], tuple[bytes, str]]] = {
    "cut": cut, "flip": flip, "digit": digit, "moved": moved, "zeros": zeros, "garbage": garbage, "trailer": no_trailer,
}  # fmt: skip
GONE = ("empty", "missing", "folder")


def damage(rng: Random, path: Path, kinds: tuple[str, ...] = (*BYTES, *GONE), sure: bool = True) -> Done:
    """Damages one file by one of `kinds`."""
    kind = rng.choice(kinds)
    if kind in GONE:
        path.unlink()
        if kind == "empty":
            path.write_bytes(b"")
        if kind == "folder":
            path.mkdir()
        return Done(f"{path.name}: {kind}", sure)
    content = path.read_bytes()
    if not content:
        return Done(f"{path.name}: empty already")
    damaged, what = BYTES[kind](rng, content)
    path.write_bytes(damaged)
    return Done(f"{path.name}: {what}", sure and damaged != content)


# Text


def toml_text(rng: Random, text: str) -> tuple[str, str]:
    """One odd line of a TOML file."""
    lines = text.splitlines()
    keyed = [i for i, line in enumerate(lines) if re.match(r"\s*[\w.\"-]+\s*=", line)]
    at = rng.choice(keyed) if keyed else 0
    key = lines[at].partition("=")[0].strip() if lines else "x"
    match rng.randrange(8):
        case 0 | 1 | 2:
            value = rng.choice(TOML_VALUES)
            lines[at] = f"{key} = {value}"
            what = f"{key} = {value[:40]}"
        case 3:
            value = json.dumps(rng.choice(HOSTILE))
            lines[at] = f"{key} = {value}"
            what = f"{key} = {value[:60]}"
        case 4:
            del lines[at]
            what = f"no {key}"
        case 5:
            lines.insert(at, lines[at])
            what = f"{key} twice"
        case 6:
            unknown = rng.choice(("unknown", "a.b", '""', "__class__"))
            lines.insert(at, f"{unknown} = 1")
            what = f"an unknown key before {key}"
        case _:
            extra = rng.choice(("[", "[[feature]]", "[a.b.c]", "= 1", "x = '''", "\x00", "[[grid]]", "[" * 5000))
            lines.insert(at, extra)
            what = f"a line {extra[:20]!r} before {key}"
    return "\n".join(lines) + "\n", what


def json_text(rng: Random, text: str) -> tuple[str, str]:
    """One odd value, key or member of a JSON file."""
    tree = json.loads(text)
    places = list(_places(tree))
    holder, key = rng.choice(places) if places else ([tree], 0)
    value, where = holder[key], str(key)
    match rng.randrange(6):
        case 0 | 1 | 2:
            odd = rng.choice(JSON_VALUES)
            holder[key] = "@odd@"
            return json.dumps(tree).replace('"@odd@"', odd), f"{where}: {str(value)[:20]} → {odd[:40]}"
        case 3:
            odd = rng.choice(HOSTILE)
            holder[key] = odd
            return json.dumps(tree), f"{where} → {odd[:40]!r}"
        case 4:
            del holder[key]
            return json.dumps(tree), f"without {where}"
        case _:
            if isinstance(holder, dict):
                holder[rng.choice(HOSTILE)] = value
            else:
                holder.append(value)
            return json.dumps(tree), f"{where} again under another name"


def _places(tree: Any) -> Any:
    members = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in members:
        yield tree, key
        yield from _places(value)


def csv_text(rng: Random, text: str, separator: str = ",") -> tuple[str, str]:
    """One odd cell, row or name of a table in text."""
    lines = text.split("\n")
    header = lines[0].split(separator)
    column = rng.randrange(len(header))
    row = rng.randrange(1, max(2, min(len(lines) - 1, 400)))
    cells = lines[row].split(separator) if row < len(lines) else []
    kind = rng.randrange(9)
    if kind <= 3 and column < len(cells):
        odd = rng.choice((*NUMBERS, "NaN", "inf", MARK, str(MARKED_ID), f"{MARK}\x00", f'"{MARK}', "2150-13-45", "''"))
        cells[column] = odd
        lines[row] = separator.join(cells)
        return "\n".join(lines), f"row {row}, {header[column]} → {odd[:30]!r}"
    if kind == 4:
        odd = rng.choice(HOSTILE)
        header[column] = odd.replace("\n", " ").replace(separator, ";")
        lines[0] = separator.join(header)
        return "\n".join(lines), f"column {column} is called {odd[:30]!r}"
    if kind == 5:
        lines[0] = separator.join([*header, header[column]])
        lines[1:] = [f"{line}{separator}1" if line else line for line in lines[1:]]
        return "\n".join(lines), f"{header[column]} twice"
    if kind == 6:
        odd = rng.choice(HOSTILE).replace(separator, ";").replace("\n", " ")
        lines[0] = separator.join([*header, odd])
        lines[1:] = [f"{line}{separator}1" if line else line for line in lines[1:]]
        return "\n".join(lines), f"one more column, {odd[:30]!r}"
    if kind == 7:
        lines[row:row] = [separator.join([MARK] * (len(header) + rng.choice((-1, 0, 1, 50))))]
        return "\n".join(lines), f"an odd row at {row}"
    return "\n".join(lines[:1]), "no rows"


# Tables


def odd_table(rng: Random, table: pa.Table, keys: tuple[str, ...] = ("stay_id", "step")) -> tuple[pa.Table, str]:
    """One odd column of an Arrow table."""
    name = rng.choice(table.column_names)
    index, column = table.column_names.index(name), table[name]
    n = len(column)
    choices: dict[str, Callable[[], Any]] = {
        "all null": lambda: pa.nulls(n, column.type),
        "of no type": lambda: pa.nulls(n),
        "text": lambda: pa.array([MARK] * n),
        "bytes": lambda: pa.array([b"\xff\xfe"] * n),
        "marked numbers": lambda: pa.array([MARKED_ID] * n),
        "infinite": lambda: pa.array([float("inf")] * n),
        "not a number": lambda: pa.array([float("nan")] * n),
        "1e308": lambda: pa.array([1e308 * (-1) ** i for i in range(n)]),
        "denormal": lambda: pa.array([5e-324] * n),
        "unsigned": lambda: pa.array([2**64 - 1 - i for i in range(n)], pa.uint64()),
        "8 bits": lambda: pa.array([i % 100 for i in range(n)], pa.int8()),
        "half": lambda: pa.array(np.arange(n).astype(np.float16)),
        "decimal": lambda: pa.array(list(range(n))).cast(pa.decimal128(38, 4)),
        "boolean": lambda: pa.array([i % 2 == 0 for i in range(n)]),
        "dates": lambda: pa.array(list(range(n)), pa.date32()),
        "moments": lambda: pa.array(list(range(n)), pa.timestamp("ns", "Europe/Berlin")),
        "durations": lambda: pa.array(list(range(n)), pa.duration("s")),
        "dictionary": lambda: pa.array([str(v) for v in column.to_pylist()]).dictionary_encode(),
        "lists": lambda: pa.array([[1.0, 2.0]] * n),
        "fixed lists": lambda: pa.FixedSizeListArray.from_arrays(pa.array(list(range(2 * n))), 2),
        "structs": lambda: pa.array([{"a": 1}] * n),
        "backwards": lambda: column.take(pa.array(range(n - 1, -1, -1))),
        "one null": lambda: pa.array([None if i == 0 else v for i, v in enumerate(column.to_pylist())], column.type),
        "large text": lambda: pa.array([str(v) for v in column.to_pylist()], pa.large_string()),
    }
    kind = rng.randrange(10)
    if kind == 0:
        return table.append_column(rng.choice((name, *keys)), column), f"{name} or a key twice"
    if kind == 1:
        return table.drop_columns([name]), f"no {name}"
    if kind == 2:
        odd = rng.choice(HOSTILE)
        return table.rename_columns([odd if c == name else c for c in table.column_names]), f"{name} → {odd[:30]!r}"
    if kind == 3:
        few = rng.choice((0, 1, n // 2))
        return table.slice(0, few), f"{few} rows"
    if kind == 4:
        return pa.concat_tables([table, table]), "every row twice"
    what = rng.choice(sorted(choices))
    return table.set_column(index, name, choices[what]()), f"{name}: {what}"


def write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


# Zip


def odd_zip(rng: Random, path: Path, limit: int = 80 * 2**20) -> Done:
    """A zip whose members claim or are what they should not be."""
    content = path.read_bytes()
    kind = rng.choice(("encrypted", "method", "smaller", "larger", "bomb", "many", "name", "cut", "flip", "garbage"))
    directory = content.find(b"PK\x01\x02")
    if kind == "encrypted":
        return _patched(path, content, 6, 8, 1, "encrypted by its flag")
    if kind == "method":
        method = rng.choice((1, 12, 14, 93, 99))
        return _patched(path, content, 8, 10, method, f"method {method}")
    if kind in ("smaller", "larger"):
        size = 3 if kind == "smaller" else 2**31 - 1
        at = directory + 24
        path.write_bytes(content[:at] + struct.pack("<I", size) + content[at + 4 :])
        return Done(f"{path.name}: the first member claims {size:,} bytes", sure=True)
    if kind in ("bomb", "many", "name"):
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
            if kind == "bomb":
                archive.writestr("set-a/999999.txt", b"0" * limit)
            elif kind == "many":
                for i in range(3000):
                    archive.writestr(f"set-a/{500000 + i}.txt", b"")
            else:
                odd = rng.choice(("9" * 23, "9" * 5000, "0", "-1", "../../1", "set-a"))
                archive.writestr(f"set-a/{odd}.txt", b"Time,Parameter,Value\n00:00,HR,80\n")
        return Done(f"{path.name}: {kind}", sure=kind == "bomb")
    if kind == "flip":
        damaged, what = flip(rng, content, directory)
        path.write_bytes(damaged)
        return Done(f"{path.name}: {what}", sure=True)
    return damage(rng, path, (kind,))


def _patched(path: Path, content: bytes, local: int, central: int, value: int, what: str) -> Done:
    """The same 16 bits of the first member in its own header and in the directory."""
    damaged, directory = bytearray(content), content.find(b"PK\x01\x02")
    struct.pack_into("<H", damaged, local, value)
    struct.pack_into("<H", damaged, directory + central, value)
    path.write_bytes(bytes(damaged))
    return Done(f"{path.name}: {what}", sure=True)


def copied(source: Path, target: Path) -> Path:
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True, symlinks=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    return target


def zipped(folder: Path, path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(p for p in folder.rglob("*") if p.is_file()):
            info = zipfile.ZipInfo(str(file.relative_to(folder)), (2020, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(info, file.read_bytes())
    path.write_bytes(buffer.getvalue())
