"""Moments and durations as people write them come to the microseconds that they mean; what is none is nothing."""

from datetime import UTC, datetime, timedelta
from typing import Any

import ibis
import numpy as np
import pytest

from timediff.sources.times import durations, expected_time, moments


def read(texts: list[str], how: Any) -> list[int | None]:
    table = ibis.memtable({"row": range(len(texts)), "text": texts})
    found = table.select(table["row"], value=how(table["text"])).order_by("row").to_pyarrow()
    values: list[int | None] = found["value"].to_pylist()
    return values


def since_1970(moment: datetime) -> int:
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))


MOMENTS = [
    datetime(1971, 2, 3, 4, 5, tzinfo=UTC) + timedelta(minutes=int(minutes))
    for minutes in np.random.default_rng(0).integers(0, 60 * 24 * 365 * 95, 300)
]
FORMS = {
    "ymd": ["%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y/%m/%d %H:%M", "%Y.%m.%d %I:%M %p", "%Y-%m-%d %H:%M:%S+00:00"],
    "dmy": ["%d.%m.%Y %H:%M", "%d/%m/%Y %I:%M %p", "%d-%m-%Y, %H:%M:%S", "%Y-%m-%d %H:%M", "%d.%m.%Y %H:%M Uhr"],
    "mdy": ["%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S%p", "%m-%d-%Y %H:%M", "%Y-%m-%d %H:%M"],
}


@pytest.mark.parametrize("order", FORMS)
def test_a_moment_in_any_form_of_its_order_is_that_moment(order: str) -> None:
    texts = [moment.strftime(form) for form in FORMS[order] for moment in MOMENTS]
    truth = [since_1970(moment) for moment in MOMENTS] * len(FORMS[order])
    assert read(texts, lambda text: moments(text, order)) == truth


def test_leading_zeros_and_the_century_may_be_left_out_and_a_date_is_its_midnight() -> None:
    truth = since_1970(datetime(2024, 1, 3, tzinfo=UTC))
    found = read(["3.1.24", "3.1.2024", "03/01/2024 0:00", "3.1.99"], lambda text: moments(text, "dmy"))
    assert found == [truth, truth, truth, since_1970(datetime(1999, 1, 3, tzinfo=UTC))]


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("ymd", "31.01.2024"), ("dmy", "01/31/2024"), ("mdy", "31/01/2024"), ("dmy", "31.02.2024"),
        ("dmy", "1.2.2024 25:00"), ("dmy", "1.2.2024 9:75"), ("mdy", "1/2/2024 13:00 in the ward"), ("dmy", "12"),
        ("ymd", "yesterday"), ("ymd", "12-01-02"),
    ],
)  # fmt: skip
def test_what_is_no_moment_of_the_order_is_nothing(order: str, text: str) -> None:
    assert read([text], lambda one: moments(one, order)) == [None]


def test_durations_are_read_as_programs_and_people_write_them() -> None:
    hour = 3600 * 10**6
    written = {
        "27:30": 27.5, "3:00:00": 3, "0 days 03:00:00": 3, "1 days 03:30:00": 27.5, "2 days": 48, "PT3H": 3,
        "P1DT3H30M": 27.5, "-1:30": -1.5, "-1 days +23:00:00": -1, "00:00:00.500000": 0.5 / 3600,
    }  # fmt: skip
    assert read(list(written), durations) == [round(hours * hour) for hours in written.values()]
    assert read(["", "3", "three hours", ":30", "P", "3h"], durations) == [None] * 6


@pytest.mark.parametrize(
    ("unit", "example", "advice"),
    [
        ("timestamp", "31.01.2024 10:00", 'date_order = "dmy"'),
        ("timestamp", "17", "time_unit to d, h, min, s or step"),
        ("timestamp", "17:30", 'time_unit = "duration"'),
        ("h", "2024-01-31 10:00", 'time_unit = "timestamp"'),
        ("h", "17:30", 'time_unit = "duration"'),
        ("duration", "31.01.2024", 'time_unit = "timestamp"'),
    ],
)
def test_the_advice_goes_by_what_a_value_looks_like(unit: str, example: str, advice: str) -> None:
    said = expected_time(unit)(example)
    assert advice in said
    assert example not in said
    assert "(or set time_unit)" not in said
