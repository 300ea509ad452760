"""Fidelity: each planted fault moves its own number, by as much as was planted, and no other."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, pointbiserialr, wasserstein_distance

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.data.units import resampling_units
from timediff.errors import TimeDiffError
from timediff.evaluation.metrics import dependence
from timediff.evaluation.metrics.fidelity import fidelity
from timediff.evaluation.metrics.subgroups import fidelity_by_group
from timediff.evaluation.score import Score
from timediff.evaluation.statistics import resampling
from timediff.evaluation.statistics.bootstrap import resample
from timediff.evaluation.statistics.groups import groups
from timediff.evaluation.statistics.resampling import Resampled
from timediff.runtime import seeding
from timediff.sources.simulated import simulate

X = Feature("x", "continuous")
Scores = dict[tuple[str, str | None], Score]


@pytest.fixture(scope="module")
def ward() -> Cohort:
    return simulate(400, steps=12, seed=3)


def cohort(
    series: dict[Feature, Floats], static: dict[Feature, Array] | None = None, length: Array | None = None
) -> Cohort:
    static = static or {}
    [(stays, steps), *_] = [values.shape for values in series.values()]
    named = ({f.name: v for f, v in part.items()} for part in (series, static))
    return Cohort(Schema((*series, *static), steps), np.arange(stays), *named, length)


def scored(real: Cohort, synthetic: Cohort, bootstrap: int = 0) -> Scores:
    return {(score.what, score.feature): score for score in fidelity(real, synthetic, bootstrap=bootstrap, seed=0)}


def with_series(plain: Cohort, **changed: Floats) -> Cohort:
    return replace(plain, series={**plain.series, **changed})


def moved(scores: Scores, by: float = 1e-9) -> set[tuple[str, str | None]]:
    return {key for key, score in scores.items() if not abs(score.value) <= by}


def noise(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=shape)


def test_a_cohort_against_itself_is_at_distance_zero(ward: Cohort, mixed: Cohort) -> None:
    for plain in (ward, mixed):
        assert moved(scored(plain, plain), 1e-12) == set()


def test_every_number_has_its_own_key(mixed: Cohort) -> None:
    scores = fidelity(mixed, mixed, bootstrap=0, seed=0)
    assert len({score.key for score in scores}) == len(scores)
    assert {score.metric for score in scores} == {"fidelity"}
    assert all(score.feature != "patient" for score in scores)


def test_a_shifted_mean_is_seen_in_its_own_feature_only(ward: Cohort) -> None:
    pulse = ward.series["heart_rate"]
    half = 0.5 * float(np.nanstd(pulse))
    scores = scored(ward, with_series(ward, heart_rate=pulse + half))
    assert scores["mean", "heart_rate"].value == pytest.approx(0.5)
    assert scores["wasserstein", "heart_rate"].value == pytest.approx(0.5)
    assert scores["ks", "heart_rate"].value > 0.15
    assert moved(scores) <= {(what, "heart_rate") for what in ("mean", "wasserstein", "ks", "out_of_range")}


def test_a_halved_spread_is_minus_a_half(ward: Cohort) -> None:
    pulse = ward.series["heart_rate"]
    centre = float(np.nanmean(pulse))
    scores = scored(ward, with_series(ward, heart_rate=centre + 0.5 * (pulse - centre)))
    assert scores["sd", "heart_rate"].value == pytest.approx(-0.5)
    assert moved(scores) == {(what, "heart_rate") for what in ("sd", "wasserstein", "ks")}


def test_shuffled_time_moves_the_autocorrelation_and_no_marginal(ward: Cohort) -> None:
    order = np.argsort(noise(len(ward), 12), axis=1)
    shuffled = {name: np.take_along_axis(values, order, axis=1) for name, values in ward.series.items()}
    scores = scored(ward, with_series(ward, **shuffled))
    assert scores["autocorrelation", None].value > 0.03
    assert {what for what, _ in moved(scores)} == {"autocorrelation", "runs", "missing_by_step"}


def test_features_drawn_apart_lose_their_correlation_and_nothing_else(ward: Cohort) -> None:
    order = np.random.default_rng(0).permutation(len(ward))
    scores = scored(ward, with_series(ward, sbp=ward.series["sbp"][order]))
    assert scores["correlation", None].value > 0.04  # 6 of 21 pairs
    assert moved(scores) == {("correlation", None), ("mask_correlation", None), ("label_association", None)}


def test_flipped_mask_bits_move_what_is_missing(ward: Cohort) -> None:
    pulse = ward.series["heart_rate"]
    flipped = np.where(np.random.default_rng(0).random(pulse.shape) < 0.01, np.nan, pulse)
    planted = float(np.isnan(flipped).mean() - np.isnan(pulse).mean())
    scores = scored(ward, with_series(ward, heart_rate=flipped))
    assert scores["missing", "heart_rate"].value == pytest.approx(planted)
    assert scores["missing_by_step", "heart_rate"].value == pytest.approx(planted)
    assert scores["runs", "heart_rate"].value > 0.01
    others = {key: score for key, score in scores.items() if key[1] not in ("heart_rate", None)}
    assert moved(others) == set()
    assert all(abs(scores[what, "heart_rate"].value) < 0.01 for what in ("ks", "wasserstein", "mean", "sd"))


def test_a_label_at_random_has_no_association(ward: Cohort) -> None:
    died = np.random.default_rng(1).permutation(ward.static["died"])
    scores = scored(ward, replace(ward, static={**ward.static, "died": died}))
    assert scores["label_association", None].value > 0.1
    assert moved(scores) == {("label_association", None)}


def test_label_association_is_the_point_biserial_correlation() -> None:
    died = Feature("died", "binary", "static", role="label")
    classes = np.arange(40) % 2.0
    real, synthetic = (cohort({X: noise(40, 5, seed=s) + s * classes[:, None]}, {died: classes}) for s in (0, 1))
    known = [pointbiserialr(classes, c.series["x"].mean(axis=1)).statistic for c in (real, synthetic)]
    value = scored(real, synthetic)["label_association", None].value
    assert value == pytest.approx(abs(known[1] - known[0]))


def test_correlation_is_pearsons_over_cells_known_of_both() -> None:
    y = Feature("y", "continuous")

    def pair(slope: float, seed: int) -> Cohort:
        a, b = noise(30, 8, seed=seed), noise(30, 8, seed=seed + 10)
        b = 100 + b + slope * a
        a[noise(30, 8, seed=seed + 20) > 1], b[noise(30, 8, seed=seed + 30) > 1] = np.nan, np.nan
        return cohort({X: a, y: b})

    def known(c: Cohort) -> float:
        both = ~np.isnan(c.series["x"]) & ~np.isnan(c.series["y"])
        return float(np.corrcoef(c.series["x"][both], c.series["y"][both])[0, 1])

    real, synthetic = pair(1, 0), pair(-1, 1)
    assert scored(real, synthetic)["correlation", None].value == pytest.approx(abs(known(real) - known(synthetic)))


def test_autocorrelation_of_a_wave_against_its_definition() -> None:
    def known(values: Floats) -> Floats:
        z = values - np.nanmean(values)
        return np.array([np.nanmean(z[:, :-k] * z[:, k:]) for k in range(1, 4)]) / np.nanvar(values)

    walk = np.cumsum(noise(50, 4), axis=1) + 7
    walk[noise(50, 4, seed=1) > 1] = np.nan
    white = noise(50, 4, seed=2)
    value = scored(cohort({X: walk}), cohort({X: white}))["autocorrelation", None].value
    assert value == pytest.approx(np.abs(known(walk) - known(white)).mean())


numbers = st.lists(st.integers(-50, 50).map(float) | st.floats(-1e3, 1e3), min_size=10, max_size=60)


@settings(max_examples=60, deadline=None)
@given(numbers, numbers)
def test_distances_are_those_of_scipy(ours: list[float], theirs: list[float]) -> None:
    scores = scored(*(cohort({X: np.array(values)[:, None]}) for values in (ours, theirs)))
    assert scores["ks", "x"].value == pytest.approx(ks_2samp(ours, theirs, method="asymp").statistic, abs=1e-12)
    sd = float(np.std(ours))
    if sd > 1e-6:
        assert scores["wasserstein", "x"].value == pytest.approx(wasserstein_distance(ours, theirs) / sd, rel=1e-9)


def test_a_value_is_exact_and_its_interval_about_it_beyond_the_grid() -> None:
    ours, theirs = noise(300, 10), noise(300, 10, seed=1) + 0.3
    score = scored(cohort({X: ours}), cohort({X: theirs}), bootstrap=100)["ks", "x"]
    assert score.value == pytest.approx(ks_2samp(ours.ravel(), theirs.ravel()).statistic, abs=1e-12)
    assert score.low < score.value < score.high < score.low + 0.1


def test_a_class_never_generated_is_missed_by_its_share() -> None:
    rhythm = Feature("rhythm", "categorical", classes=("sinus", "af", "paced"))
    real = cohort({rhythm: np.tile([0.0, 0.0, 1.0, 2.0], (20, 1))})
    never = cohort({rhythm: np.tile([0.0, 0.0, 1.0, 1.0], (20, 1))})
    assert scored(real, never)["frequencies", "rhythm"].value == pytest.approx(0.25)


def test_values_beyond_the_bounds_are_counted() -> None:
    bounded = Feature("x", "continuous", bounds=(-10, 10))
    values = np.clip(noise(20, 5), -9, 9)
    beyond = values.copy()
    beyond[:10, 0] = 11
    assert scored(cohort({bounded: values}), cohort({bounded: beyond}))["out_of_range", "x"].value == pytest.approx(0.1)
    assert scored(cohort({bounded: beyond}), cohort({bounded: values}))["out_of_range", "x"].value == 0
    # Without bounds, what was real is in range.
    assert scored(cohort({X: values}), cohort({X: beyond}))["out_of_range", "x"].value == pytest.approx(0.1)
    assert scored(cohort({X: beyond}), cohort({X: values}))["out_of_range", "x"].value == 0


def test_runs_compare_lengths_of_gaps() -> None:
    single, double = np.ones((20, 6)), np.ones((20, 6))
    single[:, [1, 4]] = np.nan
    double[:, [2, 3]] = np.nan
    scores = scored(cohort({X: single}), cohort({X: double}))
    assert scores["missing", "x"].value == 0
    assert scores["runs", "x"].value == pytest.approx(1.0)  # gaps of one step against gaps of two
    assert scores["missing_by_step", "x"].value == pytest.approx(4 / 6)


def test_nothing_is_missing_after_the_end_of_a_stay() -> None:
    values = noise(20, 6)
    values[:10, 3:] = np.nan
    short = cohort({X: values}, length=np.repeat([3, 6], 10))
    assert moved(scored(short, cohort({X: noise(20, 6)}))) & {("missing", "x"), ("missing_by_step", "x")} == set()


def test_a_static_feature_that_can_be_missing_has_a_rate() -> None:
    height = Feature("height", "continuous", "static")
    known = noise(40)
    real, holes = (cohort({X: noise(40, 3)}, {height: v}) for v in (known, np.where(np.arange(40) < 10, np.nan, known)))
    assert scored(real, holes)["missing", "height"].value == pytest.approx(0.25)
    assert ("missing", "height") not in scored(real, real)


def test_an_interval_holds_what_was_planted_and_narrows_with_stays() -> None:
    def width(stays: int) -> float:
        real, synthetic = simulate(stays, steps=6, seed=0), simulate(stays, steps=6, seed=1)
        score = scored(real, synthetic, bootstrap=200)["mean", "heart_rate"]
        assert score.low < 0 < score.high
        return score.high - score.low

    assert width(1600) == pytest.approx(width(100) / 4, rel=0.3)


def test_the_interval_of_a_small_distance_lies_about_it_and_is_not_negative(ward: Cohort) -> None:
    for score in fidelity(ward, simulate(400, steps=12, seed=4), bootstrap=100, seed=0):
        assert score.low <= score.value <= score.high
        assert score.low >= 0 or score.what in ("mean", "sd", "missing")


def test_a_resample_is_the_cohort_of_the_stays_drawn(ward: Cohort, mixed: Cohort) -> None:
    other = simulate(300, steps=12, seed=4)
    for real, synthetic in ((ward, other), (mixed, mixed.take(np.arange(60)))):
        drawn = [
            c.take(np.repeat(np.arange(len(c)), resample(resampling_units(c), seeding.stream("evaluation", 7, i))))
            for i, c in enumerate((real, synthetic))
        ]
        again, once = scored(*drawn), fidelity(real, synthetic, bootstrap=1, seed=7)
        for score in once:
            if score.what in ("mean", "sd", "missing"):
                assert score.low == score.high == pytest.approx(again[score.what, score.feature].value)
            else:  # one resample has no spread about the value
                assert (score.low, score.high) == pytest.approx((score.value, score.value), abs=1e-12)
        weighted = [Resampled(c, 1, seeding.stream("evaluation", 7, i)) for i, c in enumerate((real, synthetic))]
        for cohort_of in weighted:
            cohort_of.counts[:, 0] = cohort_of.counts[:, 1]
        for score in dependence.scores(*weighted):
            assert score.value == pytest.approx(again[score.what, None].value)


def test_stays_in_blocks_add_up(ward: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    other = simulate(300, steps=12, seed=4)
    whole = scored(ward, other, bootstrap=5)
    monkeypatch.setattr(resampling, "BLOCK", 7)
    monkeypatch.setattr(dependence, "BLOCK", 7)
    for key, score in scored(ward, other, bootstrap=5).items():
        assert (score.value, score.low, score.high) == pytest.approx(
            (whole[key].value, whole[key].low, whole[key].high)
        )


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 1000),
    st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([1, 10, 30]),
)
def test_whatever_is_missing_there_is_a_number_or_a_sentence(seed: int, rate: float, steps: int, stays: int) -> None:
    rng = np.random.default_rng(seed)
    features = (X, Feature("y", "continuous"), Feature("z", "categorical", classes=(1, 2, 3)))
    died = Feature("died", "binary", "static", role="label")

    def some(missing: float) -> Cohort:
        values = {f: rng.integers(0, 3, (stays, steps)).astype(float) for f in features}
        holes = {f: np.where(rng.random(v.shape) < missing, np.nan, v) for f, v in values.items()}
        return cohort(holes, {died: rng.integers(0, 2, stays).astype(float)})

    for score in fidelity(some(0.3), some(rate), bootstrap=20, seed=0):
        assert math.isnan(score.value) == bool(score.note)
        assert math.isnan(score.low) or score.low <= score.high


def test_the_same_seed_gives_the_same_intervals(ward: Cohort) -> None:
    other = simulate(300, steps=12, seed=4)
    first, second = (fidelity(ward, other, bootstrap=20, seed=5) for _ in range(2))
    assert first == second
    assert first != fidelity(ward, other, bootstrap=20, seed=6)
    assert all(score.low <= score.high for score in first)


def test_a_feature_never_observed_is_not_a_number_but_a_sentence(ward: Cohort) -> None:
    empty = with_series(ward, sbp=np.full((400, 12), np.nan))
    for real, synthetic, which in ((ward, empty, "synthetic"), (empty, ward, "real")):
        scores = scored(real, synthetic)
        for what in ("ks", "wasserstein", "mean", "sd", "out_of_range"):
            assert math.isnan(scores[what, "sbp"].value)
            assert f"missing in the {which} cohort" in scores[what, "sbp"].note
        assert scores["correlation", None].value > 0.01  # a feature that is not there correlates with nothing
    assert abs(scored(ward, empty)["missing", "sbp"].value) > 0.8


def test_a_constant_feature_has_no_unit() -> None:
    scores = scored(cohort({X: np.ones((20, 4))}), cohort({X: noise(20, 4)}))
    assert {what for (what, _), s in scores.items() if "no SD" in s.note} == {"wasserstein", "mean", "sd"}
    assert scores["ks", "x"].value > 0.5


def test_a_label_of_one_class_is_a_sentence(ward: Cohort) -> None:
    alive = replace(ward, static={**ward.static, "died": np.zeros(400)})
    score = scored(ward, alive)["label_association", None]
    assert math.isnan(score.value)
    assert "fewer than 2 classes in the synthetic cohort" in score.note


def test_fewer_than_ten_stays_give_no_number(ward: Cohort) -> None:
    whole, few = scored(ward, ward), ward.take(np.arange(9))
    for scores in (scored(few, ward), scored(ward, few)):
        assert scores.keys() == whole.keys()
        assert all(math.isnan(s.value) and "fewer than 10 stays" in s.note for s in scores.values())


def test_few_stays_with_a_value_are_not_counted_out(ward: Cohort) -> None:
    rare = ward.series["sbp"].copy()
    rare[7:] = np.nan
    note = scored(with_series(ward, sbp=rare), ward)["ks", "sbp"].note
    assert "fewer than 10 stays" in note
    assert "7" not in note


def test_cohorts_of_different_steps_are_refused(ward: Cohort) -> None:
    with pytest.raises(TimeDiffError, match="12 steps and the synthetic one 8"):
        fidelity(ward, ward.horizon(8), bootstrap=0, seed=0)


def test_groups_of_a_class_and_of_quartiles_share_out_the_stays(ward: Cohort) -> None:
    train = simulate(400, steps=12, seed=9)
    assert [name for name, _ in groups(ward, "sex", train)] == ["sex = F", "sex = M"]
    bands = groups(train, "age", train)
    assert [name.split()[1] for name, _ in bands][::3] == ["below", f"{np.quantile(train.static['age'], 0.75):.4g}"]
    assert all(80 <= mask.sum() <= 120 for _, mask in bands)
    for feature in ("sex", "age"):
        assert (np.sum([mask for _, mask in groups(ward, feature, train)], axis=0) == 1).all()


def test_stays_without_a_value_are_a_group_of_their_own() -> None:
    age = Feature("age", "continuous", "static")
    some = cohort({X: noise(40, 2)}, {age: np.where(np.arange(40) < 12, np.nan, np.arange(40.0))})
    *_, (name, mask) = groups(some, "age", some)
    assert name == "age missing"
    assert mask.sum() == 12


def test_groups_need_a_static_feature(ward: Cohort) -> None:
    with pytest.raises(TimeDiffError, match="Choose one of age, sex, died"):
        groups(ward, "sbp", ward)


def test_a_fault_in_one_group_is_seen_in_that_group(ward: Cohort) -> None:
    men = ward.static["sex"] == 1
    pulse = ward.series["heart_rate"] + np.where(men, 20.0, 0.0)[:, None]
    scores = fidelity_by_group(ward, ward, with_series(ward, heart_rate=pulse), "sex", bootstrap=0, seed=0)
    shift = {s.group: s.value for s in scores if (s.what, s.feature) == ("mean", "heart_rate")}
    assert shift["sex = F"] == pytest.approx(0)
    assert shift["sex = M"] > 1
    assert all(score.feature != "sex" for score in scores)


@pytest.mark.parametrize(("count", "said"), [(5, "fewer than 10 stays"), (29, "29 stays")])
def test_small_groups_are_not_judged_and_the_smallest_not_counted(ward: Cohort, count: int, said: str) -> None:
    women = np.flatnonzero(ward.static["sex"] == 0)[:count]
    real = ward.take(np.concatenate([women, np.flatnonzero(ward.static["sex"] == 1)]))
    scores = fidelity_by_group(ward, real, ward, "sex", bootstrap=0, seed=0)
    [score] = [score for score in scores if score.group == "sex = F"]
    assert math.isnan(score.value)
    assert said in score.note
    assert len(scores) > 10
