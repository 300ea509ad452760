"""Times as people write them: moments with a stated order of day and month, durations, numbers of hours."""

import re
from typing import Any

import ibis

from timediff.sources.table_settings import TICKS, UNITS, TableSettings

CENTURY = 70  # of two digits: from here on 19.., below 20..
YEAR_FIRST = r"^\s*(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?:[ T,]+(.*))?$"
YEAR_LAST = r"^\s*(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})(?:[ T,]+(.*))?$"
CLOCK = r"^(\d{1,2})[:.](\d{2})(?::(\d{2}(?:[.,]\d{1,9})?))?\s*([AaPp]\.?[Mm]\.?)?(?:\s*[Uu]hr)?\s*$"
DURATION = r"^\s*([-+])?(?:(\d+)\s*d(?:ays?)?,?\s*)?([-+])?(?:(\d+):(\d{2})(?::(\d{2}(?:\.\d+)?))?)?\s*$"
ISO_DURATION = r"^\s*([-+])?P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?\s*$"
MOMENTS = "a timestamp such as 2024-01-31 13:00:00"


def moments(raw: Any, order: str) -> Any:
    """Microseconds since 1970 of timestamps, dates, or texts; null where they are none."""
    kind = raw.type()
    if kind.is_timestamp() or kind.is_date():
        return _since_1970(raw.cast("timestamp"))
    if not kind.is_string():
        return ibis.null("int64")
    year_first = raw.re_search(YEAR_FIRST)
    found = ibis.ifelse(year_first, _since_1970(raw.try_cast("timestamp")), ibis.null("int64"))
    found = ibis.coalesce(found, _written(raw, YEAR_FIRST, (1, 2, 3)))
    if order == "ymd":
        return found
    return ibis.coalesce(found, _written(raw, YEAR_LAST, (3, 2, 1) if order == "dmy" else (3, 1, 2)))


def durations(raw: Any) -> Any:
    """Microseconds of texts such as 27:30, 27:30:15, 1 days 03:30:00 or PT27H30M; null where they are none."""
    if raw.type().is_time():
        raw = raw.cast("string")
    if not raw.type().is_string():
        return ibis.null("int64")

    def parts(pattern: str, days: int, hours: int) -> Any:
        total = ibis.literal(0.0)
        for place, unit in ((days, "d"), (hours, "h"), (hours + 1, "min"), (hours + 2, "s")):
            total = total + _number(raw.re_extract(pattern, place)).fill_null(0.0) * UNITS[unit]
        return total

    signs = (raw.re_extract(DURATION, 1), raw.re_extract(DURATION, 3))
    days = _number(raw.re_extract(DURATION, 2)).fill_null(0.0) * UNITS["d"]
    clock = parts(DURATION, 2, 4) - days
    # pandas writes one hour before as "-1 days +23:00:00", others as "-01:00:00"
    total = ibis.ifelse(signs[0] == "-", -days, days) + ibis.ifelse(
        (signs[1] == "-") | ((signs[0] == "-") & (signs[1] != "+")), -clock, clock
    )
    iso = ibis.ifelse(raw.re_extract(ISO_DURATION, 1) == "-", -1.0, 1.0) * parts(ISO_DURATION, 2, 3)
    something = raw.re_search(r"\d")
    value = ibis.cases(
        (something & raw.re_search(DURATION), total), (something & raw.re_search(ISO_DURATION), iso),
        else_=ibis.null("float64"),
    )  # fmt: skip
    return value.round().try_cast("int64")


def expected_time(unit: str) -> Any:
    """What a column of times should hold, with advice that goes by what one of the others looks like."""

    def said(example: str) -> str:
        if unit != "timestamp":
            what = "a duration such as 27:30 or 1 days 03:30:00" if unit == "duration" else f"a number ({unit})"
            if re.match(YEAR_FIRST, example) or re.match(YEAR_LAST, example):
                return f'{what}; these look like dates: set time_unit = "timestamp"'
            if unit != "duration" and re.match(DURATION, example) and ":" in example:
                return f'{what}; these look like hours and minutes: set time_unit = "duration"'
            return f'{what}; for dates set time_unit = "timestamp"'
        if re.match(YEAR_LAST, example):
            return f'{MOMENTS}; of dates that begin with day or month set date_order = "dmy" or "mdy"'
        if re.fullmatch(r"\s*[-+]?\d+([.,]\d+)?\s*", example):
            return f"{MOMENTS}; of numbers since the start of a stay set time_unit to d, h, min, s or step"
        if re.match(DURATION, example) and ":" in example:
            return f'{MOMENTS}; of hours and minutes since the start of a stay set time_unit = "duration"'
        return MOMENTS

    return said


def scale_of(unit: str, settings: TableSettings) -> int:
    """Microseconds of a unit in which numbers count time."""
    return settings.width if unit == "step" else UNITS[unit]


def _since_1970(moment: Any) -> Any:
    return moment.delta(ibis.literal("1970-01-01 00:00:00").cast("timestamp"), unit="microsecond").cast("int64")


def _written(raw: Any, pattern: str, places: tuple[int, int, int]) -> Any:
    """Microseconds since 1970 of a date, by the places of year, month, day in a pattern, and of a clock after it."""
    year, month, day = (raw.re_extract(pattern, place) for place in places)
    short = ibis.ifelse(year.try_cast("int64") >= CENTURY, ibis.literal("19"), ibis.literal("20")) + year
    date = ibis.ifelse(year.length() == 2, short, year) + "-" + month + "-" + day
    begin = _since_1970(date.try_cast("date").cast("timestamp"))
    rest = raw.re_extract(pattern, 4).strip()
    return ibis.ifelse(rest == "", begin, begin + _clock(rest))


def _clock(text: Any) -> Any:
    hour, minute = (text.re_extract(CLOCK, place).try_cast("int64") for place in (1, 2))
    second = _number(text.re_extract(CLOCK, 3).replace(",", ".")).fill_null(0.0)
    half = text.re_extract(CLOCK, 4).lower().left(1)
    named = half.isin(["a", "p"])
    hour = ibis.ifelse(named, hour % 12 + ibis.ifelse(half == "p", 12, 0), hour)
    known = (hour < 24) & (minute < 60) & (second < 60)
    value = ((hour * 3600 + minute * 60) * TICKS + (second * TICKS).round()).cast("int64")
    return ibis.ifelse(known, value, ibis.null("int64"))


def _number(text: Any) -> Any:
    return text.try_cast("float64")
