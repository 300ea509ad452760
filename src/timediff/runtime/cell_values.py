"""Cell values of patient data in messages: what kind of value it is, and the value itself only where that is asked for.

A message says column, row number and kind. With `--show-values`, on the screen of someone who may see the data, it
shows the value too.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, time, timedelta
from numbers import Number

_SHOWN: ContextVar[bool] = ContextVar("show_values", default=False)
LONGEST = 40  # characters of a value that is shown
HINT = "--show-values shows them"


@contextmanager
def show_values(shown: bool = True) -> Iterator[None]:
    """Within it, messages show cell values."""
    token = _SHOWN.set(shown)
    try:
        yield
    finally:
        _SHOWN.reset(token)


def shown() -> bool:
    """Whether messages may show cell values."""
    return _SHOWN.get()


def cell(value: object) -> str:
    """A cell as a message may have it: "a text" or, where values are shown, the text itself."""
    if _SHOWN.get():
        text = repr(value)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
    return kind_of(value)


def cells(values: Sequence[object], most: int = 4) -> str:
    """Several cells: their number and kinds or, where values are shown, the first few."""
    if not _SHOWN.get():
        kinds = ", ".join(dict.fromkeys(map(kind_of, values)))
        return f"{len(values):,} different {'value' if len(values) == 1 else 'values'} ({kinds}; {HINT})"
    shown = ", ".join(cell(value) for value in values[:most])
    return shown if len(values) <= most else f"{shown}, … ({len(values):,} in all)"


def kind_of(value: object) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, Number):
        return "a number"
    if isinstance(value, date | time | timedelta):
        return "a time"
    if isinstance(value, str):
        return "an empty text" if not value.strip() else "a number" if _is_number(value) else "a text"
    return "bytes" if isinstance(value, bytes) else type(value).__name__


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
