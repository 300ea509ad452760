"""Pages that can be read in any editor, links that lead somewhere, and numbers that a committed result holds.

A comment right before a table, a paragraph or the text of a list item says where its numbers are from:

    <!-- numbers: benchmarks/results/x.json -->
    <!-- numbers: benchmarks/results/x.json at rows/fast/*; benchmarks/cited/y.json; ratios; given 48, 72 -->

Clauses stand between semicolons.

- `FILE at GLOB | GLOB` takes numbers of the paths that match (keys and positions joined by "/"). With `by row` or
  `by column` the first glob is for the first row or column of the table, and so on; a single one is for all.
- `ratios` allows a number before "×" or "times" to be one number of the files divided by another.
- Of a file that is a list of rows, `rate A / B` adds a quotient to each row, and `means by KEY, KEY` the means over
  rows that agree in these keys, whose values then begin the path.
- `given` lists what is no measurement: sizes, years, settings.

Each other number must be one of the files' at the precision printed (a percentage 100 times one), but for those of a
table's header and first column, dates, and what stands in backticks or links. Numbers of others lie in
`benchmarks/cited/`. A table of such that no file holds says so: `<!-- cited: SOURCE -->`.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "benchmarks").rglob("*.md")])
MEASURED = [
    ROOT / "README.md",
    *(
        ROOT / "docs" / f"{name}.md"
        for name in ("fast", "autoregressive", "baselines", "benchmarks", "evaluate", "extract", "privacy", "security")
    ),
]
MARK = re.compile(r"<!--\s*(numbers|cited):\s*(.*?)\s*-->\s*?\n(.*?)(?=\n\s*\n|\n\s*- |\Z)", re.DOTALL)
APART = re.compile(r"`[^`]*`|!?\[[^\]]*\]\([^)]*\)|\d{4}-\d{2}-\d{2}|https?://\S+")
NUMBER = re.compile(
    r"(?<![\w.,/])(?<![A-Za-z][-–])(?P<sign>[−-]?)(?P<digits>(?:\d{1,3}(?:,\d{3})+|\d+)?\.\d+|\d{1,3}(?:,\d{3})+|\d+)"
    r"(?![\w])(?P<unit>\s?(?:×|%|times\b))?"
)  # fmt: skip


@dataclass(frozen=True)
class Shown:
    """A number of a page, as it is printed there, and in which row and column of a table."""

    text: str
    unit: str = ""
    row: int = 0
    column: int = 0

    @property
    def value(self) -> float:
        return float(self.text.replace(",", "").replace("−", "-"))

    def is_about(self, value: float) -> bool:
        """Whether the value, rounded to as many decimals, is what is printed."""
        last = 10.0 ** -len(self.text.partition(".")[2])
        return abs(value - self.value) <= 0.5 * last * (1 + 1e-6)


@dataclass(frozen=True)
class Marked:
    """A table or paragraph with the clauses of its comment."""

    clauses: tuple[str, ...]
    text: str

    @property
    def measured(self) -> list[Shown]:
        given = self._listed("given")
        shown = [one for row, column, text in cells(self.text) for one in numbers(text, row, column)]
        return [one for one in shown if one.text not in given]

    def unsupported(self) -> list[str]:
        """Numbers that none of the named files holds."""
        return [one.text for one in self.measured if not self.holds(one)]

    def holds(self, shown: Shown) -> bool:
        held = sorted(set(self._held(shown)))
        allowed: Iterable[float] = held
        if shown.unit == "%":
            allowed = [*held, *(100 * value for value in held)]
        elif shown.unit and "ratios" in self.clauses:
            allowed = [*held, *(a / b for a in held for b in held if b)]
        return any(map(shown.is_about, allowed))

    def _held(self, shown: Shown) -> Iterator[float]:
        """The numbers that this one may be."""
        for clause in self.clauses:
            if clause.startswith("benchmarks/"):
                name, _, globs = clause.partition(" at ")
                mine = self._mine(globs.split(" | ") if globs else ["*"], shown)
                document = read(ROOT / name)
                if isinstance(document, list):
                    document = grouped(with_quotients(document, self._listed("rate")), self._listed("means by"))
                yield from (value for path, value in leaves(document) if any(fnmatchcase(path, one) for one in mine))

    def _mine(self, globs: list[str], shown: Shown) -> list[str]:
        """Those of the number's row, or of its column; a single one is everybody's."""
        if len(globs) == 1 or not {"by row", "by column"} & set(self.clauses):
            return globs
        return globs[shown.row : shown.row + 1] if "by row" in self.clauses else globs[shown.column : shown.column + 1]

    def _listed(self, word: str) -> list[str]:
        found = [clause.removeprefix(f"{word} ") for clause in self.clauses if clause.startswith(f"{word} ")]
        return [one for clause in found for one in clause.split(", ")]


def numbers(text: str, row: int = 0, column: int = 0) -> list[Shown]:
    found = NUMBER.finditer(APART.sub(" ", text))
    return [Shown(one["sign"] + one["digits"], (one["unit"] or "").strip(), row, column) for one in found]


def cells(text: str) -> Iterator[tuple[int, int, str]]:
    """What is checked: a table's cells but for its header and first column, or the whole of a paragraph."""
    if not text.lstrip().startswith("|"):
        yield 0, 0, text
        return
    for row, line in enumerate(text.strip().splitlines()[2:]):
        for column, cell in enumerate(re.split(r"(?<!\\)\|", line.strip().strip("|"))[1:]):
            yield row, column, cell


@cache
def read(path: Path) -> Any:
    """A JSON document, or the list of those of a JSON Lines file."""
    text = path.read_text()
    return [json.loads(line) for line in text.splitlines()] if path.suffix == ".jsonl" else json.loads(text)


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """The numbers of a JSON document with their paths."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(one, f"{path}/{key}" if path else str(key))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, float(value)


def with_quotients(rows: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """The rows with the quotients that are named, such as "stays / seconds"."""
    found = [{name: row[name.split(" / ")[0]] / row[name.split(" / ")[1]] for name in names} for row in rows]
    return [row | more for row, more in zip(rows, found, strict=True)]


def grouped(rows: list[dict[str, Any]], keys: list[str]) -> Any:
    """With keys, the rows and their means by what they agree in: "a, b/each/0/…", "a, b/mean/…"."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows if keys else []:
        groups.setdefault(", ".join(str(row[key]) for key in keys), []).append(row)
    return {name: {"each": alike, "mean": means(alike)} for name, alike in groups.items()} or rows


def means(rows: list[dict[str, Any]]) -> dict[str, float]:
    return {key: mean(row[key] for row in rows) for key, one in rows[0].items() if isinstance(one, int | float)}


def marked(text: str) -> list[Marked]:
    found = [(kind, " ".join(clauses.split()), block) for kind, clauses, block in MARK.findall(text)]
    return [Marked(tuple(clauses.split("; ")), block) for kind, clauses, block in found if kind == "numbers"]


def unmarked_tables(text: str) -> list[str]:
    """Tables that hold a number with decimals, of which no comment says where they are from."""
    tables = re.findall(r"(?:^[ ]*\|.*\n?)+", MARK.sub("", text), re.MULTILINE)
    return [table for table in tables if any("." in one.text for _, _, cell in cells(table) for one in numbers(cell))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_line_is_longer_than_a_screen(page: Path) -> None:
    assert [line for line in page.read_text().splitlines() if len(line) > 120] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
    files = [link for link in links if "://" not in link]
    assert [file for file in files if not (page.parent / file).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_number_of_a_marked_block_is_in_a_result_that_it_names(page: Path) -> None:
    wrong = {block.text.strip()[:60]: block.unsupported() for block in marked(page.read_text())}
    assert {start: numbers for start, numbers in wrong.items() if numbers} == {}


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.name)
def test_every_table_of_measurements_says_where_its_numbers_are_from(page: Path) -> None:
    assert unmarked_tables(page.read_text()) == []


@pytest.mark.parametrize("page", MEASURED, ids=lambda page: page.name)
def test_a_changed_digit_is_found(page: Path) -> None:
    blocks = marked(page.read_text())
    changed = [(block, replace(one, text=another_digit(one.text))) for block in blocks for one in block.measured]
    found = [one for block, one in changed if not block.holds(one)]
    assert len(found) >= 0.9 * len(changed) > 0


def another_digit(text: str) -> str:
    return text[:-1] + str((int(text[-1]) + 5) % 10)


def test_the_precision_printed_decides() -> None:
    assert Shown(".546").is_about(0.5456)
    assert not Shown(".545").is_about(0.5456)
    assert Shown("188,200").is_about(188200.0)
    assert Shown("−.003").is_about(-0.003478)
    assert not Shown(".003").is_about(-0.003478)


def test_names_dates_code_and_links_are_no_numbers() -> None:
    text = "On 2026-11-17 `fast 3` took one H200 5.5 s ([result 4](x7.json)) in TF32, MIMIC-4, 2M: 1,068 of 50 %."
    assert [one.text for one in Marked((), text).measured] == ["5.5", "1,068", "50"]


def test_a_table_is_checked_without_its_labels(tmp_path: Path) -> None:
    text = "<!-- numbers: x.json -->\n| of 7 | 8 s |\n|---|--:|\n| 48 calls | 5 s |\n\nNot 9.\n"
    (block,) = marked(text)
    assert [one.text for one in block.measured] == ["5"]
    assert unmarked_tables(text.replace("5 s", "5.5 s")) == []
    assert unmarked_tables(text.replace("5 s", "5.5 s").split("\n", 1)[1]) != []
