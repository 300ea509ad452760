"""What is said of a cohort is said of the steps that its stays have, however long each is."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from timediff.data.cohort import Cohort
from timediff.data.describe import (
    Extracted,
    describe,
    distribution,
    missing_by_step,
    missing_rate,
    read_extraction,
    statistics,
)
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError

nan = np.nan


@pytest.fixture
def two() -> Cohort:
    """A stay of one step and a stay of three; 99 lies beyond the first one's end."""
    schema = Schema((Feature("pulse", "continuous"), Feature("died", "binary", "static", role="label")), steps=3)
    series = {"pulse": np.array([[60.0, 99, 99], [nan, 80, 100]])}
    return Cohort(schema, np.array([1, 2]), series, {"died": np.array([0.0, 1])}, length=np.array([1, 3]))


def test_steps_beyond_a_stay_are_neither_values_nor_missing(two: Cohort) -> None:
    pulse, died = describe(two)
    assert (pulse.low, pulse.mean, pulse.high) == (60, 80, 100)
    assert pulse.missing == missing_rate(two) == 0.25
    assert died.class_rates == {"0": 0.5, "1": 0.5}


def test_a_step_is_missing_among_the_stays_that_reach_it(two: Cohort) -> None:
    assert missing_by_step(two, two.schema["pulse"], fewest=1).tolist() == [0.5, 0, 0]


def test_a_distribution_is_of_the_steps_within_stays(two: Cohort) -> None:
    known = distribution(two, two.schema["pulse"], fewest=1)
    assert (known.stays, known.missing, known.mean) == (2, 0.25, 80)


def test_the_table_says_that_lengths_differ(two: Cohort) -> None:
    assert statistics(two)["steps"] == "up to 3 of 1h"
    assert statistics(replace(two, length=None))["steps"] == "3 of 1h"


GOOD: dict[str, Any] = {
    "format": 1, "engine": "DuckDB", "stays_found": 5, "stays_dropped": {"too short": 2}, "stays": 3, "features": {},
}  # fmt: skip


def test_an_extraction_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_extraction(tmp_path) is None
    (tmp_path / "extraction.json").write_text(json.dumps(GOOD))
    assert read_extraction(tmp_path) == Extracted(5, {"too short": 2}, 3, {"engine": "DuckDB"})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "expected a table"),
        (json.dumps(GOOD | {"stays": math.inf}), "it holds Infinity"),
        (json.dumps(GOOD | {"stays": 1.5}), "stays is not a whole number"),
        (json.dumps(GOOD | {"stays": True}), "stays is not a whole number"),
        (json.dumps(GOOD | {"stays_dropped": {"a": "b"}}), r"stays_dropped\.a is not a whole number"),
        (json.dumps(GOOD | {"stays_dropped": [1]}), "stays_dropped is not a table"),
        (json.dumps({"stays": 1}), "stays_found is not a whole number"),
        (json.dumps(GOOD | {"engine": "\ud800"}), "not valid Unicode"),
        ('{"stays": 1' + "0" * 5000 + "}", "digits"),
        ("[" * 100_000, "nested more than"),
        ("\xff", "not valid JSON"),
    ],
)
def test_what_is_wrong_with_an_extraction_is_said(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "extraction.json").write_text(content)
    with pytest.raises(TimeDiffError, match=said):
        read_extraction(tmp_path)
