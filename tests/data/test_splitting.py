"""No patient on both sides, every stay on one, and the label's rate alike."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError


def cohort(patient: np.ndarray, died: np.ndarray) -> Cohort:
    schema = Schema(
        (
            Feature("x", "continuous"),
            Feature("patient", "categorical", "static", role="patient"),
            Feature("died", "binary", "static", role="label"),
        ),
        1,
    )
    n = len(patient)
    return Cohort(schema, np.arange(n), {"x": np.zeros((n, 1))}, {"patient": patient, "died": died.astype(float)})


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.booleans()), min_size=40, max_size=200),
    st.floats(0.1, 0.6),
    st.integers(0, 9),
)
def test_patients_are_never_shared_and_no_stay_is_lost(rows: list, test: float, seed: int) -> None:
    whole = cohort(np.array([r[0] for r in rows]), np.array([r[1] for r in rows]))
    try:
        left, right = whole.split(test, seed=seed)
    except TimeDiffError:  # a draw with hardly any patient
        return
    assert not set(left.static["patient"]) & set(right.static["patient"])
    assert sorted([*left.stay_id, *right.stay_id]) == list(range(len(rows)))


@settings(deadline=None)
@given(st.integers(20, 400), st.floats(0.05, 0.95), st.floats(0.1, 0.9), st.integers(0, 9))
def test_strata_are_exact_to_one_stay(n: int, rate: float, test: float, seed: int) -> None:
    died = np.random.default_rng(seed).random(n) < rate
    whole = cohort(np.arange(n), died)
    _, right = whole.split(test, seed=seed)
    for value in (0, 1):
        assert abs((right.label == value).sum() - test * (died == value).sum()) <= 0.5 + 1e-9


def test_a_patient_goes_by_the_worst_of_its_stays() -> None:
    """Twenty patients with a survived and a fatal stay each: half of them held out is ten, all in one stratum."""
    whole = cohort(np.repeat(np.arange(20), 2), np.tile([0, 1], 20))
    left, right = whole.split(0.5, seed=1)
    assert len(set(right.static["patient"])) == len(set(left.static["patient"])) == 10
    assert right.label.mean() == 0.5


def test_the_seed_decides(icu: Cohort) -> None:
    first, again, other = (icu.split(seed=seed)[1].stay_id for seed in (0, 0, 1))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_in_time_nothing_crosses_the_cut() -> None:
    schema = Schema((Feature("x", "continuous"), Feature("start", "continuous", "static", role="order")), 24)
    start = np.arange(100.0)[::-1].copy()
    windows = Cohort(schema, np.arange(100), {"x": np.zeros((100, 24))}, {"start": start})
    left, right = windows.split(0.25, by="time")
    assert left.static["start"].max() + 24 <= right.static["start"].min()
    assert len(right) == 25
    assert len(left) == 100 - 25 - 23


def series(count: int, length: int, seed: int = 0) -> Cohort:
    """Windows of one long series, one a step, in any order."""
    schema = Schema((Feature("x", "continuous"), Feature("start", "continuous", "static", role="order")), length)
    start = np.random.default_rng(seed).permutation(count).astype(np.float64)
    return Cohort(schema, np.arange(count), {"x": start[:, None] + np.arange(length)}, {"start": start})


@settings(deadline=None)
@given(st.integers(40, 400), st.integers(1, 24), st.floats(0.1, 0.6), st.integers(0, 99))
def test_in_blocks_nothing_overlaps_and_the_fraction_is_near(windows: int, length: int, test: float, seed: int) -> None:
    whole = series(windows * length, length)
    left, right = whole.split(test, by="blocks", seed=seed)
    steps = [set(part.series["x"].ravel()) for part in (left, right)]
    assert steps[0]
    assert steps[1]
    assert not steps[0] & steps[1]
    assert len(right) / (len(left) + len(right)) == pytest.approx(test, abs=0.15)
    again = whole.split(test, by="blocks", seed=seed)
    assert [part.stay_id.tolist() for part in again] == [part.stay_id.tolist() for part in (left, right)]


def test_in_blocks_only_windows_that_touch_both_sides_are_dropped() -> None:
    whole = series(4000, 24)
    left, right = whole.split(0.2, by="blocks", seed=3)
    kept = np.sort(np.concatenate([left.static["start"], right.static["start"]]))
    cuts = (np.diff(kept) > 1).sum()
    assert len(kept) == 4000 - 23 * cuts  # 23 windows of 24 steps cross an edge
    assert 4 <= cuts <= 2 * 4  # a fifth of some twenty blocks, each with two edges


def test_in_blocks_both_sides_cover_the_same_times() -> None:
    """After a split in time even real data tell apart."""
    for seed in range(5):
        left, right = series(20_000, 24).split(0.25, by="blocks", seed=seed)
        for part in (left, right):
            quarters = np.bincount((part.static["start"] // 5000).astype(int), minlength=4)
            assert quarters.min() > 0.05 * len(part)


def test_in_blocks_the_seed_decides() -> None:
    first, other = (set(series(2000, 10).split(by="blocks", seed=seed)[1].stay_id.tolist()) for seed in (0, 1))
    assert first != other


def test_in_blocks_windows_of_several_patients_are_refused(icu: Cohort) -> None:
    features = (Feature("x", "continuous"), Feature("at", "continuous", "static", role="order"))
    schema = Schema((*features, Feature("who", "categorical", "static", role="patient")), 2)
    at, who = np.arange(100.0) % 50, np.arange(100) // 50
    whole = Cohort(schema, np.arange(100), {"x": np.zeros((100, 2))}, {"at": at, "who": who})
    with pytest.raises(TimeDiffError, match="has patients, who would be on both sides"):
        whole.split(by="blocks")


def test_a_series_too_short_for_blocks_is_refused() -> None:
    with pytest.raises(TimeDiffError, match="no stay would be left for"):
        series(10, 24).split(0.2, by="blocks")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"test": 1.5}, "between 0 and 1"),
        ({"stratify": "dead"}, "'dead'"),
        ({"stratify": "age"}, "binary or categorical"),
        ({"group": "patient"}, "static feature"),
        ({"by": "time"}, "role = 'order'"),
        ({"by": "blocks"}, "role = 'order'"),
        ({"test": 0.001}, "no stay would be left for test"),
    ],
)
def test_mistakes_are_named(options: dict, said: str, icu: Cohort) -> None:
    with pytest.raises(TimeDiffError, match=said):
        icu.split(**options)


def test_schema_says_the_default(icu: Cohort) -> None:
    half = replace(icu, schema=replace(icu.schema, split=replace(icu.schema.split, test=0.5)))
    assert len(half.split()[1]) == len(icu) // 2


def test_lengths_go_with_their_stays(ragged: Cohort) -> None:
    known = dict(zip(ragged.stay_id.tolist(), ragged.lengths.tolist(), strict=True))
    for part in ragged.split(seed=1):
        assert part.lengths.tolist() == [known[stay] for stay in part.stay_id.tolist()]


def test_in_time_a_shorter_window_ends_earlier() -> None:
    schema = Schema((Feature("x", "continuous"), Feature("t", "continuous", "static", role="order")), steps=4)
    start, length = np.arange(10.0), np.array([4, 1] * 5)
    whole = Cohort(schema, np.arange(10), {"x": np.zeros((10, 4))}, {"t": start}, length)
    train, test = whole.split(0.3, by="time")
    assert test.stay_id.tolist() == [7, 8, 9]
    assert train.stay_id.tolist() == [0, 1, 2, 3, 5]  # those that end before step 7
