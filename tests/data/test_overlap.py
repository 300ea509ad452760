"""What two cohorts share is counted exactly, by hand and against brute force."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from timediff.data.cohort import Cohort, concatenate
from timediff.data.overlap import TELLING, how_split, identical_stays, overlapping_windows, shared_patients
from timediff.data.schema import Feature, Schema


def stays(patient: list[int]) -> Cohort:
    schema = Schema((Feature("x", "continuous"), Feature("who", "categorical", "static", role="patient")), 1)
    n = len(patient)
    return Cohort(schema, np.arange(n), {"x": np.zeros((n, 1))}, {"who": np.array(patient)})


def windows(start: list[float], length: int = 4) -> Cohort:
    schema = Schema((Feature("x", "continuous"), Feature("at", "continuous", "static", role="order")), length)
    at = np.array(start, np.float64)
    return Cohort(schema, np.arange(len(at)), {"x": at[:, None] + np.arange(length)}, {"at": at})


def one_feature(values: np.ndarray) -> Cohort:
    return Cohort(Schema((Feature("x", "continuous"),), values.shape[1]), np.arange(len(values)), {"x": values}, {})


def test_patients_are_counted_once_however_many_stays_they_have() -> None:
    assert shared_patients(stays([1, 1, 2, 3]), stays([1, 1, 3, 4, 4])) == 2
    assert shared_patients(stays([1, 2]), stays([3])) == 0
    assert shared_patients(stays([1, 2]), windows([0, 1])) == 0


STARTS = st.lists(st.integers(0, 40).map(float), min_size=1, max_size=8)


@given(STARTS, STARTS)
def test_windows_overlap_where_they_have_a_step_in_common(a: list[float], b: list[float]) -> None:
    expected = sum(any(abs(one - other) < 4 for other in a) for one in b)
    assert overlapping_windows(windows(a), windows(b)) == expected


def test_windows_that_only_touch_do_not_overlap() -> None:
    assert overlapping_windows(windows([0]), windows([4])) == 0
    assert overlapping_windows(windows([0]), windows([3])) == 1


def test_a_short_window_does_not_hide_a_longer_one_that_began_before() -> None:
    train = replace(windows([0, 1]), length=np.array([4, 1]))
    assert overlapping_windows(train, windows([3])) == 1


def test_stays_are_identical_only_in_every_value_and_every_gap() -> None:
    values = np.random.default_rng(0).normal(size=(20, 12))
    values[:, 3] = np.nan
    whole = one_feature(values)
    other = values[:10].copy()
    other[0, 0] += 1e-9
    other[1, 5] = np.nan
    assert identical_stays(whole, one_feature(other)) == 8
    assert identical_stays(whole, one_feature(values[:10])) == 10
    assert identical_stays(one_feature(values[:10]), one_feature(values[10:])) == 0


def test_stays_of_few_different_values_may_coincide_by_chance() -> None:
    few, enough = (np.arange(12) % count for count in (TELLING - 1, TELLING))
    a = one_feature(np.array([few, enough, np.arange(12)], np.float64))
    b = one_feature(np.array([few, few, enough, np.full(12, np.nan)], np.float64))
    assert identical_stays(a, b) == 1


def test_a_cohort_is_itself_however_few_its_values_and_whatever_their_order(mixed: Cohort) -> None:
    flat = one_feature(np.arange(60.0).reshape(30, 2) % 3)
    assert identical_stays(flat, flat.take(np.arange(30)[::-1])) == 30
    assert identical_stays(mixed, replace(mixed, stay_id=mixed.stay_id + 1000)) == len(mixed)


def test_the_names_of_stays_and_patients_are_no_part_of_a_stay(mixed: Cohort) -> None:
    renamed = replace(mixed, static={**mixed.static, "patient": mixed.static["patient"] + 1000})
    assert identical_stays(mixed, renamed) == len(mixed)
    assert shared_patients(mixed, renamed) == 0


def test_zero_has_no_sign_and_what_lies_beyond_the_end_does_not_count() -> None:
    values = np.random.default_rng(0).normal(size=(5, 12))
    values[:, 0], values[:, 11] = 0.0, 1.0
    beyond = values.copy()
    beyond[:, 0], beyond[:, 11] = -0.0, np.nan
    a, b = (replace(one_feature(v), length=np.full(5, 11)) for v in (values, beyond))
    assert identical_stays(a, b) == 5


@pytest.mark.parametrize(
    ("train", "test", "said"),
    [
        (stays([1, 1, 2]), stays([3]), "by patient"),
        (stays([1, 1, 2]), stays([2]), "not by patient: some are in both"),
        (windows([0, 1, 2]), windows([6, 7]), "in time"),
        (windows([6, 7]), windows([0, 1, 2]), "in time"),
        (windows([0, 1, 20]), windows([6, 7]), "in blocks of the series"),
        (windows([0, 2]), windows([1]), "random windows that overlap"),
        (one_feature(np.zeros((2, 2))), one_feature(np.ones((2, 2))), "random, by stay (no patient is known)"),
    ],
)
def test_how_they_were_split_is_seen_in_the_cohorts_themselves(train: Cohort, test: Cohort, said: str) -> None:
    assert how_split(train, test) == said


def test_copies_count_among_others(icu: Cohort) -> None:
    half = len(icu) // 2
    train, test = icu.take(np.arange(half)), icu.take(np.arange(half, len(icu)))
    assert identical_stays(train, test) == 0
    assert identical_stays(train, concatenate([test, train.take(np.arange(7))])) == 7
