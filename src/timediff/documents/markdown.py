"""Markdown in which no text from outside becomes markup."""

import re
from collections.abc import Mapping, Sequence

BLANK = "(to be filled in)"


def escaped(text: str) -> str:
    """A text on one line, each character itself."""
    plain = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_{}\[\]#|~$])", r"\\\1", plain)


def points(texts: Sequence[str]) -> str:
    return "".join(f"- {escaped(text)}\n" for text in texts)


def facts(table: Mapping[str, str]) -> str:
    """A line a fact; a blank where nobody has said it."""
    return "".join(f"- **{escaped(name)}**: {escaped(said) or BLANK}\n" for name, said in table.items())


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *([escaped(text) for text in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
