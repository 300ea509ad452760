"""The panel: faults that the paper's GRU passes are found by another classifier; real stays are not told apart.

On stays of PhysioNet 2012, because faults of recording can only be planted in records.
"""

from dataclasses import replace

import numpy as np
import pytest

from helpers.data import DATA
from planted.record_faults import (
    FAULTS,
    Fault,
    between_stays_shrunk,
    off_the_lattice,
    relation_broken,
    repeats_removed,
    subgroup_dropped,
    with_series,
)
from timediff.data.cohort import Cohort
from timediff.evaluation.case import Case, Measurement
from timediff.evaluation.classifiers import discriminators
from timediff.evaluation.classifiers.discriminators import Architecture
from timediff.evaluation.classifiers.held_out import OnHeldOut, worst
from timediff.evaluation.classifiers.panel import Panel
from timediff.evaluation.classifiers.tree_classifier import Trees
from timediff.evaluation.inputs.view import View
from timediff.evaluation.metrics.discriminative import CLASSIFIERS, discriminative, measure
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.statistics.bootstrap import interval_of_greatest
from timediff.sources.registry import resolve, source
from timediff.sources.simulated import simulate

REAL = DATA / "physionet2012"
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"no {REAL}: put the challenge's files there, or set TIMEDIFF_DATA")
FEATURES = ("HR", "SBP", "DBP", "MAP")


@pytest.fixture(scope="module")
def records() -> tuple[Cohort, Cohort, Cohort]:
    """Training, held-out and other stays: 24 hours of heart rate and pressures, statics and outcome."""
    found = []
    for name in "ab":
        whole = source("physionet2012").extract(str(REAL / f"set-{name}.parquet"), resolve("physionet2012")).cohort
        kept = tuple(f for f in whole.schema.features if f.scope == "static" or f.name in FEATURES)
        series = {name: whole.series[name] for name in FEATURES}
        static = {f.name: whole.static[f.name] for f in kept if f.scope == "static"}
        found.append(
            replace(whole, schema=replace(whole.schema, features=kept), series=series, static=static).horizon(24)
        )
    a, b = found
    return a.take(np.arange(1000)), b.take(np.arange(3000)), a.take(np.arange(1000, len(a)))


def trees(train: Cohort, test: Cohort, cohort: Cohort, repetitions: int = 2) -> dict[tuple[str, str], Score]:
    """What trees alone say of a cohort: scores by number, and by group of statistics or statistic."""
    case = Case(train, test, EvaluationSettings.quick(repetitions=repetitions, device="cpu"))
    panel = Panel(Measurement(case, cohort), test, cohort, CLASSIFIERS)
    panel.add_trees(np.concatenate([case.test_table, case.statistics.table(cohort)]))
    panel.train(lambda done, total, **values: None)
    return {(s.what, s.feature or (s.classifier or "").removeprefix("trees: ")): s for s in panel.scores()}


@real
@pytest.mark.parametrize(
    ("fault", "number", "group", "at_least"),
    [
        (off_the_lattice, "auc", "digits, repeats, distinct values", 0.95),
        (repeats_removed, "auc", "digits, repeats, distinct values", 0.9),
        (relation_broken, "auc", "relations between features", 0.6),
        (subgroup_dropped, "uncovered", "static values and outcome", 0.1),
    ],
)
def test_trees_find_what_a_gru_passes(fault, number, group, at_least, records):
    train, test, other = records
    found = trees(train, test, fault(other, np.random.default_rng(0)))
    score = found[number, "trees"]
    assert score.value > at_least
    assert score.low > {"auc": 0.5, "uncovered": 0.05}[number]
    groups = {name: one for (what, name), one in found.items() if what == "group_auc"}
    assert groups[group].low > 0.5


@pytest.fixture(scope="module")
def half_days(records) -> tuple[Cohort, ...]:
    """Their first twelve hours, so that a GRU is trained in half the time."""
    return tuple(cohort.horizon(12) for cohort in records)


def auc_of_a_gru(train: Cohort, test: Cohort, cohort: Cohort, architecture: Architecture = "paper") -> Score:
    real, other = View.fit(train).unlabelled.compared(test, cohort)
    _, auc = discriminative(real, other, seed=0, repetitions=1, device="cpu", architecture=architecture)
    return auc


@pytest.fixture(scope="module")
def floor(half_days) -> Score:
    """Real stays of the other set, without a fault."""
    return auc_of_a_gru(*half_days)


def passed(auc: Score, floor: Score) -> bool:
    """Whether the classifier sees no more than between real stays and real ones."""
    return floor.low <= auc.value <= floor.high


@real
@pytest.mark.parametrize("fault", FAULTS.values(), ids=list(FAULTS))
def test_the_papers_gru_passes_each_fault(fault: Fault, half_days, floor):
    train, test, other = half_days
    auc = auc_of_a_gru(train, test, fault(other, np.random.default_rng(0)))
    assert passed(auc, floor), (auc.value, floor.low, floor.high)


@real
def test_the_papers_gru_does_not_pass_what_is_gross(half_days, floor):
    train, test, other = half_days
    auc = auc_of_a_gru(train, test, with_series(other, HR=other.series["HR"] + 10))
    assert floor.low < 0.5 < floor.high
    assert not passed(auc, floor)


@real
def test_the_two_layer_gru_passes_all_faults_at_once(half_days):
    train, test, other = half_days
    faulty = other
    for fault in (between_stays_shrunk, repeats_removed, relation_broken, off_the_lattice, subgroup_dropped):
        faulty = fault(faulty, np.random.default_rng(0))
    auc, floor = (auc_of_a_gru(train, test, cohort, "strong") for cohort in (faulty, other))
    assert passed(auc, floor), (auc.value, floor.low, floor.high)


@real
def test_trees_do_not_tell_real_stays_from_real_ones(records):
    train, test, other = records
    found = trees(train, test, other)
    assert found["auc", "trees"].low <= 0.5 <= found["auc", "trees"].high
    assert found["uncovered", "trees"].low <= 0.05 <= found["uncovered", "trees"].high


@real
def test_the_statistic_that_betrays_a_cohort_is_named_with_both_values(records):
    train, test, other = records
    found = trees(train, test, off_the_lattice(other, np.random.default_rng(0)), repetitions=1)
    whole = found["whole_stays", "HR: fraction of whole numbers"]
    assert whole.floor > 0.95
    assert whole.value < 0.05
    assert found["mean_statistic", "HR: fraction of whole numbers"].floor > 0.99


def test_the_worst_of_the_panel_is_the_headline_and_is_named(monkeypatch):
    monkeypatch.setattr(discriminators, "recipe", lambda *given: replace(RECIPE(*given), iterations=20))
    icu = simulate(400, steps=6, seed=0)
    train, test, other = (icu.take(np.arange(i, 400, 3)) for i in range(3))
    case = Case(train, test, EvaluationSettings.quick(repetitions=1, device="cpu"))
    shifted = with_series(other, **{name: values + 0.25 for name, values in other.series.items()})
    scores = [s for s in measure.measure(Measurement(case, shifted)) if s.what == "auc"]
    first, *panel = scores
    assert first.classifier == "worst"
    assert {s.classifier for s in panel} == {"paper", "strong", "strong, masks alone", "convolution", "trees"}
    assert first.value == max(s.value for s in panel)
    assert first.low <= first.value <= first.high
    assert "trees on statistics of a stay" in first.note


RECIPE = discriminators.recipe


def test_the_papers_protocol_has_the_papers_classifier_alone(monkeypatch):
    monkeypatch.setattr(discriminators, "recipe", lambda *given: replace(RECIPE(*given), iterations=20))
    icu = simulate(300, steps=6, seed=0)
    train, test, other = (icu.take(np.arange(i, 300, 3)) for i in range(3))
    case = Case(train, test, EvaluationSettings.quick(repetitions=1, device="cpu", protocol="paper"))
    assert {s.classifier for s in measure.measure(Measurement(case, other))} == {"paper"}


# The interval of the worst


def test_the_interval_of_the_greatest_accounts_for_the_choice():
    """Of five classifiers that only guess, the best seems to see something: its own interval misses .5 too often."""
    rng, missed, alone = np.random.default_rng(0), 0, 0
    for _ in range(400):
        values = rng.normal(0.5, 0.02, 5)
        resamples = values + rng.normal(0, 0.02, (300, 5))
        low, high = interval_of_greatest(values, resamples)
        missed += not low <= 0.5 <= high
        alone += values.max() - 1.96 * 0.02 > 0.5
    assert missed / 400 < 0.06
    assert alone / 400 > 0.08


def test_of_one_classifier_it_is_its_own_interval():
    rng = np.random.default_rng(0)
    resamples = rng.normal(0.6, 0.02, (2000, 1))
    low, high = interval_of_greatest(np.array([0.6]), resamples)
    assert low == pytest.approx(0.6 - 1.96 * 0.02, abs=0.003)
    assert high == pytest.approx(0.6 + 1.96 * 0.02, abs=0.003)


def test_what_lies_beyond_the_other_kind():
    """A quarter of the real stays is of a kind that is never generated; the others are all alike."""
    rng = np.random.default_rng(0)
    logits = np.concatenate([rng.normal(5, 0.1, 500), rng.normal(0, 1, 1500), rng.normal(0, 1, 2000)])
    is_real = np.repeat([True, False], 2000)
    tested = OnHeldOut("trees", [logits], [np.arange(4000)], is_real, 0)
    numbers = {score.what: score for score in tested.scores(tails=True)}
    assert numbers["uncovered"].value == pytest.approx(0.25 + 0.75 * 0.05, abs=0.02)
    assert numbers["implausible"].value == pytest.approx(0.05, abs=0.03)
    assert worst([tested, OnHeldOut("paper", [-logits], [np.arange(4000)], is_real, 0)], CLASSIFIERS).note.endswith(
        "of a stay"
    )


def test_repetitions_may_hold_out_different_numbers_of_stays():
    """As where stays are split by patient, or a series by stretches."""
    rng = np.random.default_rng(0)
    is_real = np.repeat([True, False], 100)
    held_out = [rng.permutation(200)[:n] for n in (60, 50)]
    logits = [np.where(is_real[stays], 1.0, -1.0) for stays in held_out]
    score, auc = OnHeldOut("paper", logits, held_out, is_real, 0).scores()
    assert (score.value, auc.value) == (0.5, 1.0)


def test_a_column_with_hardly_a_value_is_no_obstacle():
    """Of a single value the validation rows may have it, and then scikit-learn has none to learn from."""
    rng = np.random.default_rng(0)
    is_real = np.repeat([True, False], 60)
    rare = np.where(np.arange(120) == rng.permutation(120)[:30, None], 1.0, np.nan)  # 30 columns of one value each
    table = np.stack([np.where(is_real, 0.0, 3.0) + rng.normal(size=120), np.full(120, np.nan), *rare], axis=1)
    trees = Trees(table, is_real, np.arange(0, 120, 2), seed=0)
    assert ((trees.logits(table[1::2]) > 0) == is_real[1::2]).mean() > 0.8
    nothing = Trees(table[:, 1:], is_real, np.arange(120), seed=0)
    assert len(nothing.columns) == 0
    assert (nothing.logits(table[:, 1:]) == 0).all()
