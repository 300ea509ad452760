"""Usefulness: statistics of a stay, areas under curves, and classifiers trained on synthetic and on real stays."""

import builtins
import importlib
import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats
from sklearn.metrics import roc_auc_score

from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.classifiers import label_classifiers as classifiers
from timediff.evaluation.classifiers.label_classifiers import ALL, CLASSICAL, Trained
from timediff.evaluation.classifiers.training_parts import LARGEST, PARTS, TrainingParts
from timediff.evaluation.inputs.summaries import STATISTICS, Inputs, mode, statistics, summaries
from timediff.evaluation.inputs.view import View
from timediff.evaluation.metrics.tsrtr import tsrtr
from timediff.evaluation.metrics.tstr import about, shuffled, tstr, tstr_by_group
from timediff.evaluation.registry import METRICS
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.statistics.auc import auroc
from timediff.evaluation.statistics.bootstrap import resamples
from timediff.evaluation.statistics.subsets import stratified
from timediff.runtime.seeding import stream
from timediff.sources.simulated import simulate

NAN = np.nan
TRAIN, TEST, SYNTHETIC = (simulate(300, steps=6, seed=seed) for seed in (0, 1, 2))
VIEW = View.fit(TRAIN)
QUICK = ("random forest", "logistic L2")

rows = arrays(np.float64, (4, 7), elements=st.sampled_from([NAN, -2.0, 0.0, 0.1, 1.0, 3.0]))


def labelled(cohort, died):
    return replace(cohort, static={**cohort.static, "died": np.asarray(died, float)})


def by_key(scores):
    return {(score.classifier, score.what): score for score in scores}


@given(rows)
def test_the_mode_is_scipys(values):
    expected = [stats.mode(row[~np.isnan(row)]).mode if (~np.isnan(row)).any() else NAN for row in values]
    assert np.array_equal(mode(values), expected, equal_nan=True)


@given(rows)
def test_the_other_statistics_are_numpys_and_scipys(values):
    for row, found in zip(values, statistics(values), strict=True):
        known = row[~np.isnan(row)]
        got = dict(zip(STATISTICS, found, strict=True))
        if len(known) == 0:
            assert np.isnan(found).all()
            continue
        assert got["first"] == known[0]
        assert got["minimum"] == known.min()
        assert got["maximum"] == known.max()
        assert got["range"] == np.ptp(known)
        assert got["mean"] == pytest.approx(known.mean())
        assert got["standard deviation"] == pytest.approx(known.std(), abs=1e-12)
        if np.ptp(known) == 0:
            assert math.isnan(got["skewness"])
            assert got["standard deviation"] == 0
        else:
            assert got["skewness"] == pytest.approx(stats.skew(known), abs=1e-9)


def test_a_summary_has_eight_columns_a_series_and_the_static_values_but_no_label():
    values, names = summaries(TRAIN)
    assert values.shape == (300, 7 * 8 + 2)
    assert values.dtype == np.float32
    assert names[:8] == [f"heart_rate, {statistic}" for statistic in STATISTICS]
    assert names[-2:] == ["age", "sex = M"]


@pytest.mark.parametrize("kind", ["flattened", "summary"])
def test_inputs_are_standardised_by_training_stays_and_do_not_hold_the_label(kind):
    inputs = Inputs.fit(TRAIN, kind, "strict")
    seen = inputs.of(TRAIN) if kind == "summary" else inputs.of(TRAIN)[:, -2:]  # the view scales the other channels
    assert np.allclose(seen.mean(axis=0), 0, atol=1e-4)
    assert (seen.std(axis=0) < 1 + 1e-4).all()  # less where a gap was filled
    assert np.allclose(seen[:, -2:].std(axis=0), 1, atol=1e-4)
    assert np.isfinite(inputs.of(TEST)).all()
    assert np.array_equal(inputs.of(TEST), inputs.of(labelled(TEST, 1 - TEST.label)))


@pytest.mark.parametrize("kind", ["flattened", "summary"])
def test_inputs_of_the_paper_have_minus_one_for_a_null_no_masks_and_no_label(kind):
    rows = Inputs.fit(TRAIN, kind, "paper").of(TEST)
    columns = 7 * (6 if kind == "flattened" else len(STATISTICS))
    assert rows.shape == (300, columns + 2)
    if kind == "flattened":
        expected = np.concatenate([[values[0]] for values in TEST.series.values()]).T  # (L, P), the first stay
        assert np.allclose(rows[0, :columns].reshape(6, 7), np.nan_to_num(expected, nan=-1), atol=1e-4)
    else:
        raw = summaries(TEST)[0][:, :columns]
        several = np.repeat([(~np.isnan(values)).sum(axis=1) > 1 for values in TEST.series.values()], 8, axis=0).T
        assert np.allclose(rows[:, :columns], np.where(several, np.nan_to_num(raw, nan=-1), -1))
    assert np.array_equal(rows, Inputs.fit(TRAIN, kind, "paper").of(labelled(TEST, 1 - TEST.label)))


def test_a_static_value_is_seen_once_whatever_the_protocol():
    older = replace(TEST, static={**TEST.static, "age": TEST.static["age"] + 1})
    for protocol in ("paper", "strict"):
        inputs = Inputs.fit(TRAIN, "flattened", protocol)
        assert (inputs.of(TEST) != inputs.of(older)).any(axis=0).sum() == 1


def test_a_feature_that_was_never_observed_is_zero():
    empty = replace(TRAIN, series={**TRAIN.series, "sbp": np.full((300, 6), NAN)})
    values, names = summaries(empty)
    columns = [name.startswith("sbp") for name in names]
    assert np.isnan(values[:, columns]).all()
    assert (Inputs.fit(empty, "summary").of(TRAIN)[:, columns] != 0).any()  # a mean of 0, a scale of 1
    assert (Inputs.fit(empty, "summary").of(empty)[:, columns] == 0).all()
    assert (Inputs.fit(TRAIN, "summary").of(empty)[:, columns] == 0).all()


@given(
    arrays(np.int64, 12, elements=st.integers(0, 1)),
    arrays(np.float64, 12, elements=st.sampled_from([0.0, 0.2, 0.5, 0.9])),
    arrays(np.int64, 12, elements=st.integers(0, 3)),
)
def test_the_area_is_scikit_learns_with_ties_and_weights(y, score, weight):
    scores = np.stack([1 - score, score], axis=1)
    found = auroc(y, scores, np.stack([np.ones(12), weight]))
    for area, w in zip(found, (np.ones(12), weight), strict=True):
        if len(np.unique(y[w > 0])) < 2:
            assert math.isnan(area)
        else:
            assert area == pytest.approx(roc_auc_score(y, score, sample_weight=w))


def test_the_area_of_three_classes_is_the_mean_of_one_against_the_rest():
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 3, 60), rng.dirichlet(np.ones(3), 60)
    assert auroc(y, scores, np.ones((1, 60)))[0] == pytest.approx(roc_auc_score(y, scores, multi_class="ovr"))


def test_a_bootstrap_sample_has_as_many_stays():
    weights = resamples(50, 20, np.random.default_rng(0))
    assert weights.shape == (21, 50)
    assert (weights[0] == 1).all()
    assert (weights.sum(axis=1) == 50).all()


@pytest.mark.parametrize("name", ALL)
def test_a_classifier_is_the_same_with_the_same_seed_and_knows_classes_by_number(name):
    x = VIEW.series(TRAIN) if name in classifiers.RECURRENT else Inputs.fit(TRAIN).of(TRAIN)
    y = np.where(TRAIN.label == 1, 3, 1)
    first = classifiers.train(name, x, y, 4, seed=5)(x)
    torch.manual_seed(1)  # whatever others draw
    state = torch.get_rng_state()
    again = classifiers.train(name, x, y, 4, seed=5)(x)
    assert torch.equal(state, torch.get_rng_state())
    assert first.shape == (300, 4)
    assert np.array_equal(first, again)
    assert np.allclose(first.sum(axis=1), 1)
    assert (first[:, [0, 2]] == 0).all()
    assert auroc(TRAIN.label, first[:, [1, 3]], np.ones((1, 300)))[0] > 0.7


def test_neither_threads_nor_for_most_the_seed_matter(monkeypatch):
    x = Inputs.fit(TRAIN).of(TRAIN)
    for name in CLASSICAL:
        two = classifiers.train(name, x, TRAIN.label, 2, seed=5)(x)
        monkeypatch.setattr(classifiers, "JOBS", 1)
        assert np.array_equal(two, classifiers.train(name, x, TRAIN.label, 2, seed=5)(x))
        other = classifiers.train(name, x, TRAIN.label, 2, seed=6)(x)
        assert (np.abs(two - other).max() > 0.01) == (name in classifiers.SEEDED)
        monkeypatch.setattr(classifiers, "JOBS", 2)


def test_synthetic_stays_that_are_the_training_stays_teach_the_same():
    scores = by_key(tstr(VIEW, TRAIN, TEST, TRAIN, seed=0, repetitions=2, bootstrap=20))
    assert len(scores) == 12 * 4 + 2 * 3
    for (classifier, what), score in scores.items():
        assert not score.note
        if what == "tstr":
            real = scores[classifier, "trtr"]
            assert (score.value, score.low, score.high) == (real.value, real.low, real.high)
            assert score.floor == real.value
        if what == "gap":
            assert (score.value, score.low, score.high) == (0, 0, 0)
    for kind in ("flattened", "summary"):
        five = [scores[f"{name}, {kind}", "tstr"].value for name in CLASSICAL]
        assert scores[f"mean of five, {kind}", "tstr"].value == pytest.approx(np.mean(five))
        gap = scores[f"mean of five, {kind}", "gap"]
        assert gap.floor == 0
        assert -gap.floor_low == gap.floor_high > 0


def test_a_label_that_the_series_tell_is_learnt_and_one_by_chance_is_not():
    rng = np.random.default_rng(0)
    tell = [labelled(c, np.nanmean(c.series["heart_rate"], axis=1) > 85) for c in (TRAIN, TEST, SYNTHETIC)]
    chance = [labelled(c, rng.permutation(c.label)) for c in tell]
    names = ("random forest", "logistic L1", "GRU")
    for score in tstr(VIEW, *tell, seed=0, repetitions=1, classifiers=names, bootstrap=50):
        if score.what != "gap":
            assert score.value > 0.9, score
            assert score.low <= score.value <= score.high
    for score in tstr(VIEW, *chance, seed=0, repetitions=1, classifiers=names, bootstrap=50):
        if score.what != "gap":
            assert abs(score.value - 0.5) < 0.15, score
            assert score.low <= score.value <= score.high


def test_trts_is_trtr_with_the_synthetic_stays_held_out():
    wrong = labelled(SYNTHETIC, 1 - SYNTHETIC.label)
    options = {"seed": 0, "repetitions": 1, "classifiers": QUICK, "inputs": ["summary"], "bootstrap": 0}
    found = by_key(tstr(VIEW, TRAIN, TEST, wrong, **options))
    expected = by_key(tstr(VIEW, TRAIN, wrong, wrong, **options))
    for name in QUICK:
        assert found[f"{name}, summary", "trts"].value == expected[f"{name}, summary", "trtr"].value < 0.5


def test_the_gap_is_paired_and_its_floor_is_what_other_real_stays_lose():
    wrong = labelled(SYNTHETIC, 1 - SYNTHETIC.label)
    options = {"seed": 0, "repetitions": 3, "classifiers": QUICK, "inputs": ("summary",)}
    scores = by_key(tstr(VIEW, TRAIN, TEST, wrong, **options))
    for name in QUICK:
        gap, real, synthetic = (scores[f"{name}, summary", what] for what in ("gap", "trtr", "tstr"))
        assert gap.value == pytest.approx(real.value - synthetic.value)
        assert synthetic.value < 0.5 < real.value
        assert 0 < gap.low <= gap.value <= gap.high
        assert gap.n == 300
        assert gap.std.keys() == ({"classifier"} if name in classifiers.SEEDED else set())
        assert gap.floor == 0
        assert 0 < -gap.floor_low == gap.floor_high < gap.value


def test_the_floor_of_the_mean_is_of_the_mean_after_each_part():
    options = {"seed": 0, "repetitions": 1, "classifiers": CLASSICAL, "inputs": ("summary",), "bootstrap": 0}
    scores = by_key(tstr(VIEW, TRAIN, TEST, SYNTHETIC, **options))
    sets = shuffled(TRAIN, 0, 300)
    x = Inputs.fit(TRAIN, "summary").of(sets)
    parts = TrainingParts.of(sets, 0)
    assert [len(one) for one in parts.positions] == [75] * PARTS
    areas = []
    for inside in parts.positions:
        of_five = []
        for name in CLASSICAL:
            seed = int(stream("evaluation", 0, classifiers.KEY, 0, 0).integers(2**31))
            model = classifiers.train(name, x[inside], sets.label[inside], 2, seed=seed)
            of_five.append(auroc(TEST.label, model(Inputs.fit(TRAIN, "summary").of(TEST)), np.ones((1, 300)))[0])
        areas.append(np.mean(of_five))
    expected = 1.96 * math.sqrt(2 * np.var(areas, ddof=1) / 4)
    assert scores["mean of five, summary", "gap"].floor_high == pytest.approx(expected)


def test_parts_share_no_patient_and_are_not_too_large():
    patients = np.repeat(np.arange(1500), 2)
    feature = Feature("patient", "categorical", "static", role="patient", classes=tuple(map(str, range(1500))))
    many = simulate(3000, steps=1, seed=0)
    schema = replace(many.schema, features=(*many.schema.features, feature))
    cohort = Cohort(schema, many.stay_id, many.series, {**many.static, "patient": patients})
    parts = TrainingParts.of(cohort, 0)
    assert parts.whole == 3000
    assert [len(one) for one in parts.positions] == [LARGEST] * PARTS
    for one, other in itertools.combinations(parts.positions, 2):
        assert not set(patients[one]) & set(patients[other])


def test_the_reach_is_that_of_two_sets_as_large_as_the_whole():
    # The mean of n numbers of variance 1 has variance 1 / n, so two of them differ by 1.96 √(2 / n) or less.
    numbers = np.random.default_rng(0).normal(size=(2000, 400))
    parts = TrainingParts([np.arange(400)[k::4] for k in range(4)], 400)
    found = [parts.reach(np.array([row[one].mean() for one in parts.positions])) ** 2 for row in numbers]
    assert np.mean(found) == pytest.approx(1.96**2 * 2 / 400, rel=0.05)
    smaller = TrainingParts([np.arange(40)[k::4] for k in range(4)], 400)  # a tenth of the stays, the rest unused
    found = [smaller.reach(np.array([row[one].mean() for one in smaller.positions])) ** 2 for row in numbers]
    assert np.mean(found) == pytest.approx(1.96**2 * 2 / 400, rel=0.05)


def test_parts_that_lack_a_class_give_no_floor():
    rare = labelled(TRAIN, np.arange(300) < 2)
    assert TrainingParts.of(rare, 0).positions == ()
    options = {"seed": 0, "repetitions": 1, "classifiers": ["logistic L2"], "inputs": ["summary"], "bootstrap": 5}
    gap = by_key(tstr(VIEW, rare, TEST, SYNTHETIC, **options))["logistic L2, summary", "gap"]
    assert not math.isnan(gap.value)
    assert math.isnan(gap.floor)


def test_training_sets_are_of_equal_size_and_real_classifiers_are_trained_once(monkeypatch):
    sizes = []
    train = classifiers.train

    def counted(name, x, *rest, **options):
        sizes.append(len(x))
        return train(name, x, *rest, **options)

    monkeypatch.setattr(classifiers, "train", counted)
    options = {"seed": 0, "repetitions": 1, "classifiers": ["logistic L2"], "inputs": ["summary"], "bootstrap": 0}
    real = Trained(TRAIN)
    small, large = SYNTHETIC.take(np.arange(200)), simulate(500, steps=6, seed=3)
    first = tstr(VIEW, TRAIN, TEST, small, **options, real=real)
    assert sizes == [200, 200, *[50] * PARTS]
    tstr(VIEW, TRAIN, TEST, large, **options, real=real)
    assert sizes[2 + PARTS :] == [300, 300, *[75] * PARTS]
    other = SYNTHETIC.take(np.arange(100, 300))
    second = tstr(VIEW, TRAIN, TEST, other, **options, real=real)
    assert sizes[4 + 2 * PARTS :] == [200]
    assert [s.value for s in second] == [s.value for s in tstr(VIEW, TRAIN, TEST, other, **options)]
    assert {s.what for s, t in zip(first, second, strict=True) if s.value == t.value} == {"trtr"}
    with pytest.raises(ValueError, match="another cohort"):
        tstr(VIEW, TRAIN, TEST, small, **options, real=Trained(TEST))


PAPER = View.fit(TRAIN, "paper")


def trainings(monkeypatch):
    """What is trained from now on: name, rows, classes and options."""
    seen, train = [], classifiers.train

    def noted(name, x, y, classes, **options):
        seen.append((name, x, np.asarray(y), options))
        return train(name, x, y, classes, **{**options, "updates": options.get("updates") and 3})

    monkeypatch.setattr(classifiers, "train", noted)
    return seen


def test_the_paper_trains_on_stratified_subsets_as_large_as_the_held_out_set(monkeypatch):
    seen = trainings(monkeypatch)
    test = TEST.take(np.arange(100))
    options = {"seed": 0, "repetitions": 3, "inputs": ["summary"], "bootstrap": 10}
    scores = by_key(tstr(PAPER, TRAIN, test, SYNTHETIC, classifiers=["logistic L2"], **options))
    assert [len(x) for _, x, _, _ in seen] == [100] * 6 + [300 // PARTS] * PARTS  # the last for the floor
    for start, cohort in ((0, SYNTHETIC), (3, TRAIN)):
        drawn = seen[start : start + 3]
        assert {int(y.sum()) for _, _, y, _ in drawn} == {round(100 * cohort.label.mean())}
        assert not np.array_equal(drawn[0][1], drawn[1][1])
    for what in ("tstr", "trtr", "gap"):  # each subset another number
        assert scores["logistic L2, summary", what].std["classifier"] > 0


def test_the_paper_scales_by_what_a_classifier_is_trained_on(monkeypatch):
    seen = trainings(monkeypatch)
    far = replace(SYNTHETIC, series={name: 5 * values + 7 for name, values in SYNTHETIC.series.items()})
    tstr(PAPER, TRAIN, TEST, far, seed=0, repetitions=1, classifiers=["logistic L2", "GRU"], bootstrap=0)
    for _, x, _, _ in seen:
        columns = tuple(range(x.ndim - 1))
        assert np.allclose(x.mean(axis=columns), 0, atol=1e-3)
        spread = x.std(axis=columns)
        assert np.allclose(spread[spread > 0], 1, atol=1e-3)
    rows = PAPER.unscaled.unlabelled.series(TRAIN)
    model = classifiers.train_as_the_authors("GRU", rows, TRAIN.label, 2, seed=0)
    moved = classifiers.train_as_the_authors("GRU", 3 * rows + 2, TRAIN.label, 2, seed=0)
    assert np.allclose(model(rows), moved(3 * rows + 2), atol=1e-3)


def test_recurrent_classifiers_of_the_paper_have_5000_updates_by_adamw(monkeypatch):
    seen, made = trainings(monkeypatch), []
    adamw = torch.optim.AdamW
    monkeypatch.setattr(torch.optim, "AdamW", lambda *a, **o: made.append(o) or adamw(*a, **o))
    tstr(PAPER, TRAIN, TEST.take(np.arange(100)), SYNTHETIC, seed=0, repetitions=1, classifiers=["GRU"], bootstrap=0)
    of_all, of_parts = [(300, 5000)] * 2, [(300 // PARTS, 5000)] * PARTS  # the parts for the floor
    assert [(len(x), options["updates"]) for _, x, _, options in seen] == of_all + of_parts
    assert made == [{"lr": 1e-3}] * (2 + PARTS)


@pytest.mark.parametrize("updates", [1, 4, 7])
def test_a_recurrent_classifier_has_as_many_updates_as_are_asked_for(updates, monkeypatch):
    taken, step = [], torch.optim.AdamW.step
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self, *a: taken.append(1) or step(self, *a))
    classifiers.train("GRU", VIEW.series(TRAIN), TRAIN.label, 2, seed=0, updates=updates)
    assert len(taken) == updates  # of 300 stays three are an epoch


def test_one_class_only_is_said_of_the_cohort_that_has_it():
    dead = labelled(SYNTHETIC, np.ones(300))
    options = {"seed": 0, "repetitions": 1, "classifiers": ["logistic L2"], "inputs": ["summary"]}
    scores = {s.what: s for s in tstr(VIEW, TRAIN, TEST, dead, **options)}
    assert scores["trtr"].value > 0.6
    for what in ("tstr", "trts", "gap"):
        assert math.isnan(scores[what].value)
        assert "no synthetic stays have died = 0 and about 300 synthetic stays have died = 1" in scores[what].note
    scores = {s.what: s for s in tstr(VIEW, TRAIN, labelled(TEST, np.zeros(300)), SYNTHETIC, **options)}
    assert scores["trts"].value > 0.6
    assert "held-out stays" in scores["gap"].note


def test_without_a_label_nothing_can_be_predicted():
    plain = Schema(tuple(f for f in TRAIN.schema.features if f.name != "died"), 6)
    bare = Cohort(plain, TRAIN.stay_id, TRAIN.series, {k: v for k, v in TRAIN.static.items() if k != "died"})
    view = View.fit(bare)
    for scores in (
        tstr(view, bare, bare, bare, seed=0, repetitions=1),
        tstr_by_group(view, bare, bare, bare, "sex", seed=0, repetitions=1),
        tsrtr(view, bare, bare, bare, seed=0),
    ):
        assert [math.isnan(score.value) for score in scores] == [True]
        assert "label" in scores[0].note


def test_stays_without_a_label_are_left_out():
    died = TRAIN.label.astype(float)
    died[:20] = NAN
    options = {"seed": 0, "repetitions": 1, "classifiers": ["logistic L2"], "inputs": ["summary"]}
    scores = tstr(VIEW, labelled(TRAIN, died), labelled(TEST, died), SYNTHETIC, **options)
    assert [score.n for score in scores] == [280] * 4


def test_three_classes_are_one_against_the_rest():
    feature = Feature("died", "categorical", "static", role="label", classes=("home", "ward", "dead"))
    schema = replace(TRAIN.schema, features=(*TRAIN.schema.features[:-1], feature))
    cohorts = []
    for cohort in (TRAIN, TEST, SYNTHETIC):
        rate = np.nanmean(cohort.series["heart_rate"], axis=1)
        cohorts.append(replace(labelled(cohort, np.digitize(rate, [80, 90])), schema=schema))
    scores = tstr(View.fit(cohorts[0]), *cohorts, seed=0, repetitions=1, inputs=["summary"], bootstrap=10)
    assert all(score.value > 0.75 for score in scores if score.what == "tstr"), scores


def test_without_xgboost_the_others_are_measured(monkeypatch):
    imported = builtins.__import__

    def without(name, *rest):
        if name == "xgboost":
            raise ImportError(name)
        return imported(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    scores = tstr(VIEW, TRAIN, TEST, SYNTHETIC, seed=0, repetitions=1, classifiers=CLASSICAL, inputs=["summary"])
    absent = {score.classifier for score in scores if "pip install 'timediff-icu[evaluate]'" in score.note}
    assert absent == {"XGBoost, summary", "mean of five, summary"}
    assert all(math.isnan(score.value) == (score.classifier in absent) for score in scores)


def test_shares_that_need_more_synthetic_stays_than_there_are_are_not_measured():
    synthetic = SYNTHETIC.take(np.arange(250))
    scores = tsrtr(VIEW, TRAIN, TEST, synthetic, seed=0, real=100, classifiers=["logistic L2"], bootstrap=20)
    found = {score.what: score for score in scores}
    known = {what for what, score in found.items() if not math.isnan(score.value)}
    assert known == {f"auc at {p} %" for p in (0, 10, 30, 50, 70)} | {f"auc, all real + {p} %" for p in (0, 10, 30)}
    assert found["auc at 90 %"].note == "needs 900 synthetic stays beside 100 real ones; there are 250."
    assert all("it is not known to be so" in found[what].note for what in known if what.startswith("auc at"))
    assert found["auc at 50 %"].floor == found["auc at 0 %"].value
    assert found["auc at 50 %"].low <= found["auc at 50 %"].value <= found["auc at 50 %"].high


def test_fewer_real_stays_than_asked_for_are_all_there_are():
    scores = tsrtr(
        VIEW, TRAIN, TEST, SYNTHETIC, seed=0, fractions=[0.5], classifiers=["logistic L2"], trained_on_these=True
    )
    found = {score.what: score for score in scores}
    assert found["auc at 50 %"].value == found["auc, all real + 50 %"].value
    note = "All 300 training stays, fewer than 2,000. The generator was trained on just these 300 real stays."
    assert found["auc at 50 %"].note == note


def test_real_stays_alone_in_tsrtr_are_trtr():
    options = {"seed": 0, "repetitions": 1, "classifiers": QUICK, "bootstrap": 20}
    alone = {s.classifier: s.value for s in tsrtr(VIEW, TRAIN, TEST, SYNTHETIC, **options) if s.what == "auc at 0 %"}
    real = tstr(VIEW, TRAIN, TEST, SYNTHETIC, **options, inputs=["flattened"])
    assert alone == {s.classifier: s.value for s in real if s.what == "trtr"}


def test_tsrtr_of_the_paper_draws_its_stays_anew_in_each_repetition(monkeypatch):
    seen = trainings(monkeypatch)
    options = {"seed": 0, "repetitions": 2, "real": 100, "fractions": [0.5], "classifiers": ["logistic L2"]}
    scores = {score.what: score for score in tsrtr(PAPER, TRAIN, TEST, SYNTHETIC, **options)}
    assert [len(x) for _, x, _, _ in seen] == [100, 100, 200, 200, 300, 300, 600, 600]
    assert not np.array_equal(seen[2][1], seen[3][1])
    assert all(scores[what].std["classifier"] > 0 for what in ("auc at 0 %", "auc at 50 %"))


@pytest.mark.parametrize(
    ("protocol", "kinds", "times"), [("strict", {"flattened"}, 1), ("paper", {"flattened", "summary"}, 4)]
)
def test_tsrtr_has_the_inputs_and_repetitions_of_its_protocol(protocol, kinds, times, monkeypatch):
    asked = []

    def noted(*cohorts, kind, repetitions, **rest):
        asked.append((kind, repetitions))
        return []

    monkeypatch.setattr(importlib.import_module("timediff.evaluation.metrics.tsrtr"), "tsrtr", noted)
    case = Case(TRAIN, TEST, EvaluationSettings(protocol=protocol, repetitions=4))
    METRICS("tsrtr").measure(Measurement(case, SYNTHETIC))
    assert {kind for kind, _ in asked} == kinds
    assert {repetitions for _, repetitions in asked} == {times}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers(4, 70), st.integers(0, 9))
def test_a_stratified_subset_has_every_class_as_often_as_the_whole(classes, size, seed):
    y = np.array(classes)
    chosen = stratified(y, size, np.random.default_rng(seed))
    assert len(chosen) == len(set(chosen.tolist())) == min(size, len(y))
    rare = sum((y == k).mean() * len(chosen) < 1 for k in set(classes))  # of which one is taken all the same
    for k in set(classes):
        there, wanted = (y[chosen] == k).sum(), (y == k).mean() * len(chosen)
        assert there >= 1
        assert abs(there - wanted) < 1 + rare


def test_groups_are_scored_by_classifiers_of_all_stays():
    options = {"seed": 0, "repetitions": 1, "classifiers": ["logistic L2"], "bootstrap": 20}
    scores = tstr_by_group(VIEW, TRAIN, TEST, SYNTHETIC, ["sex", "age"], **options)
    assert len(scores) == (2 + 4) * 3
    women = next(s for s in scores if s.group == "sex = F" and s.what == "tstr")
    assert women.n == (TEST.static["sex"] == 0).sum()
    assert women.low <= women.value <= women.high
    gaps = {s.group: s for s in scores if s.what == "gap"}
    assert all(gap.floor == 0 < gap.floor_high for gap in gaps.values())
    assert gaps["sex = F"].floor_high != gaps["sex = M"].floor_high  # of their own stays
    everyone = replace(TEST, static={**TEST.static, "sex": np.zeros(300)})
    same = tstr_by_group(VIEW, TRAIN, everyone, SYNTHETIC, "sex", **options)
    whole = tstr(VIEW, TRAIN, everyone, SYNTHETIC, **options, inputs=["flattened"])
    assert same[0].value == whole[0].value
    assert same[0].group == "sex = F"
    assert same[3].note == "no held-out stays have sex = M; 30 are needed."


def test_a_group_of_few_stays_is_not_counted_exactly():
    sex = np.zeros(300)
    sex[:7] = 1
    few = replace(TEST, static={**TEST.static, "sex": sex})
    scores = tstr_by_group(
        VIEW, TRAIN, few, SYNTHETIC, "sex", seed=0, repetitions=1, classifiers=["logistic L2"], bootstrap=5
    )
    assert {s.note for s in scores if s.group == "sex = M"} == {
        "fewer than 10 held-out stays have sex = M; 30 are needed."
    }


@settings(max_examples=50)
@given(st.integers(1, 5000))
def test_a_count_is_never_exact_below_ten(count):
    assert about(count) == ("fewer than 10" if count < 10 else f"about {round(count, -1):,}")
