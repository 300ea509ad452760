"""What a clinician would check: each number by hand, none moved by real stays, each planted fault seen."""

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature, Relation, Schema
from timediff.errors import TimeDiffError
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.evaluate import evaluate
from timediff.evaluation.figure_data import (
    SETS,
    Charts,
    ClassFractions,
    ExtremeValues,
    FigureData,
    Histogram,
    RateBars,
    SurvivalCurves,
)
from timediff.evaluation.metrics import between_stays, digits, survival
from timediff.evaluation.metrics.charts import charts, writer
from timediff.evaluation.metrics.clinical import clinical, figures
from timediff.evaluation.metrics.differences import Sample
from timediff.evaluation.metrics.extremes import EXTREMES
from timediff.evaluation.registry import METRICS
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.statistics.resampling import Observations
from timediff.sources.simulated import simulate

NAN = np.nan
X, Y = Feature("x", "continuous"), Feature("y", "continuous")
TIME = Feature("died_at", "continuous", "static", role="event_time")
Scores = dict[tuple[str, str | None], Score]


def cohort(series: dict[Feature, Floats], static: dict[Feature, Array] | None = None, **more: object) -> Cohort:
    static = static or {}
    [(stays, steps), *_] = [values.shape for values in series.values()]
    schema = Schema((*series, *static), steps, **more)  # type: ignore[arg-type]
    named = ({f.name: np.asarray(v, float) for f, v in part.items()} for part in (series, static))
    return Cohort(schema, np.arange(stays), *named)


def many(rows: list[list[float]], feature: Feature = X, times: int = 10) -> Cohort:
    return cohort({feature: np.tile(np.array(rows, float), (times, 1))})


def scored(real: Cohort, synthetic: Cohort, bootstrap: int = 0) -> Scores:
    return {(score.what, score.feature): score for score in clinical(real, synthetic, bootstrap=bootstrap)}


def value(what: str, real: Cohort, synthetic: Cohort, feature: str | None = "x") -> float:
    return scored(real, synthetic)[what, feature].value


@pytest.fixture(scope="module")
def ward() -> Cohort:
    return simulate(2000, steps=24, seed=3)


@pytest.fixture(scope="module")
def other() -> Cohort:
    return simulate(2000, steps=24, seed=4)


@pytest.fixture(scope="module")
def floors(ward: Cohort, other: Cohort) -> Scores:
    return scored(ward, other, bootstrap=100)


# --- each number by hand


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (300, "multiple of 100"),
        (250, "multiple of 50"),
        (60, "multiple of 10"),
        (0, "multiple of 100"),
        (65, "multiple of 5"),
        (-64, "multiple of 1"),
        (36.5, "multiple of 0.5"),
        (73.33, "multiple of 1/3"),
        (0.67, "multiple of 1/3"),
        (36.6, "multiple of 0.1"),
        (float(np.float32(36.6)), "multiple of 0.1"),
        (0.35, "multiple of 0.05"),
        (0.36, "multiple of 0.01"),
        (0.3612, "finer"),
    ],
)
def test_the_coarsest_lattice_of_a_value(number: float, name: str) -> None:
    known = digits.Lattices(X)
    assert known.names[int(known.coarsest(np.array([number]))[0])] == name


def test_the_resolution_is_one_of_the_lattices() -> None:
    known = digits.Lattices(Feature("x", "continuous", resolution=0.25))
    assert known.names[int(known.coarsest(np.array([7.25]))[0])] == "multiple of 0.25"


def test_the_step_of_a_feature_is_the_coarsest_on_which_three_quarters_lie() -> None:
    known = digits.Lattices(X)
    assert known.own(np.array([1.0, 2, 3, 4.5])) == 1
    assert known.own(np.array([1.0, 2, 3.5, 4.5])) == 0.5
    assert known.own(np.array([0.33, 0.67, 1.33, 2.67])) == 0.01  # a third has no last digit
    assert known.own(np.array([0.123, 0.234])) is None


def test_last_digits_are_counted_in_steps() -> None:
    assert digits.last_digits(np.array([120.0, 121, 129, 88.5]), 1).tolist() == [0, 1, 9, 10]
    assert digits.last_digits(np.array([36.6, 37.0, 36.65]), 0.1).tolist() == [6, 0, 10]


def test_lattices_and_digits_are_compared_by_total_variation() -> None:
    real, synthetic = many([[60, 64], [70, 73]]), many([[60, 64], [70.5, 72.5]])
    # real: half on 10, half on 1; synthetic: a quarter on 10, a quarter on 1, half on 0.5
    assert value("lattice", real, synthetic) == pytest.approx(0.5)
    # real digits 0, 4, 0, 3; synthetic 0, 4 and two between the steps
    assert value("last_digit", real, synthetic) == pytest.approx(0.5)
    # of every real stay all values are whole; of half of the synthetic ones none
    assert value("stay_lattice", real, synthetic) == pytest.approx(0.5)


def test_who_writes_halves_matters_and_not_only_how_many_there_are() -> None:
    real = many([[60, 60, 60, 60], [61, 61, 61, 61], [62, 62, 62, 62], [60.5, 61.5, 62.5, 63.5]])
    synthetic = many([[60, 60, 60, 60.5], [61, 61, 61, 61.5], [62, 62, 62, 62.5], [60, 61, 62, 63.5]])
    assert value("lattice", real, synthetic) < 0.2
    assert value("stay_lattice", real, synthetic) == pytest.approx(0.75)


def test_how_many_values_a_stay_has_does_not_matter() -> None:
    assert value("stay_lattice", many([[60, 61, 62, 63]]), many([[60, NAN, NAN, 63]])) == 0


def test_values_on_no_lattice_have_no_digits(ward: Cohort) -> None:
    noise = many(np.random.default_rng(0).normal(size=(5, 4)).tolist())
    score = scored(noise, noise)["last_digit", "x"]
    assert math.isnan(score.value)
    assert "lie on one lattice" in score.note


def test_a_repeat_equals_the_value_measured_before_it_however_long_ago() -> None:
    real = many([[5, NAN, 5, 6], [6, 6, NAN, NAN]])  # of 2 + 1 pairs, 2 are equal; the last of a stay is no pair
    synthetic = many([[5, NAN, 6, 6], [6, 8, NAN, NAN]])  # 1 of 3
    assert value("repeats", real, synthetic) == pytest.approx(1 / 3 - 2 / 3)


def test_a_repeat_is_never_of_two_stays() -> None:
    alone = many([[5, NAN], [5, NAN]])
    assert "two values" in scored(alone, alone)["repeats", "x"].note


def test_repeats_of_classes_count_too() -> None:
    rhythm = Feature("x", "categorical", classes=("a", "b", "c"))
    real, synthetic = many([[0, 0, 1]], rhythm), many([[0, 1, 2]], rhythm)
    assert value("repeats", real, synthetic) == pytest.approx(-0.5)


def test_mean_sd_and_slope_of_a_stay() -> None:
    known = Observations(many([[1, 2, NAN, 6], [4, NAN, 4, 4], [3, 5, NAN, NAN], [3, NAN, NAN, NAN]], times=1), X)
    found = between_stays.stay_statistics(known)
    np.testing.assert_allclose(found["stay_mean"], [3, 4, 4, NAN])
    np.testing.assert_allclose(found["stay_sd"], [math.sqrt((4 + 1 + 9) / 2), 0, NAN, NAN], rtol=1e-6)
    steps = np.array([0, 1, 3])
    np.testing.assert_allclose(found["stay_slope"], [np.polyfit(steps, [1, 2, 6], 1)[0], 0, NAN, NAN], rtol=1e-6)


def test_equal_values_have_the_sd_zero_and_not_the_rounding_of_their_mean() -> None:
    found = between_stays.stay_statistics(Observations(many([[36.6] * 7], times=1), X))
    assert found["stay_sd"].tolist() == found["stay_slope"].tolist() == [0.0]


def test_stays_are_compared_with_stays() -> None:
    real = many([[1, 1, 1], [2, 2, 2], [3, 3, 3], [4, 4, 4]])
    shifted = many([[2, 2, 2], [3, 3, 3], [4, 4, 4], [5, 5, 5]])
    assert value("stay_mean", real, shifted) == pytest.approx(0.25)
    assert value("between_sd", real, shifted) == pytest.approx(0)
    closer = many([[1.75, 1.75, 1.75], [2.25, 2.25, 2.25], [2.75, 2.75, 2.75], [3.25, 3.25, 3.25]])
    assert value("between_sd", real, closer) == pytest.approx(-0.5)
    assert value("stay_sd", real, closer) == value("stay_slope", real, closer) == 0
    rising = many([[1, 2, 3], [2, 3, 4], [3, 3, 3], [4, 4, 4]])
    assert value("stay_slope", real, rising) == pytest.approx(0.5)


def test_extremes_are_shifts_of_quantiles_in_real_sds() -> None:
    values = np.arange(1000.0).repeat(20).reshape(2000, 10)  # each of 0 … 999 in ten places of two stays
    real, wider = cohort({X: values.T.copy()}), cohort({X: np.where(values > 989, values + 7, values).T.copy()})
    assert len(real) == 10  # so that every stay has each extreme value
    sd = float(values.std())
    found = scored(real, wider)
    assert found["highest_0.1", "x"].value == pytest.approx(7 / sd)
    assert found["highest_1", "x"].value == found["lowest_1", "x"].value == found["lowest_0.1", "x"].value == 0


@pytest.mark.parametrize("fraction", EXTREMES.values())
def test_a_quantile_is_that_of_numpy(fraction: float) -> None:
    rng = np.random.default_rng(1)
    real, synthetic = (cohort({X: rng.gamma(2, size=(1500, 12))}) for _ in range(2))
    what = next(name for name, one in EXTREMES.items() if one == fraction)
    ours, theirs = (np.quantile(c.series["x"], fraction, method="inverted_cdf") for c in (real, synthetic))
    assert value(what, real, synthetic) == pytest.approx((theirs - ours) / real.series["x"].std())


def test_an_extreme_that_few_stays_have_is_not_told() -> None:
    values = np.tile(np.arange(50.0), (40, 1))
    values[:9, 0] = -500  # so that the 0.1 % quantile would be a value of nine stays
    lonely, plain = cohort({X: values}), cohort({X: np.tile(np.arange(50.0), (40, 1))})
    for real, synthetic in ((lonely, plain), (plain, lonely)):
        score = scored(real, synthetic)["lowest_0.1", "x"]
        assert math.isnan(score.value)
        assert f"fewer than {MIN_AGGREGATE} stays" in score.note
    assert not math.isnan(scored(plain, plain)["lowest_0.1", "x"].value)


def test_order_is_broken_where_both_were_measured_and_the_higher_is_lower() -> None:
    def pressures(high: list[float], low: list[float]) -> Cohort:
        series = {X: np.tile(high, (10, 1)), Y: np.tile(low, (10, 1))}
        return cohort(series, relations=(Relation("x", "y"),))

    real = pressures([120, 70, NAN, 80], [80, 75, 90, NAN])  # broken at 1 of 2 steps
    equal = pressures([120, 70, NAN, 80], [80, 70, 90, NAN])  # equal is in order
    assert value("order", real, equal, "x ≥ y") == pytest.approx(-0.5)
    assert value("order", equal, real, "x ≥ y") == pytest.approx(0.5)


def test_the_schema_of_the_real_stays_says_what_must_hold() -> None:
    plain = cohort({X: np.ones((10, 2)), Y: np.zeros((10, 2))})
    stated = replace(plain, schema=replace(plain.schema, relations=(Relation("x", "y"),)))
    assert ("order", "x ≥ y") in scored(stated, plain)
    assert ("order", "x ≥ y") not in scored(plain, stated)


def test_kaplan_and_meier_by_hand() -> None:
    # Of 5 stays, events at 2 and 4, one censored at 3, two at the end (6): 1 − 1/5, then (1 − 1/3) of it.
    events, leaving = np.array([[1.0, 1.0]]), np.array([[0.0, 2.0, 3.0]])
    np.testing.assert_allclose(survival.kaplan_meier(events, leaving), [[0.8, 0.8 * 2 / 3]])


def test_time_to_event_is_the_largest_difference_of_the_curves() -> None:
    def ward_with(times: list[float]) -> Cohort:
        stays = np.tile(times, 10)
        return cohort({X: np.zeros((len(stays), 6))}, {TIME: stays})

    real = ward_with([2, 4, NAN, NAN])  # 1, then .75 from 2 on, .5 from 4 on
    late = ward_with([3, 5, NAN, NAN])
    more = ward_with([2, 4, 5, 5])
    assert value("event_curve", real, real, None) == 0
    assert value("event_curve", real, late, None) == pytest.approx(0.25)
    assert value("event_curve", real, more, None) == pytest.approx(0.5)
    beyond = ward_with([2, 4, 7, 100])  # after the last of 6 steps a stay is censored
    assert value("event_curve", real, beyond, None) == 0


def test_without_an_event_there_is_no_curve() -> None:
    none = cohort({X: np.zeros((10, 6))}, {TIME: np.full(10, NAN)})
    assert "has the event" in scored(none, none)["event_curve", None].note
    assert ("event_curve", None) not in scored(many([[1, 2]]), many([[1, 2]]))


# --- real stays pass, planted faults do not


def test_a_cohort_against_itself_moves_nothing(ward: Cohort, mixed: Cohort) -> None:
    for plain in (ward, mixed):
        found = scored(plain, plain)
        assert [key for key, score in found.items() if abs(score.value) > 1e-12] == []
        assert len({score.key for score in found.values()}) == len(clinical(plain, plain, bootstrap=0))


def test_real_against_real_is_within_a_tenth(floors: Scores) -> None:
    far = [key for key, score in floors.items() if abs(score.value) > 0.1 and key[0] not in EXTREMES]
    assert far == []
    signed = [score for (what, _), score in floors.items() if what in ("repeats", "between_sd", "order", *EXTREMES)]
    held = [score.low - 1e-9 <= 0 <= score.high + 1e-9 for score in signed if not math.isnan(score.value)]
    assert np.mean(held) > 0.85  # 95 % of them are expected to


def off_their_lattice(plain: Cohort) -> Cohort:
    noise = np.random.default_rng(0).uniform(-0.4, 0.4, plain.series["heart_rate"].shape)
    return _with(plain, heart_rate=plain.series["heart_rate"] + noise)


def repeats_removed(plain: Cohort) -> Cohort:
    rate = plain.series["resp_rate"].copy()
    for stay in rate:
        known = np.flatnonzero(~np.isnan(stay))
        for before, now in pairwise(known):
            stay[now] += stay[now] == stay[before]
    return _with(plain, resp_rate=rate)


def order_broken(plain: Cohort) -> Cohort:
    rng = np.random.default_rng(0)
    high, low = plain.series["sbp"], plain.series["mbp"]
    swapped = rng.random(high.shape) < 0.1
    return _with(plain, sbp=np.where(swapped, low, high), mbp=np.where(swapped, high, low))


def stays_too_alike(plain: Cohort) -> Cohort:
    """The variance between stays shrunk by a tenth, that within stays as it was."""
    values = plain.series["x"]
    means = np.nanmean(values, axis=1, keepdims=True)
    return _with(plain, x=values - (1 - math.sqrt(0.9)) * (means - np.nanmean(means)))


def extremes_cut(plain: Cohort) -> Cohort:
    rate = plain.series["heart_rate"]
    return _with(plain, heart_rate=np.clip(rate, *np.nanquantile(rate, [0.03, 0.97])))


def halves_rounded(plain: Cohort) -> Cohort:
    pressure = plain.series["sbp"]
    return _with(plain, sbp=np.where(np.arange(len(pressure))[:, None] % 2, np.round(pressure, -1), pressure))


def _with(plain: Cohort, **series: Floats) -> Cohort:
    return replace(plain, series={**plain.series, **series})


@pytest.mark.parametrize(
    ("planted", "what", "feature", "least"),
    [
        (off_their_lattice, "lattice", "heart_rate", 0.9),
        (off_their_lattice, "last_digit", "heart_rate", 0.9),
        (off_their_lattice, "stay_lattice", "heart_rate", 0.9),
        (halves_rounded, "last_digit", "sbp", 0.35),
        (repeats_removed, "repeats", "resp_rate", 0.1),
        (order_broken, "order", "sbp ≥ mbp", 0.09),
        (extremes_cut, "highest_0.1", "heart_rate", 0.5),
        (extremes_cut, "lowest_1", "heart_rate", 0.1),
    ],
)
def test_a_planted_fault_is_seen(
    ward: Cohort,
    floors: Scores,
    other: Cohort,
    planted: Callable[[Cohort], Cohort],
    what: str,
    feature: str,
    least: float,
) -> None:
    floor = floors[what, feature]
    fault = scored(ward, planted(other), bootstrap=50)[what, feature]
    assert abs(fault.value) - abs(floor.value) > least
    assert not fault.low <= 0 <= fault.high


def test_variance_between_stays_that_is_a_tenth_too_small_is_seen() -> None:
    rng = np.random.default_rng(0)
    real, fresh = (cohort({X: rng.normal(60, 8, (8000, 1)) + rng.normal(0, 5, (8000, 12))}) for _ in range(2))
    floor = scored(real, fresh, bootstrap=100)["between_sd", "x"]
    fault = scored(real, stays_too_alike(fresh), bootstrap=100)["between_sd", "x"]
    assert floor.low < 0 < floor.high
    assert fault.high < 0
    assert fault.value - floor.value == pytest.approx(math.sqrt(0.9) - 1, abs=0.005)


def test_events_that_come_too_early_are_seen() -> None:
    rng = np.random.default_rng(0)

    def dying(scale: float) -> Cohort:
        times = rng.exponential(scale, 1000)
        return cohort({X: np.zeros((1000, 48))}, {TIME: np.where(times < 60, times, NAN)})

    real, fresh, early = dying(100), dying(100), dying(60)
    assert scored(real, fresh)["event_curve", None].value < 0.06
    fault = scored(real, early, bootstrap=100)["event_curve", None]
    # largest at the end: exp(−48 / 100) − exp(−48 / 60)
    assert fault.low < math.exp(-0.48) - math.exp(-0.8) < fault.high
    assert fault.low > 0.1


# --- sentences in place of numbers


def test_whatever_is_missing_there_is_a_number_or_a_sentence(mixed: Cohort) -> None:
    empty = replace(mixed, series={name: np.full_like(values, NAN) for name, values in mixed.series.items()})
    few = mixed.take(np.arange(MIN_AGGREGATE - 1))
    for real, synthetic in ((mixed, empty), (empty, mixed), (empty, empty), (few, mixed), (mixed, few)):
        scores = clinical(real, synthetic, bootstrap=5)
        assert {s.key for s in scores} == {s.key for s in clinical(mixed, mixed, bootstrap=0)}
        assert all(math.isnan(score.value) == bool(score.note) for score in scores)
        assert list(figures(real, synthetic, real))


def test_equal_values_everywhere_have_no_sd_to_measure_by() -> None:
    flat = many([[5, 5, 5]])
    found = scored(flat, flat)
    assert all(math.isnan(found[what, "x"].value) for what in ("between_sd", *EXTREMES))


def test_only_the_same_features_can_be_compared() -> None:
    with pytest.raises(TimeDiffError, match="differ in what they hold"):
        clinical(many([[1, 2]]), many([[1, 2]], Y))


# --- what is shown


def contents(real: Cohort, synthetic: Cohort, section: str, train: Cohort | None = None) -> list[FigureData]:
    return [figure for figure in figures(real, synthetic, train or real) if figure.section == section]


def test_figures_are_plain_and_come_back(ward: Cohort, other: Cohort) -> None:
    found = list(figures(ward, other, ward))
    assert [FigureData.from_json(figure.to_json(), "here") for figure in found] == found
    kinds = {figure.section: type(figure.content) for figure in found}
    assert kinds == {
        "digits": ClassFractions,
        "extremes": ExtremeValues,
        "stay statistics": Histogram,
        "gaps": SurvivalCurves,
        "repeats": RateBars,
        "order": RateBars,
        "charts": Charts,
    }


def test_a_class_of_few_real_stays_has_no_real_fraction() -> None:
    stay = np.arange(30)
    real = Sample(np.where(stay < 9, 0, np.where(stay < 20, 1, 2)), stay)
    shown = digits.class_fractions(["a", "b", "c", "d"], real, Sample(np.array([0, 0, 1, 3]), np.arange(4)))
    assert shown.classes == ["a", "b", "c", "d"]
    assert shown.real == [None, 0.5238, 0.4762, 0]  # of the 21 that are shown: nothing is left to tell of the nine
    assert shown.synthetic == [0.5, 0.25, 0, 0.25]


def test_repeats_and_broken_orders_are_drawn_as_they_are_counted() -> None:
    def stays(x: list[float], y: list[float]) -> Cohort:
        return cohort({X: np.tile(x, (20, 1)), Y: np.tile(y, (20, 1))}, relations=(Relation("x", "y"),))

    real, synthetic = stays([9, 9, NAN, 8], [7, 8, 8, 8]), stays([9, 9, 9, 8], [9, 10, 9, 8])
    [repeats] = [figure.content for figure in contents(real, synthetic, "repeats")]
    assert repeats == RateBars("of values", ["x", "y"], [0.5, 0.6667], [0.6667, 0])
    [order] = [figure.content for figure in contents(real, synthetic, "order")]
    assert order == RateBars("of steps", ["x ≥ y"], [0], [0.25])


@pytest.mark.parametrize(("stays", "told"), [(0, True), (1, False), (9, False), (10, True), (91, False), (100, True)])
def test_what_one_to_nine_real_stays_do_or_do_not_has_no_rate(stays: int, told: bool) -> None:
    some = np.arange(100) < stays
    series = {X: np.where(some[:, None], [[5.0, 5.0]], [[5.0, 6.0]]), Y: np.where(some[:, None], 7.0, 1.0).repeat(2, 1)}
    real = cohort(series, relations=(Relation("x", "y"),))
    [repeats], [order] = (contents(real, real, section) for section in ("repeats", "order"))
    for drawn, row in ((repeats.content, 0), (order.content, 0)):
        assert isinstance(drawn, RateBars)
        assert drawn.real[row] == (stays / 100 if told else None)
        assert drawn.synthetic[row] == stays / 100


def extreme_values(real: Cohort, synthetic: Cohort, train: Cohort) -> dict[str, list[float | None]]:
    [figure] = contents(real, synthetic, "extremes", train)
    assert isinstance(figure.content, ExtremeValues)
    assert figure.content.fractions == list(EXTREMES.values())
    return figure.content.values


def test_extremes_are_drawn_as_quantiles_of_each_set() -> None:
    rng = np.random.default_rng(0)
    sets = {name: cohort({X: rng.normal(place, 1, (3000, 10))}) for place, name in enumerate(SETS)}
    found = extreme_values(sets["test"], sets["synthetic"], sets["train"])
    for name, one in sets.items():
        values = np.quantile(one.series["x"], list(EXTREMES.values()), method="inverted_cdf")
        assert found[name] == pytest.approx(values, rel=1e-5)
    # What the score says is what is seen.
    scores = scored(sets["test"], sets["synthetic"])
    shifts = [scores[what, "x"].value * sets["test"].series["x"].std() for what in EXTREMES]
    assert np.subtract(found["synthetic"], found["test"]) == pytest.approx(shifts, abs=1e-4)


@pytest.mark.parametrize("lonely", SETS)
@pytest.mark.parametrize(("stays", "told"), [(9, False), (10, True)])
def test_a_quantile_beyond_which_few_stays_have_a_value_is_in_no_picture(lonely: str, stays: int, told: bool) -> None:
    values = np.tile(np.arange(50.0), (40, 1))
    few = values.copy()
    few[:stays, 0] = -500  # a value in two hundred: the 0.1 % quantile is theirs, the 1 % quantile is not
    sets = {name: cohort({X: few if name == lonely else values}) for name in SETS}
    found = extreme_values(sets["test"], sets["synthetic"], sets["train"])
    assert found[lonely] == [-500 if told else None, 0, 49, 49]
    assert all(found[name] == [0, 0, 49, 49] for name in SETS if name != lonely)


def test_extremes_of_values_that_hardly_any_training_stay_has_are_not_told() -> None:
    plenty = cohort({X: np.tile(np.arange(50.0), (40, 1))})
    for stays in (0, 9):
        values = np.where(np.arange(40)[:, None] < stays, plenty.series["x"], NAN)
        assert extreme_values(plenty, plenty, cohort({X: values}))["train"] == [None] * 4


def test_a_curve_moves_on_with_every_ten_stays() -> None:
    stay, time = np.arange(40), np.repeat([1, 2, 3, 4], [9, 1, 25, 5])
    remain = 50 - np.array([0, 9, 10, 35, 40])
    assert survival.where_enough(stay, time, remain) == [0, 2, 3]  # 9 at 1, 5 after 3
    assert survival.where_enough(stay, time, remain - 6) == [0, 2]  # 9 remain at 3
    assert survival.where_enough(stay, time, np.array([9])) == []
    assert survival.where_enough(np.zeros(40, int), time, remain) == [0]  # one stay changes nothing by itself


def test_a_curve_of_gaps_is_the_fraction_that_is_longer() -> None:
    gaps = many([[1, NAN, 1, NAN, NAN, 1], [1, NAN, NAN, NAN, 1, 1]], times=20)  # lengths 1, 2 and 3
    [figure] = contents(gaps, gaps, "gaps")
    assert isinstance(figure.content, SurvivalCurves)
    assert figure.content.steps["real"] == [0, 1, 2]  # nobody has one longer than 3
    assert figure.content.values["real"] == [1, 0.6667, 0.3333]
    whole = many([[1, 2, 3]])
    assert contents(whole, whole, "gaps") == []


def test_a_curve_of_events_is_that_of_kaplan_and_meier() -> None:
    stays = cohort({X: np.zeros((40, 6))}, {TIME: np.tile([1.5, 4, NAN, NAN], 10)})
    [figure] = contents(stays, stays, "events")
    assert isinstance(figure.content, SurvivalCurves)
    assert figure.content.steps["real"] == [0, 2, 4]
    assert figure.content.values["real"] == [1, 0.75, 0.5]


def test_no_picture_tells_of_fewer_than_ten_real_stays() -> None:
    nine = np.arange(100) < 9
    few = cohort({X: np.where(nine[:, None], NAN, np.full((100, 4), 70.0))}, {TIME: np.where(nine, 2, NAN)})
    fresh = cohort({X: np.full((100, 4), 70.0)}, {TIME: np.full(100, NAN)})
    gaps = [figure.content for figure in contents(few, fresh, "gaps")]
    assert gaps == []  # nine stays have one
    [events] = [figure.content for figure in contents(few, fresh, "events")]
    assert isinstance(events, SurvivalCurves)
    assert events.steps["real"] == [0]


def test_the_metric_shows_synthetic_stays_and_measures_floors_without_figures() -> None:
    train, test = simulate(200, steps=4, seed=0).split(test=0.4, seed=0)
    settings = EvaluationSettings(only=("copies", "near_copies", "clinical"), bootstrap=5)
    results = evaluate(train, test, {"a": simulate(80, steps=4, seed=1)}, settings=settings)
    assert {figure.generator for figure in results.figures} == {"a"}
    shown = [figure.content for figure in results.figures if isinstance(figure.content, Charts)]
    assert len(shown) == 1
    stand_in = Case(train, test, settings).stand_in(80)
    measured = METRICS("clinical").measure(Measurement(Case(train, test, settings), stand_in, floor=True))
    assert all(isinstance(one, Score) for one in measured)  # no chart of a real stay, not even in a part of a result
    floors = {score.key: score.value for score in clinical(test, stand_in, bootstrap=0)}
    for score in results.scores["a"]:
        if score.metric == "clinical":
            assert score.floor == pytest.approx(floors[score.key], nan_ok=True)
    assert METRICS("clinical").quick


# --- charts


def test_a_chart_is_written_as_the_training_file_is() -> None:
    temperature = Feature("t", "continuous", resolution=0.1)
    rhythm = Feature("r", "categorical", classes=("sinus", "af"))
    volume = Feature("v", "continuous", unit="mL")
    sex = Feature("sex", "binary", "static", classes=("F", "M"))
    age = Feature("age", "continuous", "static", unit="years")
    died = Feature("died", "binary", "static", role="label")
    patient = Feature("patient", "categorical", "static", role="patient")
    series = {temperature: [[37, NAN], [36.5, 38]], rhythm: [[NAN, 1], [0, 0]], volume: [[173.33, 86], [NAN, 5]]}
    static = {sex: [1, NAN], age: [63, 70], died: [0, 1], patient: [5, 6]}
    shown = charts(
        cohort({f: np.array(v, float) for f, v in series.items()}, {f: np.array(v, float) for f, v in static.items()})
    )
    assert (shown.features, shown.units) == (["t", "r", "v"], [None, None, "mL"])
    assert shown.cells == [
        [["37.0", ""], ["", "af"], ["173.33", "86"]],
        [["36.5", "38.0"], ["sinus", "sinus"], ["", "5"]],
    ]
    assert shown.about == [
        {"sex": "M", "age": "63 years", "died": "0"},
        {"sex": "", "age": "70 years", "died": "1"},
    ]


def test_values_on_no_lattice_are_written_with_four_digits() -> None:
    values = np.array([0.123456, 71.98765, 12345.678])
    assert [writer(X, values)(value) for value in values] == ["0.1235", "71.99", "1.235e+04"]


def test_ten_stays_are_taken_evenly_and_long_ones_are_cut() -> None:
    shown = charts(cohort({X: np.zeros((91, 300))}))
    assert shown.stays == [str(stay) for stay in range(0, 91, 10)]
    assert (shown.steps, shown.of_steps, len(shown.cells[0][0])) == (288, 300, 288)
    assert len(charts(cohort({X: np.zeros((3, 2))})).stays) == 3
