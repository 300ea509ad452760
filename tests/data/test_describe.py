"""What is said of a cohort is said of the steps that its stays have, however long each is."""

from dataclasses import replace

import numpy as np
import pytest

from timediff.data.cohort import Cohort
from timediff.data.describe import describe, distribution, missing_by_step, missing_rate, statistics
from timediff.data.schema import Feature, Schema

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
