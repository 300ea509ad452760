"""What stands in a column: numbers, texts, dates, how many different ones, and on which lattice numbers lie."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np

from timediff.data.arrays import Floats
from timediff.data.lattices import WORDS, on_lattice
from timediff.sources.table_reading import as_number
from timediff.sources.table_settings import TableSettings
from timediff.sources.times import DURATION, ISO_DURATION, YEAR_LAST, moments

NOTHING = (  # texts that usually mean "no value", in lower case
    "na", "n/a", "nan", "null", "none", "nil", "-", "--", "---", ".", "?", "#n/a", "unknown", "missing", "not done",
    "unbekannt", "k.a.", "fehlt",
)  # fmt: skip
COMMA = r"^[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+$"
GROUPED = r"^[-+]?\d{1,3}(\.\d{3})+(,\d+)?$"
MOSTLY = 0.95  # of the values make a column what it is
MOST_CLASSES = 50
MOST_CODES = 6  # whole numbers of a whole stay that are codes rather than a quantity
MOST_DISTINCT = 200_000  # values looked at for a lattice
FINER = (0.05, 0.01, 0.005, 0.001, 0.0001)
FEWEST_POINTS = 8  # of a lattice coarser than whole numbers
FEMALE = {"f", "female", "w", "weiblich", "woman", "frau"}
MALE = {"m", "male", "männlich", "maennlich", "man", "mann"}
YES = {"y", "yes", "true", "t", "j", "ja", "1"}
NO = {"n", "no", "false", "f", "nein", "0"}


@dataclass(frozen=True)
class Profile:
    """Counts of one column's values, of which texts that mean "no value" are none."""

    name: str
    kind: str  # number, boolean, moment, duration, text or empty
    present: int
    numbers: int
    distinct: int
    commas: int = 0  # numbers with a decimal comma
    points: int = 0  # numbers with a decimal point
    grouped: int = 0  # numbers that a point may divide into thousands
    day_first: int = 0  # dates such as 31/01/2024, of which the first number is no month
    month_first: int = 0  # dates such as 01/31/2024
    dotted_dates: int = 0
    year_last: int = 0
    nothing: tuple[str, ...] = ()  # texts for "no value" that occur


def profile(table: Any, name: str, raw: Any, is_duration: bool = False) -> Profile:
    kind = raw.type()
    if not kind.is_string():
        row = table.agg(present=raw.count(), distinct=raw.nunique()).to_pyarrow().to_pylist()[0]
        what = "moment" if kind.is_timestamp() or kind.is_date() else "boolean" if kind.is_boolean() else "number"
        what = "duration" if is_duration or kind.is_time() else what if row["present"] else "empty"
        what = what if what != "number" or kind.is_numeric() else "text"
        return Profile(name, what, row["present"], row["present"] if what == "number" else 0, row["distinct"])
    text = raw.strip().nullif("")
    nothing = text.lower().isin(NOTHING)
    there = text.notnull() & ~nothing
    number, comma = text.try_cast("float64"), text.re_search(COMMA)
    year_last = text.re_search(YEAR_LAST)
    first, second = (text.re_extract(YEAR_LAST, place).try_cast("int64") for place in (1, 2))
    duration = (text.re_search(DURATION) & text.contains(":")) | text.re_search(ISO_DURATION)
    counts = {
        "present": there, "numbers": there & number.notnull() & ~number.isnan(), "commas": there & comma,
        "points": there & number.notnull() & text.contains("."), "grouped": there & text.re_search(GROUPED),
        "moments": there & moments(text, "ymd").notnull(), "year_last": there & year_last,
        "day_first": there & year_last & (first > 12), "month_first": there & year_last & (second > 12),
        "dotted": there & year_last & text.re_search(r"^\d{1,2}\.\d"), "durations": there & duration,
    }  # fmt: skip
    sums = {key: condition.sum() for key, condition in counts.items()}
    row = table.agg(**sums, distinct=text.nunique(where=there), absent=nothing.sum()).to_pyarrow().to_pylist()[0]
    row = {key: int(value or 0) for key, value in row.items()}
    enough = MOSTLY * row["present"]
    what = "text"
    if row["present"] == 0:
        what = "empty"
    elif row["year_last"] + row["moments"] >= enough:
        what = "moment"
    elif row["numbers"] + row["commas"] >= enough:
        what = "number"
    elif row["durations"] >= enough:
        what = "duration"
    found: tuple[str, ...] = ()
    if row["absent"]:
        texts = table.filter(nothing).select(text=text).distinct().limit(50).to_pyarrow()["text"].to_pylist()
        found = tuple(sorted(texts))
    return Profile(
        name, what, row["present"], row["numbers"] + row["commas"], row["distinct"], row["commas"], row["points"],
        row["grouped"], row["day_first"], row["month_first"], row["dotted"],
        row["year_last"], found,
    )  # fmt: skip


def numbers(table: Any, raw: Any, settings: TableSettings) -> Floats:
    """The different numbers of a column, at most so many."""
    if raw.type().is_string():
        raw = raw.strip()
        raw = ibis.ifelse(raw.isin(["", *settings.missing]), ibis.null("string"), raw)
    value = as_number(raw, settings)
    value = ibis.ifelse(value.isnan() | value.isinf(), ibis.null("float64"), value)
    found = table.filter(value.notnull()).select(value=value).distinct().limit(MOST_DISTINCT).to_pyarrow()
    return np.sort(np.asarray(found["value"].to_numpy(), dtype=np.float64))


def texts(table: Any, raw: Any, settings: TableSettings) -> Counter[str]:
    """The different texts of a column and how often each stands there."""
    text = raw.cast("string").strip()
    text = ibis.ifelse(text.isin(["", *settings.missing]), ibis.null("string"), text)
    found = table.filter(text.notnull()).select(text=text).group_by("text").agg(n=lambda t: t.count()).to_pyarrow()
    return Counter(dict(zip(found["text"].to_pylist(), found["n"].to_pylist(), strict=True)))


def resolution(values: Floats) -> float | None:
    """The coarsest lattice on which all values lie; None where they lie on none."""
    others = values[values != 0]  # which is on every lattice
    if len(others) == 0:
        return None
    span = float(values[-1] - values[0])
    for step in (*(step for step in WORDS if step not in FINER), *FINER):
        if round(step * 10_000) != step * 10_000 and abs(round(step * 10_000) - step * 10_000) > 1e-9:
            continue  # thirds and eighteenths are no decimal numbers
        coarse = step > 1 and span / step < FEWEST_POINTS
        if not coarse and bool(on_lattice(others, step, None).all()):
            return step
    return None


def same_meaning(counts: Mapping[str, int]) -> tuple[tuple[str, ...] | tuple[int, ...], dict[str, tuple[str, ...]]]:
    """Classes of texts, and which spellings mean each besides the class itself."""
    folded: dict[str, list[str]] = {}
    for text in sorted(counts, key=lambda text: (-counts[text], text)):
        folded.setdefault(text.casefold(), []).append(text)
    if set(folded) <= FEMALE | MALE and set(folded) & FEMALE and set(folded) & MALE:
        groups = {
            name: [text for key, texts in folded.items() if key in keys for text in texts]
            for name, keys in (("F", FEMALE), ("M", MALE))
        }
        if all(len(spellings) == 1 for spellings in groups.values()):
            return tuple(sorted(counts)), {}
        return ("F", "M"), {name: tuple(t for t in spelt if t != name) for name, spelt in groups.items()}
    if set(folded) <= YES | NO and set(folded) & YES and set(folded) & NO:
        return (0, 1), {
            name: tuple(t for key, spelt in folded.items() if key in keys for t in spelt if t != name)
            for name, keys in (("0", NO), ("1", YES))
        }
    classes = {spelt[0]: tuple(spelt[1:]) for spelt in folded.values()}
    return tuple(sorted(classes)), {name: spelt for name, spelt in sorted(classes.items()) if spelt}
