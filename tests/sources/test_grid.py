"""Measurements take their steps: each rule against its definition, measurement by measurement."""

from typing import Any

import ibis
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timediff.sources.extraction import columns, within_stays
from timediff.sources.grid import NEAREST, Rule, on_clock, to_steps

WIDTH, STEPS = 60, 4
nan = np.nan
# stay, variable, time: often on a point, half way between two, or as far from one as another
TIMES = st.one_of(st.integers(-40, 300), st.sampled_from([-30, -10, 0, 10, 30, 50, 70, 90, 210, 239, 240]))
CHARTED = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 1), TIMES), min_size=1, max_size=25)


def stepped(rows: list[tuple[int, int, int]], rule: Rule) -> dict[tuple[int, int, int], float]:
    """The value of a row is its number, so that equal times show as a mean."""
    stay, variable, time = zip(*rows, strict=True)
    table = ibis.memtable({"stay_id": stay, "variable": variable, "time": time, "value": np.arange(len(rows)) * 1.0})
    found = columns(to_steps(table, ["stay_id", "variable"], ["value"], "time", WIDTH, STEPS, rule))
    keys = zip(*(found[name].tolist() for name in ("stay_id", "variable", "step")), strict=True)
    return dict(zip(keys, found["value"].tolist(), strict=True))


def by_definition(rows: list[tuple[int, int, int]], rule: Rule) -> dict[tuple[int, int, int], float]:
    found = {}
    for stay in (1, 2):
        for step in range(STEPS):
            near = [r for r in rows if r[0] == stay and -WIDTH / 2 <= r[2] - step * WIDTH < WIDTH / 2]
            for variable in (0, 1):
                own = [r[2] for r in near if r[1] == variable]
                times = own if rule == "nearest" else [r[2] for r in near]
                best = min(times, key=lambda t: (abs(t - step * WIDTH), t), default=None)
                values = [float(n) for n, r in enumerate(rows) if r == (stay, variable, best)]
                if values:
                    found[stay, variable, step] = float(np.mean(values))
    return found


@pytest.mark.parametrize("rule", NEAREST)
@settings(max_examples=25, deadline=None)
@given(rows=CHARTED)
def test_the_nearest_is_the_nearest_and_of_two_the_earlier(rule: Rule, rows: list[tuple[int, int, int]]) -> None:
    assert stepped(rows, rule) == by_definition(rows, rule)


def test_half_way_is_nearest_to_the_later_point() -> None:
    assert stepped([(1, 0, 29), (1, 0, 30), (1, 0, -30), (1, 0, -31), (1, 0, 210)], "nearest").keys() == {
        (1, 0, 0),
        (1, 0, 1),
    }


def test_a_row_of_columns_is_taken_whole() -> None:
    table = ibis.memtable({"stay_id": [1, 1], "time": [58, 61], "a": [nan, 2.0], "b": [3.0, nan]})
    table = table.mutate(a=table.a.nullif(nan), b=table.b.nullif(nan))

    def values(rule: Rule) -> list[Any]:
        found = to_steps(table, ["stay_id"], ["a", "b"], "time", WIDTH, STEPS, rule).to_pyarrow().to_pylist()
        return [(row["step"], row["a"], row["b"]) for row in found]

    assert values("nearest") == [(1, 2.0, 3.0)]
    assert values("nearest_row") == [(1, 2.0, None)]


@given(st.integers(0, 10**10), st.sampled_from([300, 1800, 3600, 86400]))
@settings(max_examples=20, deadline=None)
def test_the_clock_is_met_at_the_moment_or_after_it(moment: int, width: int) -> None:
    found = ibis.literal(moment, "int64")
    met = int(columns(ibis.memtable({"x": [1]}).select(at=on_clock(found, width)))["at"][0])
    assert met % width == 0
    assert moment <= met < moment + width


def test_a_stay_has_the_steps_that_begin_before_its_end() -> None:
    series = {"x": np.ones((5, 3))}
    cut, length = within_stays(series, np.array([0.0, 1.0, 3600.0, 3601.0, nan]), 3600)
    assert length.tolist() == [1, 1, 1, 2, 3]
    assert np.isfinite(cut["x"]).sum(axis=1).tolist() == [0, 1, 1, 2, 3]
