"""What stands in a column: numbers, texts, dates, how many different ones, and on which lattice numbers lie."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

import ibis
import numpy as np

from timediff.data.arrays import Floats
from timediff.sources.table_reading import as_number
from timediff.sources.table_settings import TableSettings
from timediff.sources.times import DURATION, ISO_DURATION, YEAR_FIRST, YEAR_LAST

NOTHING = (  # texts that usually mean "no value", in lower case
    "na", "n/a", "nan", "null", "none", "nil", "-", "--", "---", ".", "?", "#n/a", "unknown", "missing", "not done",
    "unbekannt", "k.a.", "fehlt",
)  # fmt: skip
COMMA = r"^[-+]?(\d+|\d{1,3}(\.\d{3})+),\d+$"
GROUPED = r"^[-+]?\d{1,3}(\.\d{3})+(,\d+)?$"
CHUNK = 24  # columns in one query
MOSTLY = 0.95  # of the values make a column what it is
MOST_CLASSES = 50
LARGEST_CODE = 9
FREE_TEXT = 1 / 3  # as many different texts as that of all are no classes, unless they are FEW
FEW_TEXTS = 5
MOST_CODES = 6  # whole numbers of a whole stay that are codes rather than a quantity
STEPS = (100.0, 50.0, 25.0, 20.0, 10.0, 5.0, 2.0, 1.0, 0.5, 0.25, 0.2, 0.1, 0.05, 0.01, 0.005, 0.001, 0.0001)
POWERS = (1.0, 0.1, 0.01, 0.001, 0.0001)
MOST_DISTINCT = 200_000  # values looked at for a lattice
FEWEST_POINTS = 8  # of a lattice coarser than whole numbers, or between powers of ten
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
    absent: int = 0
    nothing: tuple[str, ...] = ()  # texts for "no value" that occur


def profile(table: Any, name: str, raw: Any, is_duration: bool = False) -> Profile:
    return profiles(table, {name: raw}, {name} if is_duration else set())[name]


def profiles(table: Any, columns: Mapping[str, Any], durations: Collection[str] = ()) -> dict[str, Profile]:
    """Of many columns, a few queries in all."""
    counts = _counted(table, {name: _counts(raw) for name, raw in columns.items()})
    # Of what are numbers all through, nothing else needs to be known.
    others = [name for name, row in counts.items() if "numbers" in row and row["numbers"] < row["present"]]
    for name, row in _counted(table, {name: _forms(columns[name]) for name in others}).items():
        counts[name] |= row
    found = {}
    for name, row in counts.items():
        found[name] = _profile(name, columns[name].type(), row, name in durations)
        if found[name].absent:
            found[name] = replace(found[name], nothing=_nothing(table, columns[name]))
    return found


def _counted(table: Any, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for start in range(0, len(columns), CHUNK):
        some = list(columns)[start : start + CHUNK]
        numbered = {f"{key}_{i}": count for i, name in enumerate(some) for key, count in columns[name].items()}
        row = table.agg(**numbered).to_pyarrow().to_pylist()[0]
        found |= {name: {key: int(row[f"{key}_{i}"] or 0) for key in columns[name]} for i, name in enumerate(some)}
    return found


def profiles_by(table: Any, group: Any, raw: Any) -> dict[str, Profile]:
    """Of one column, for each group of rows by a name."""
    rows = table.mutate(timediff_group=group)
    found = {}
    counts = {**_counts(raw), **(_forms(raw) if raw.type().is_string() else {})}
    for row in rows.group_by("timediff_group").agg(**counts).to_pyarrow().to_pylist():
        if name := row.pop("timediff_group"):
            known = _profile(name, raw.type(), {key: int(value or 0) for key, value in row.items()}, False)
            mine = table.filter(group == name)
            found[name] = replace(known, nothing=_nothing(mine, raw)) if known.absent else known
    return dict(sorted(found.items()))


def _text(raw: Any) -> Any:
    return raw.strip().nullif("")


def _nothing(table: Any, raw: Any) -> tuple[str, ...]:
    text = _text(raw)
    rows = table.filter(text.lower().isin(NOTHING)).select(text=text).distinct().limit(50)
    return tuple(sorted(rows.to_pyarrow()["text"].to_pylist()))


def _counts(raw: Any) -> dict[str, Any]:
    """What is counted of any column: the more of it the less its type says."""
    if not raw.type().is_string():
        return {"present": raw.count(), "distinct": raw.nunique()}
    text = _text(raw)
    number, absent = text.try_cast("float64"), text.lower().isin(NOTHING)
    numeric = number.notnull() & ~number.isnan() & ~absent
    return {
        "present": (text.notnull() & ~absent).sum(), "numbers": numeric.sum(), "absent": absent.sum(),
        "points": (numeric & text.contains(".")).sum(), "distinct": text.nunique(where=~absent),
    }  # fmt: skip


def _forms(raw: Any) -> dict[str, Any]:
    """How many texts look like dates, durations and numbers with a comma."""
    text = _text(raw)
    year_last = text.re_search(YEAR_LAST)
    first, second = (text.re_extract(YEAR_LAST, place).try_cast("int64") for place in (1, 2))
    conditions = {
        "commas": text.re_search(COMMA), "grouped": text.re_search(GROUPED), "year_last": year_last,
        "day_first": year_last & (first > 12), "month_first": year_last & (second > 12),
        "dotted_dates": year_last & text.re_search(r"^\d{1,2}\.\d"), "moments": text.re_search(YEAR_FIRST),
        "durations": (text.re_search(DURATION) & text.contains(":")) | text.re_search(ISO_DURATION),
    }  # fmt: skip
    return {key: condition.sum() for key, condition in conditions.items()}


def _profile(name: str, kind: Any, counts: dict[str, int], is_duration: bool) -> Profile:
    present, distinct = counts["present"], counts["distinct"]
    if not kind.is_string():
        what = "moment" if kind.is_timestamp() or kind.is_date() else "boolean" if kind.is_boolean() else "number"
        what = "duration" if is_duration or kind.is_time() else what if present else "empty"
        what = what if what != "number" or kind.is_numeric() else "text"
        return Profile(name, what, present, present if what == "number" else 0, distinct)
    moments_, durations_ = counts.pop("moments", 0), counts.pop("durations", 0)
    enough, numbers_ = MOSTLY * present, counts["numbers"] + counts.get("commas", 0)
    sums = (("moment", moments_ + counts.get("year_last", 0)), ("number", numbers_), ("duration", durations_))
    what = next((kind for kind, count in sums if count >= enough), "text") if present else "empty"
    known = Profile(name, what, present, numbers_, distinct)
    return replace(known, **{key: count for key, count in counts.items() if key != "numbers"})  # type: ignore[arg-type]


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
    """The coarsest decimal lattice on which all values lie; None where they lie on none."""
    others = values[values != 0]  # which is on every lattice
    if len(others) == 0:
        return None

    def off(step: float) -> int:
        slack = 1e-9 * step + np.minimum(1e-7 * np.abs(others), 1e-2 * step)  # also of what was once single precision
        return int((np.abs(others - np.rint(others / step) * step) > slack).sum())

    span = float(values[-1] - values[0])
    for step in STEPS:
        if step > 1:
            few = min(span / step, len(values)) < FEWEST_POINTS
        else:  # halves, or fifths of a tenth: seen often enough, or else they are tenths
            few = step not in POWERS and off(min(power for power in POWERS if power > step)) < FEWEST_POINTS
        if not few and off(step) == 0:
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
