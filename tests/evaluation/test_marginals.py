"""Marginals: what is reported is what was put in."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.evaluation.metrics.marginals import Marginal, marginals
from timediff.sources.simulated import simulate


def one_series(values: Floats, feature: Feature | None = None, length: Floats | None = None) -> Cohort:
    feature = feature or Feature("x", "continuous")
    schema = Schema((feature,), values.shape[1])
    return Cohort(schema, np.arange(len(values)), {feature.name: values}, {}, length)


def only(real: Cohort, synthetic: Cohort) -> Marginal:
    [record] = marginals(real, synthetic)
    return record


def test_a_cohort_against_itself_has_no_shift() -> None:
    cohort = simulate(50, steps=12)
    records = marginals(cohort, cohort)
    assert [record.feature for record in records] == [feature.name for feature in cohort.schema.features]
    for record in records:
        assert record.shift == 0
        assert record.real_mean == record.synthetic_mean
        assert record.real_missing == record.synthetic_missing


def test_half_a_standard_deviation_is_a_shift_of_a_half() -> None:
    values = np.random.default_rng(0).normal(80, 10, (40, 6))
    record = only(one_series(values), one_series(values + 0.5 * values.std()))
    assert record.shift == pytest.approx(0.5)
    assert record.real_sd == pytest.approx(record.synthetic_sd)


def test_missing_rates_by_hand() -> None:
    nan = np.nan
    real = one_series(np.array([[1.0, nan, 3.0, nan], [nan, nan, nan, nan]]))
    synthetic = one_series(np.array([[1.0, 2.0, nan, nan], [5.0, nan, nan, nan]]), length=np.array([2, 2]))
    record = only(real, synthetic)
    assert record.real_missing == 6 / 8
    assert record.synthetic_missing == 1 / 4  # after the end of a stay nothing is missing
    assert (record.real_stays, record.synthetic_stays) == (1, 2)


def test_shares_of_classes_over_observed_cells() -> None:
    three = Feature("rhythm", "categorical", classes=("a", "b", "c"))
    real = one_series(np.array([[0.0, 0.0, 1.0, 2.0, np.nan]]), three)
    synthetic = one_series(np.array([[0.0, 1.0, 1.0, np.nan, np.nan]]), three)
    records = marginals(real, synthetic)
    assert [record.level for record in records] == ["a", "b", "c"]
    assert [record.real_mean for record in records] == [0.5, 0.25, 0.25]
    assert [record.synthetic_mean for record in records] == pytest.approx([1 / 3, 2 / 3, 0])
    assert records[0].shift == pytest.approx((1 / 3 - 1 / 2) / 0.5)  # the SD of a share p is √(p(1 − p))


def test_a_binary_feature_is_the_share_of_its_second_class() -> None:
    feature = Feature("ventilated", "binary", classes=("no", "yes"))
    record = only(one_series(np.array([[0.0, 1.0, 1.0, 1.0]]), feature), one_series(np.zeros((1, 4)), feature))
    assert (record.level, record.real_mean, record.synthetic_mean) == ("yes", 0.75, 0)


@pytest.mark.parametrize("stays", [0, 3])
def test_nothing_observed_gives_nan_and_no_warning(stays: int) -> None:
    empty, full = one_series(np.full((stays, 4), np.nan)), one_series(np.ones((3, 4)))
    for record in (only(empty, full), only(full, empty), only(empty, empty)):
        assert math.isnan(record.shift)
    record = only(empty, full)
    assert math.isnan(record.real_mean)
    assert math.isnan(record.real_sd)
    assert record.synthetic_mean == 1
    assert record.real_missing == 1 if stays else math.isnan(record.real_missing)


def test_a_constant_has_no_spread_whatever_rounding_says() -> None:
    few, many = one_series(np.full((3, 1), 0.1)), one_series(np.full((1000, 1), 0.1))
    assert only(few, many).shift == 0
    assert only(few, one_series(np.full((3, 1), 0.2))).shift == math.inf


def test_patient_and_order_are_not_compared() -> None:
    schema = Schema(
        (
            Feature("x", "continuous"),
            Feature("person", "categorical", "static", role="patient"),
            Feature("admitted", "continuous", "static", role="order"),
        ),
        2,
    )
    static = {"person": np.array(["p1", "p2"], dtype=object), "admitted": np.arange(2.0)}
    real = Cohort(schema, np.arange(2), {"x": np.ones((2, 2))}, static)
    synthetic = Cohort(schema.generated(), np.arange(2), {"x": np.ones((2, 2))}, {})
    assert [record.feature for record in marginals(real, synthetic)] == ["x"]


def test_cohorts_that_mean_different_things_are_refused() -> None:
    values = np.ones((2, 3))
    with pytest.raises(TimeDiffError, match="temperature"):
        marginals(
            one_series(values, Feature("temperature", "continuous", unit="°C")),
            one_series(values, Feature("temperature", "continuous", unit="°F")),
        )
    cohort = one_series(values)
    with pytest.raises(TimeDiffError, match="'5min'"):
        marginals(cohort, replace(cohort, schema=replace(cohort.schema, step="5min")))


@settings(max_examples=60, deadline=None)
@given(
    scale=st.floats(0.01, 100),
    offset=st.floats(-1000, 1000),
    shift=st.floats(-3, 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_shift_does_not_depend_on_the_unit(scale: float, offset: float, shift: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    real, synthetic = rng.normal(0, 1, (12, 5)), rng.normal(shift, 1.5, (9, 5))
    real[rng.random(real.shape) < 0.3] = np.nan
    before = only(one_series(real), one_series(synthetic)).shift
    after = only(one_series(scale * real + offset), one_series(scale * synthetic + offset)).shift
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)
