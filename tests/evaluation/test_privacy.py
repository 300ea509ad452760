"""Nearest neighbours are exact for all inputs; NNAA and MIR have the authors' numbers and see what they should see."""

import importlib
import json
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from timediff.data.cohort import Cohort
from timediff.data.overlap import overlapping_windows, shared_patients
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.inputs.view import Protocol, View
from timediff.evaluation.metrics.copies import copied, copies
from timediff.evaluation.metrics.mir import NUMBERS as MIR
from timediff.evaluation.metrics.mir import mir
from timediff.evaluation.metrics.nnaa import NUMBERS as NNAA
from timediff.evaluation.metrics.nnaa import nnaa
from timediff.evaluation.registry import METRICS
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.statistics import neighbours
from timediff.evaluation.statistics.bootstrap import bootstrap
from timediff.evaluation.statistics.neighbour_sets import StayRows
from timediff.evaluation.statistics.neighbours import nearest, nearest_both
from timediff.sources.simulated import simulate

# Computed once with the authors' implementation, for 60 points a set in five dimensions.
GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "privacy.json").read_text())

Rows = npt.NDArray[Any]
Privacy = Callable[..., list[Score]]


def brute_force(a: Rows, b: Rows, exclude_self: bool = False) -> Rows:
    difference = a.astype(np.float64)[:, None] - b.astype(np.float64)[None]
    distances = np.sqrt((difference**2).sum(axis=2))
    if exclude_self:
        np.fill_diagonal(distances, np.inf)
    return np.asarray(distances.min(axis=1, initial=np.inf))


def normal(count: int, seed: int, columns: int = 6) -> Rows:
    return np.random.default_rng(seed).standard_normal((count, columns)).astype(np.float32)


def halves(count: int) -> tuple[Rows, Rows]:
    order = np.random.default_rng(9).permutation(count)
    return order[: count // 2], order[count // 2 :]


def by_what(scores: list[Score]) -> dict[str, Score]:
    return {score.what: score for score in scores}


# Few different numbers make duplicates and ties; offsets and tiny steps make products lose their digits.
NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 1e-3, 3.0, 1e4, 1e4 + 1 / 64, -1e4, 1e-20, 1e25])
PLAIN = st.floats(-1e4, 1e4, width=32)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Rows, Rows]:
    columns = draw(st.integers(1, 5))
    numbers = draw(st.sampled_from([NUMBERS, PLAIN]))
    offset = draw(st.sampled_from([0.0, 1e4]))
    row = st.lists(numbers, min_size=columns, max_size=columns)
    a, b = (np.array(draw(st.lists(row, min_size=1, max_size=14)), np.float32) + np.float32(offset) for _ in range(2))
    if draw(st.booleans()):
        b[:, 0] = a[:, :1].max()  # a constant column
    if draw(st.booleans()):
        b = np.concatenate([b, a[: len(a) // 2 + 1]])  # copies
    return a, b


@settings(deadline=None, max_examples=150)
@given(tables(), st.integers(1, 20))
def test_nearest_is_brute_force(both: tuple[Rows, Rows], block: int) -> None:
    a, b = both
    forth, back = nearest_both(a, b, block=block)
    np.testing.assert_allclose(forth, brute_force(a, b), rtol=1e-8)
    np.testing.assert_allclose(back, brute_force(b, a), rtol=1e-8)
    np.testing.assert_allclose(nearest(a, b, block=block), brute_force(a, b), rtol=1e-8)
    np.testing.assert_allclose(nearest(b, b, exclude_self=True, block=block), brute_force(b, b, True), rtol=1e-8)


@settings(deadline=None, max_examples=50)
@given(tables())
def test_a_copy_has_distance_exactly_zero(both: tuple[Rows, Rows]) -> None:
    a, b = both
    forth, back = nearest_both(a, np.concatenate([b, a]))
    assert (forth == 0).all()
    assert (back[len(b) :] == 0).all()


def test_block_size_changes_nothing() -> None:
    a, b = normal(100, 0, 40), normal(77, 1, 40)
    whole = nearest_both(a, b)
    for block in (1, 7, 64, 77, 1000):
        for expected, found in zip(whole, nearest_both(a, b, block=block), strict=True):
            np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(nearest(a, b, block=block), whole[0])


def test_near_copies_in_a_crowd_far_from_zero() -> None:
    """More rows closer together than the product can tell apart, in float32 or float64."""
    steps = np.arange(50, dtype=np.float32)[:, None] * np.float32(1e-6)
    crowd = np.concatenate([np.full_like(steps, 1e5), steps], axis=1)
    rows = np.concatenate([crowd, -crowd])
    np.testing.assert_allclose(nearest(rows, rows, exclude_self=True), brute_force(rows, rows, True), rtol=1e-8)
    assert (nearest(rows, rows) == 0).all()


def test_rounding_as_large_as_the_gaps_between_neighbours() -> None:
    """The product ranks neighbours wrongly here, without any sign of it in its own numbers."""
    side = np.where(np.arange(600) % 2, 1000, -1000).astype(np.float32)[:, None]
    rows = normal(600, 0, 50) + side
    np.testing.assert_allclose(nearest(rows, rows, exclude_self=True), brute_force(rows, rows, True), rtol=1e-8)


def test_wide_rows_need_float32_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slow ways are for near copies and ties: without any, the product in float32 settles nearly every row."""
    asked: list[tuple[torch.dtype, int]] = []
    search = neighbours._search

    def counted(x: torch.Tensor, y: torch.Tensor, dtype: torch.dtype, *rest: Any, **more: Any) -> Any:
        asked.append((dtype, len(x)))
        return search(x, y, dtype, *rest, **more)

    monkeypatch.setattr(neighbours, "_search", counted)
    nearest(normal(500, 0, 1000), normal(500, 1, 1000))
    assert sum(count for dtype, count in asked if dtype == torch.float64) <= 25


def test_nothing_to_be_near_to() -> None:
    one = normal(1, 0)
    assert nearest(one, one, exclude_self=True).tolist() == [math.inf]
    assert nearest(one, one[:0]).tolist() == [math.inf]
    assert nearest(one[:0], one).shape == (0,)


def test_what_cannot_be_compared_is_refused() -> None:
    rows = normal(5, 0)
    with pytest.raises(TimeDiffError, match="fill missing values"):
        nearest(rows, np.where(rows > 0, np.nan, rows))
    with pytest.raises(ValueError, match="same columns"):
        nearest(rows, rows[:, 1:])
    with pytest.raises(ValueError, match="a set with itself"):
        nearest(rows, rows[1:], exclude_self=True)


def test_precision_of_products_is_left_as_it_was() -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        nearest(normal(5, 0), normal(5, 1))
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision(before)


def test_golden_nnaa_and_mir() -> None:
    sets = [np.array(GOLDEN[name]) for name in ("train", "test", "synthetic")]
    for typed in (sets, [rows.astype(np.float32) for rows in sets]):
        found = by_what(nnaa(*typed, seed=0))
        for what in ("aa_train", "aa_test", "nnaa"):
            assert found[what].value == pytest.approx(GOLDEN[what], abs=1e-6)
        attack = by_what(mir(*typed, threshold=GOLDEN["mir_threshold"], seed=0))
        assert attack["f1"].value == pytest.approx(GOLDEN["mir_f1"], abs=1e-6)


def test_training_set_as_synthetic_is_found() -> None:
    train, test = normal(300, 0), normal(300, 1)
    found = by_what(nnaa(train, test, train, apart=halves(300), seed=0))
    assert found["aa_train"].value == 0
    assert found["nnaa"].value == found["aa_test"].value > 0.4
    assert found["nearer_training"].value == 1
    assert found["nearer_training"].floor == pytest.approx(0.5, abs=0.1)
    attack = by_what(mir(train, test, train, apart=halves(300), seed=0))
    assert attack["auc"].value == 1
    assert attack["tpr"].value == 1
    assert attack["auc"].floor == pytest.approx(0.5, abs=0.1)
    assert attack["f1"].value > attack["no_leak_f1"].value + 0.1


def test_fresh_stays_leak_nothing() -> None:
    train, test, fresh = (normal(600, seed) for seed in range(3))
    found = by_what(nnaa(train, test, fresh, seed=0))
    for what in ("aa_train", "aa_test", "nearer_training"):
        assert found[what].value == pytest.approx(0.5, abs=0.05)
        assert found[what].low < 0.5 < found[what].high
    assert found["nnaa"].value < 0.04
    assert found["nnaa"].low == 0
    attack = by_what(mir(train, test, fresh, seed=0))
    assert attack["auc"].value == pytest.approx(0.5, abs=0.05)
    assert attack["auc"].low < 0.5 < attack["auc"].high
    assert copied(train, test, fresh)[0].value == 0


def test_leaking_a_tenth_is_seen() -> None:
    train, test, fresh = (normal(500, seed) for seed in range(3))
    leaking = np.concatenate([fresh[:450], train[:50]])
    share = copied(train, test, leaking, seed=0)[0]
    assert share.value == copies(train, leaking) == 0.1
    assert 0.05 < share.low < 0.1 < share.high < 0.15
    assert share.floor == 0
    honest, caught = (by_what(nnaa(train, test, rows, seed=0))["aa_train"].value for rows in (fresh, leaking))
    assert caught < honest - 0.05


@pytest.mark.parametrize("count", [8, 60])
def test_as_many_copies_as_chance_gives_are_no_excess(count: int) -> None:
    """Of 2 · count rows that equal training rows by chance, the number that is synthetic is hypergeometric."""
    train, rng = normal(300, 0), np.random.default_rng(count)
    alike, others = train[: 2 * count], normal(600 - 2 * count, 1)
    alarms = 0
    for _ in range(300):
        rows = np.concatenate([alike, others])[rng.permutation(600)]
        alarms += copied(train, rows[:300], rows[300:])[0].excess() > 0
    assert alarms <= 3  # at 1 in 1,000; more are less likely than 1 in 3,000
    few, many = alike[: count // 2], np.concatenate([alike, train[200:260]])
    assert copied(train, np.concatenate([few, others]), np.concatenate([many, others]))[0].excess() > 0


def test_one_copy_is_an_excess_where_no_held_out_stay_is_one() -> None:
    train, test, fresh = (normal(300, seed) for seed in range(3))
    assert copied(train, test, np.concatenate([fresh, train[:1]]))[0].excess() > 0
    assert copied(train, test, fresh)[0].excess() == 0


def test_stays_with_hardly_a_value_are_no_copies() -> None:
    """Two of three stays have no measurement at all, as synthetic as real ones; all are told, and none is a copy."""
    cohort = simulate(300, steps=12, seed=3)
    empty = np.arange(300) % 3 > 0
    series = {n: np.where(empty[:, None] & (v == v), np.nan, v) for n, v in cohort.series.items()}
    bare = replace(cohort, series=series, stay_id=np.arange(300))
    parts = [bare.take(np.arange(i, 300, 3)[:60]) for i in range(3)]
    scores = METRICS("copies").measure(Measurement(Case(parts[1], parts[2], EvaluationSettings()), parts[1]))
    (score,) = (one for one in scores if isinstance(one, Score))
    assert score.value == score.excess() == 0
    assert "60 more equal a training stay" in score.note


def test_copies_are_of_whole_rows_and_zero_has_no_sign() -> None:
    train = np.array([[0.0, 1.0], [2.0, 3.0]], np.float32)
    rows = np.array([[-0.0, 1.0], [2.0, 1.0], [2.0, np.nextafter(np.float32(3), np.float32(4))], [2, 3]], np.float32)
    assert copies(train, rows) == 0.5
    assert copies(train, rows) == (nearest(rows, train) == 0).mean()
    assert copied(np.repeat(train, 10, 0), np.repeat(rows, 5, 0), np.repeat(train, 10, 0))[0].floor == 0.5


def test_ties_count_half_for_nearness_and_not_at_all_for_accuracy() -> None:
    same = normal(40, 0)
    found = by_what(nnaa(same, same.copy(), normal(40, 1), seed=0))
    assert found["nearer_training"].value == 0.5
    assert found["nnaa"].value == 0
    rows = np.zeros((40, 3), np.float32)
    assert by_what(nnaa(rows, rows, rows, seed=0))["aa_train"].value == 0


def test_mir_by_hand() -> None:
    synthetic = np.zeros((20, 1), np.float32)
    train = np.repeat(np.array([0.0, 0.1, 1.0, 1.0], np.float32), 5)[:, None]
    test = np.repeat(np.array([0.2, 1.0, 1.0, 2.0], np.float32), 5)[:, None]
    found = by_what(mir(train, test, synthetic, threshold=0.08, seed=0))
    assert found["tpr"].value == 0.5  # squares 0, .01, 1, 1
    assert found["fpr"].value == 0.25  # squares .04, 1, 1, 4, scaled 0, .24, .24, 1
    assert found["f1"].value == pytest.approx(2 * 0.5 / 1.75)
    assert found["no_leak_f1"].value == pytest.approx(0.375 / 0.875)
    assert found["auc"].value == pytest.approx((4 + 4 + 2 * (1 + 2 / 2)) / 16)


def test_mir_of_equal_sets_draws_synthetic_stays_too_and_is_the_mean_over_its_repetitions() -> None:
    train, test, synthetic = normal(100, 0), normal(60, 1), normal(300, 2)
    options: dict[str, Any] = {"threshold": 0.2, "seed": 0, "equal": True}
    (once, *_), (mean, *_) = (mir(train, test, synthetic, repetitions=r, **options) for r in (1, 4))
    assert (once.n, mean.n) == (60, 60)
    assert once.std == {}
    assert mean.std["classifier"] > 0
    assert once.value != mir(train, test, synthetic, threshold=0.2, seed=0)[0].value  # there all 300 are shown
    alike = mir(train[:60], test, synthetic[:60], repetitions=4, **options)
    assert alike == mir(train[:60], test, synthetic[:60], threshold=0.2, seed=0)


@pytest.mark.parametrize(("protocol", "asked"), [("paper", (5, True)), ("strict", (1, False))])
def test_mir_is_repeated_with_equal_sets_in_the_papers_protocol_alone(
    protocol: Protocol, asked: tuple[int, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, bool]] = []

    def noted(*sets: object, repetitions: int, equal: bool, **rest: object) -> list[Score]:
        seen.append((repetitions, equal))
        return []

    monkeypatch.setattr(importlib.import_module("timediff.evaluation.metrics.mir"), "mir", noted)
    icu = simulate(200, steps=4, seed=0)
    settings = EvaluationSettings(protocol=protocol, repetitions=5)
    METRICS("mir").measure(Measurement(Case(icu.take(np.arange(120)), icu.take(np.arange(120, 200)), settings), icu))
    assert seen == [asked]


@pytest.mark.parametrize("name", ["copies", "near_copies"])
def test_copies_are_looked_for_alike_in_both_protocols(name: str) -> None:
    """Where each cohort was scaled by itself, none would be found."""
    icu = simulate(300, steps=6, seed=0)
    train, test = icu.take(np.arange(150)), icu.take(np.arange(150, 300))
    found = []
    for protocol in ("paper", "strict"):
        case = Case(train, test, EvaluationSettings(protocol=protocol))
        found.append(METRICS(name).measure(Measurement(case, train.take(np.arange(60)))))
    assert found[0] == found[1]


@pytest.mark.parametrize("privacy", [nnaa, mir, copied])
def test_a_seed_gives_the_same_scores_with_intervals_around_them(privacy: Privacy) -> None:
    train, test, synthetic = normal(150, 0), normal(80, 1), normal(120, 2)
    options = {} if privacy is copied else {"apart": halves(150)}
    scores = privacy(train, test, synthetic, seed=3, **options)
    assert scores == privacy(train, test, synthetic, seed=3, **options)
    for score in scores:
        assert score.low <= score.value <= score.high
        assert score.floor_low <= score.floor <= score.floor_high
        assert score.n in (75, 120)
    assert scores != privacy(train, test, synthetic, seed=4, **options) or privacy is copied


def test_the_training_cohort_itself_is_found_also_where_fewer_stays_are_held_out() -> None:
    rng = np.random.default_rng(0)
    train, test = rng.normal(size=(300, 4)), rng.normal(size=(60, 4))
    found = {score.what: score.value for score in nnaa(train, test, train, seed=0, repetitions=3)}
    assert found["aa_train"] == 0
    assert found["nearer_training"] == 1


def test_repetitions_draw_subsets_only_where_there_is_a_choice() -> None:
    train, test, synthetic = normal(200, 0), normal(60, 1), normal(60, 2)
    varied = by_what(nnaa(train, test, synthetic, seed=0, repetitions=3))
    assert varied["aa_train"].std["classifier"] > 0
    assert varied["aa_test"].std["classifier"] == 0
    assert varied["aa_train"].n == 60
    alike = nnaa(train[:60], test, synthetic, seed=0, repetitions=3)
    assert all(score.std == {} for score in alike)


@pytest.mark.parametrize(("privacy", "whats"), [(nnaa, NNAA), (mir, MIR), (copied, ("share",))])
def test_too_few_stays(privacy: Privacy, whats: tuple[str, ...]) -> None:
    scores = privacy(normal(50, 0), normal(19, 1), normal(50, 2))
    assert tuple(score.what for score in scores) == whats
    for score in scores:
        assert math.isnan(score.value)
        assert score.note == "needs at least 20 held-out stays, and there are 19."


@pytest.mark.parametrize("name", ["nnaa", "mir"])
def test_too_few_training_stays_for_a_floor_only(name: str) -> None:
    icu = simulate(200, steps=4, seed=0)
    train, test = icu.take(np.arange(39)), icu.take(np.arange(39, 100))
    for score in METRICS(name).measure(Measurement(Case(train, test, EvaluationSettings()), icu)):
        assert isinstance(score, Score)
        assert not math.isnan(score.value)
        assert math.isnan(score.floor)
        assert score.note.startswith("no floor: it needs training stays enough for two parts of 20")


@pytest.mark.parametrize("name", ["nnaa", "mir"])
@pytest.mark.parametrize("sizes", [(300, 100, 300), (300, 200, 60), (120, 200, 500), (100, 400, 100)])
def test_a_floor_is_of_sets_as_large_as_those_beside_it(
    name: str, sizes: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the sizes, and it has as much to do with the training stays as a perfect generator would."""
    home, compared, seen = importlib.import_module(f"timediff.evaluation.metrics.{name}"), set(), []

    def noted(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda a, b, **options: compared.add((len(a), len(b))) or function(a, b, **options)

    def bootstrap_of_what_was_compared(draw: Callable[[], Any], count: int) -> Any:
        seen.append(set(compared))
        compared.clear()
        return bootstrap(draw, count)

    for function in (nearest, nearest_both):
        monkeypatch.setattr(neighbours, function.__name__, noted(function))
    monkeypatch.setattr(home, "bootstrap", bootstrap_of_what_was_compared)
    icu = simulate(sum(sizes), steps=4, seed=0)
    ends = np.cumsum([0, *sizes])
    train, test, synthetic = (icu.take(np.arange(a, b)) for a, b in pairwise(ends))
    METRICS(name).measure(Measurement(Case(train, test, EvaluationSettings(repetitions=2)), synthetic))
    main, floor = seen
    assert main == floor
    assert len(main) == 1


def test_the_floors_parts_share_no_patient_and_no_step() -> None:
    icu = simulate(300, steps=4, seed=0)
    features = (*icu.schema.features, Feature("patient", "categorical", "static", role="patient"))
    patient = np.random.default_rng(0).integers(0, 90, 300)
    wards = replace(icu, schema=replace(icu.schema, features=features), static={**icu.static, "patient": patient})
    windows = series(600)
    for whole in (wards, windows):
        parts = Case(whole, whole.take(np.arange(100)), EvaluationSettings()).apart
        assert parts is not None
        first, second = map(whole.take, parts)
        assert shared_patients(first, second) == overlapping_windows(first, second) == 0
        assert len(first) == pytest.approx(100, abs=15)
        assert len(first) + len(second) > 0.8 * len(whole)


def series(count: int) -> Cohort:
    schema = Schema((Feature("x", "continuous"), Feature("start", "continuous", "static", role="order")), 4)
    start = np.arange(count, dtype=np.float64)
    return Cohort(schema, np.arange(count), {"x": np.sin(start[:, None] + np.arange(4))}, {"start": start})


def test_stays_of_one_patient_widen_the_intervals() -> None:
    """Four equal stays a patient: intervals as of a quarter of the stays."""
    train, test, rows = normal(400, 0), normal(400, 1), normal(400, 2)
    units = np.repeat(np.arange(100), 4)

    def width(units: Rows) -> float:
        flags = np.repeat(train[::4], 4, axis=0) if units.max() < 399 else train
        copied_rows = np.where((np.arange(400) // 4 % 2 == 0)[:, None], flags, rows)
        score = copied(flags, test, StayRows(copied_rows, units))[0]
        return score.high - score.low

    assert width(units) == pytest.approx(2 * width(np.arange(400)), rel=0.15)


def test_on_a_cohort() -> None:
    """Through the view of classifiers, with masks, where many rows tie in some columns."""
    icu = simulate(600, steps=8, seed=0)
    train, test, fresh = (icu.take(np.arange(start, start + 200)) for start in (0, 200, 400))
    view = View.fit(train)
    rows = [view.flat(cohort) for cohort in (train, test, fresh)]
    assert by_what(nnaa(*rows, seed=0))["nnaa"].value < 0.12
    masks = view.masks.flat(train)
    expected = brute_force(masks, masks, True)
    np.testing.assert_allclose(nearest(masks, masks, exclude_self=True), expected, rtol=1e-8)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_cuda_is_the_cpu() -> None:
    a, b = normal(3000, 0, 100) + 1e3, normal(2500, 1, 100) + 1e3
    for here, there in zip(nearest_both(a, b), nearest_both(a, b, device="cuda"), strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-12)
    assert (nearest(a, a, device="cuda") == 0).all()
