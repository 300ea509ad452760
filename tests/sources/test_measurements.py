"""What all sources share: durations, plausible ranges, rounding, and values on a grid."""

import ibis
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timediff.errors import TimeDiffError
from timediff.sources.extraction import any_measured, on_grid, to_resolution
from timediff.sources.grid import step_problems, step_seconds
from timediff.sources.variables import Limits

nan = np.nan


@pytest.mark.parametrize(
    ("step", "seconds"), [("1h", 3600), ("30min", 1800), ("2 d", 172800), ("90s", 90), ("h", 3600)]
)
def test_a_step_is_a_duration(step: str, seconds: int) -> None:
    assert step_seconds(step) == seconds
    assert step_problems(step) == []


@pytest.mark.parametrize("step", ["1x", "hour", "1.2.3h", "0s", "0.1s"])
def test_any_other_step_is_a_sentence(step: str) -> None:
    with pytest.raises(TimeDiffError, match=f"step is '{step}'; expected"):
        step_seconds(step)
    assert len(step_problems(step)) == 1


@pytest.mark.parametrize(
    ("limits", "kept"),
    [
        (Limits(), [0, 1, 2, 3]),
        (Limits(above=0), [1, 2, 3]),
        (Limits(at_least=0, below=2), [0, 1]),
        (Limits(above=0, at_most=2), [1, 2]),
        (Limits(above=3), []),
    ],
)
def test_only_what_lies_within_the_limits_counts(limits: Limits, kept: list[int]) -> None:
    table = ibis.memtable({"value": [0.0, 1.0, 2.0, 3.0]})
    found = table.select(value=limits.within(table.value)).to_pyarrow()["value"].to_pylist()
    assert [value for value in found if value is not None] == kept


@given(st.integers(-10_000, 10_000), st.sampled_from([1.0, 0.1, 0.5, 0.01]))
def test_a_rounded_value_is_the_nearest_multiple_and_stays_there(n: int, resolution: float) -> None:
    values = np.array([n * resolution, (n + 0.4) * resolution])
    rounded = to_resolution(values, resolution)
    assert rounded[0] == rounded[1] == round(n * resolution, 9)
    assert np.array_equal(to_resolution(rounded, resolution), rounded)


@pytest.mark.parametrize("resolution", [None, 0.1])
def test_the_largest_numbers_stay_what_they_are(resolution: float | None) -> None:
    values = np.array([1.7e308, -1e308, nan])
    assert np.array_equal(to_resolution(values, resolution), values, equal_nan=True)


def test_rows_take_their_place_on_the_grid() -> None:
    rows = {"stay_id": np.array([9, 4, 9]), "step": np.array([1, 0, 0])}
    grid = on_grid(np.array([4, 7, 9]), 2, rows, np.array([3.0, 1.0, 2.0]))
    assert np.array_equal(grid, [[1, nan], [nan, nan], [2, 3]], equal_nan=True)
    assert any_measured({"x": grid, "y": np.full((3, 2), nan)}).tolist() == [True, False, True]
