"""Statistics of stays: each is what it says, by hand; what is looked for is found in training stays, and only there."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from timediff.data.cohort import Cohort
from timediff.data.lattices import lattices, on_lattice
from timediff.data.relations import exact_relations, orders
from timediff.data.schema import Feature, Schema
from timediff.data.stay_statistics import StayStatistics
from timediff.data.steps import Steps, correlation, deviation, longest_run, mean
from timediff.evaluation.inputs.view import elapsed
from timediff.sources.simulated import simulate

NAN = np.nan


def cohort(**series: np.ndarray) -> Cohort:
    """Continuous features, (N, L)."""
    first = next(iter(series.values()))
    features = tuple(Feature(name, "continuous", unit="mmHg") for name in series)
    schema = Schema(features, step="1h", steps=first.shape[1])
    return Cohort(schema, np.arange(len(first)), series, {})


def by_words(train: Cohort, of: Cohort, **options: bool) -> dict[str, np.ndarray]:
    statistics = StayStatistics(train)
    table = statistics.table(of, **options)
    return {one.words: table[:, i] for i, one in enumerate(statistics.statistics)}


# Single stays


def test_every_statistic_of_a_stay_by_hand():
    stay = np.array([[NAN, 80, 80, NAN, 82, 81, 81, NAN]])
    found = {words: values[0] for words, values in by_words(cohort(HR=stay), cohort(HR=stay)).items()}
    assert found["HR: measurements"] == 5
    assert found["HR: first measurement"] == 1
    assert found["HR: last measurement"] == 6
    assert found["HR: longest gap"] == 1
    assert found["HR: most frequent gap"] == 1
    assert found["HR: fraction measured again at the next step"] == pytest.approx(3 / 5)
    assert found["HR: mean"] == pytest.approx(80.8)
    assert found["HR: SD"] == pytest.approx(np.std([80, 80, 82, 81, 81]))
    assert (found["HR: least"], found["HR: greatest"], found["HR: median"]) == (80, 82, 81)
    assert (found["HR: first value"], found["HR: last value"]) == (80, 81)
    assert found["HR: mean change, up or down"] == pytest.approx((0 + 2 + 1 + 0) / 4)
    assert found["HR: greatest change"] == 2
    assert found["HR: fraction of turns"] == pytest.approx(1 / 3)  # changes 0, +2, −1, 0
    assert found["HR: fraction of values that repeat the last one"] == pytest.approx(2 / 4)
    assert found["HR: longest run of one value"] == 1
    assert found["HR: distinct values"] == 3
    assert found["HR: fraction of even numbers"] == pytest.approx(3 / 5)


def test_a_stay_without_a_value_has_no_statistic_of_it_and_warns_of_nothing():
    found = by_words(cohort(HR=np.ones((3, 4))), cohort(HR=np.full((2, 4), NAN)))
    assert all(np.isnan(found[f"HR: {what}"]).all() for what in ("mean", "SD", "least", "greatest", "last value"))
    assert (found["HR: measurements"] == 0).all()


values = arrays.arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(1, 8)), elements=st.sampled_from([NAN, 1.0, 2.0, 2.5, 7.0])
)


@given(values)
def test_sums_that_skip_gaps_are_numpys_of_what_is_there(rows):
    steps = Steps(rows)
    for row, found, spread, packed in zip(
        rows, mean(rows, steps.observed), deviation(rows, steps.observed), steps.packed, strict=True
    ):
        known = row[~np.isnan(row)]
        assert found == pytest.approx(known.mean() if len(known) else NAN, nan_ok=True)
        assert spread == pytest.approx(known.std() if len(known) > 1 else NAN, nan_ok=True)
        np.testing.assert_array_equal(packed[: len(known)], known)


@given(values, st.randoms(use_true_random=False))
def test_correlations_within_a_stay_are_numpys(rows, random):
    other = rows + np.array([[random.choice([0.0, 1.0, 3.0]) for _ in row] for row in rows])
    both = ~np.isnan(rows)
    for row, with_it, known, found in zip(rows, other, both, correlation(rows, other, both), strict=True):
        a, b = row[known], with_it[known]
        if len(a) >= 4 and a.std() > 1e-6 and b.std() > 1e-6:
            assert found == pytest.approx(np.corrcoef(a, b)[0, 1])
        else:
            assert np.isnan(found)


@given(arrays.arrays(np.bool_, st.tuples(st.integers(1, 4), st.integers(0, 9))))
def test_the_longest_run_is_that_of_the_text(marked):
    texts = ["".join("x" if one else " " for one in row) for row in marked]
    assert list(longest_run(marked)) == [max(map(len, text.split()), default=0) for text in texts]


def test_the_time_since_the_last_measurement():
    missing = np.array([[True, False, True, True, False], [False, True, True, True, True]])
    np.testing.assert_array_equal(elapsed(missing), [[1, 0, 1, 2, 0], [0, 1, 2, 3, 4]])


# What is found in training stays


@pytest.mark.parametrize(
    ("recorded", "found"),
    [
        (lambda x: np.round(x), 1.0),
        (lambda x: np.round(x * 10) / 10, 0.1),
        (lambda x: np.round(np.round(x * 3) / 3, 2), 1 / 3),
        (lambda x: np.round(x / 5) * 5, 5.0),
    ],
)
def test_the_lattice_of_recorded_values_is_found(recorded, found):
    values = recorded(np.random.default_rng(0).uniform(40, 120, 5000))
    assert lattices(values)[-1] == found
    assert on_lattice(values, found).all()


def test_values_that_keep_to_nothing_have_no_lattice_that_holds_them():
    values = np.random.default_rng(0).normal(size=5000)
    assert not any(on_lattice(values, step).mean() > 0.5 for step in lattices(values))


def pressures(stays: int, exact: float, seed: int) -> Cohort:
    """Systolic, mean and diastolic pressure; the mean follows from the others in the fraction `exact` of the steps."""
    rng = np.random.default_rng(seed)
    dbp = np.round(rng.normal(60, 8, (stays, 12)))
    sbp = np.round(dbp + rng.normal(55, 10, dbp.shape).clip(5))
    third = (sbp + 2 * dbp) / 3
    measured = np.round(third + rng.normal(0, 4, dbp.shape))
    # Recorded with two decimals, or measured and a whole number.
    return cohort(SBP=sbp, DBP=dbp, MAP=np.where(rng.random(dbp.shape) < exact, np.round(third, 2), measured))


def test_a_relation_that_holds_in_some_rows_is_found_with_its_order():
    train = pressures(300, 0.3, 0)
    columns = {name: train.values(name) for name in ("SBP", "DBP", "MAP")}
    assert [one.words for one in exact_relations(columns, np.random.default_rng(0))] == ["MAP = (SBP + 2 · DBP) / 3"]
    assert ("SBP", "DBP") in orders(columns, dict.fromkeys(columns, "mmHg"))
    assert orders(columns, {"SBP": "mmHg", "DBP": "kPa", "MAP": None}) == []
    found = by_words(train, pressures(200, 0.3, 1))["fraction of MAP = (SBP + 2 · DBP) / 3"]
    assert 0.25 < found.mean() < 0.5  # and of whole thirds some by chance


def test_features_that_have_nothing_to_do_with_each_other_have_no_relation():
    train = pressures(300, 0.0, 0)
    columns = {name: np.round(train.values(name)) for name in ("SBP", "DBP", "MAP")}
    assert exact_relations(columns, np.random.default_rng(0)) == []
    rng = np.random.default_rng(1)
    assert exact_relations({name: np.round(rng.normal(80, 20, 9000)) for name in "abc"}, rng) == []


def test_a_relation_and_its_inverse_are_one():
    rng = np.random.default_rng(0)
    a, b = np.round(rng.normal(50, 10, (2, 6000)))
    (found,) = exact_relations({"a": a, "b": b, "total": a + b}, rng)
    assert set(found.features) == {"a", "b", "total"}


# Real against real


def test_training_stays_are_not_told_by_having_been_counted_themselves():
    """Every value is another one, so a training stay that met itself would differ from all others in each value."""
    whole = cohort(x=np.random.default_rng(0).normal(size=(400, 6)))
    train, test = whole.take(np.arange(200)), whole.take(np.arange(200, 400))
    words = "x: fraction of values that do not occur in training"
    assert (by_words(train, test)[words] == 1).all()
    assert (by_words(train, train, training=True)[words] == 1).all()
    assert (by_words(train, train)[words] < 1).any()  # a copy that is not said to be of training stays


def test_stays_of_one_patient_are_not_looked_up_among_each_other():
    rng = np.random.default_rng(0)
    whole = cohort(x=np.repeat(rng.normal(size=(100, 6)), 2, axis=0))  # two equal stays a patient
    patient = Feature("subject", "categorical", "static", role="patient")
    schema = replace(whole.schema, features=(*whole.schema.features, patient))
    train = replace(whole, schema=schema, static={"subject": np.repeat(np.arange(100), 2)})
    found = by_words(train, train, training=True)
    assert (found["x: fraction of values that do not occur in training"] == 1).all()


def test_the_table_of_any_cohort_has_one_row_a_stay_and_no_infinite_number():
    icu = simulate(120, steps=12, seed=0)
    statistics = StayStatistics(icu)
    table = statistics.table(icu.take(np.arange(50)), training=True)
    assert table.shape == (50, len(statistics.statistics))
    assert not np.isinf(table).any()
    assert len({one.words for one in statistics.statistics}) == len(statistics.statistics)
