"""Which trainings and cells there are, what they share, and in which order they are done."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import timediff as td
from timediff.reproduction.budget import SCALES, Machine, Scale
from timediff.reproduction.datasets import KINDS, supplement_of
from timediff.reproduction.experiments.registry import EXPERIMENTS, chosen
from timediff.reproduction.methods import REAL, TIMEDIFF
from timediff.reproduction.places import ReproductionFolder
from timediff.reproduction.preparation import PreparedSplit
from timediff.reproduction.study import DataSet, Study, Wanted

ONE = Scale(seeds=1)
KNOWN = {kind.name: kind for kind in KINDS}


def dataset(name: str, stays: int = 1000, *, some: str = "some") -> DataSet:
    """One that lies nowhere: `some` is the digest of the stays of TSRTR."""
    kind = supplement_of(KNOWN["mimic4"]) if name == "static" else KNOWN[name]
    found: Any = SimpleNamespace(kind=kind, name=name, done=True)
    sizes = {"train": stays, "test": 100, "some": min(stays, 2000)}
    digests = {"train": "train", "test": "test", "some": some}
    return DataSet(found, parts=PreparedSplit(Path(name)), sizes=sizes, digests=digests)


def study(*names: str, only: tuple[str, ...] = (), **changes: Any) -> Study:
    return Study(chosen(only), [dataset(name, **changes) for name in names], ReproductionFolder(Path("out")))


def one(found: Study, experiment: str, method: str, measure: str, arm: str = "") -> Wanted:
    (wanted,) = [
        w
        for w in found.listed
        if (w.experiment.name, w.method.name, w.measure, w.arm.label) == (experiment, method, measure, arm)
    ]
    return wanted


def test_the_same_training_is_shared_whatever_its_name() -> None:
    found = study("mimic3")
    paper = one(found, "scores", "timediff", "discriminative")
    same = one(found, "lambda", "lambda-0.01", "discriminative")
    other = one(found, "lambda", "lambda-0.1", "discriminative")
    assert found.fits(paper, ONE, 1)[0].key == found.fits(same, ONE, 1)[0].key
    assert found.cell(paper, ONE).file == found.cell(same, ONE).file
    assert found.fits(paper, ONE, 1)[0].key != found.fits(other, ONE, 1)[0].key
    assert found.cell(paper, ONE).file != found.cell(other, ONE).file


def test_a_training_samples_as_many_stays_as_anyone_asks_for() -> None:
    found = study("mimic3", stays=1000)
    for wanted in (one(found, "scores", "timediff", "predictive"), one(found, "lambda", "lambda-0.01", "predictive")):
        (fit,) = found.fits(wanted, ONE, 1)
        assert fit.stays == 9000
        assert found.cell(wanted, ONE).stays == 1000  # of which it sees the first
    found = replace(found, dropped=frozenset(w.name for w in found.listed if w.measure == "tsrtr"), _most={})
    assert found.fits(one(found, "scores", "timediff", "predictive"), ONE, 1)[0].stays == 1000
    alone = study("mimic3", only=("scores",), stays=1000)
    assert alone.fits(one(alone, "scores", "timediff", "predictive"), ONE, 1)[0].stays == 1000


@pytest.mark.parametrize(("some", "apart"), [("some", True), ("train", False)])
def test_two_thousand_stays_are_a_training_of_their_own_unless_they_are_all(some: str, apart: bool) -> None:
    found = study("mimic3", some=some)
    first = found.fits(one(found, "tsrtr", "timediff", "tsrtr", "2,000 real stays"), ONE, 1)[0]
    second = found.fits(one(found, "tsrtr", "timediff", "tsrtr", "all real stays"), ONE, 1)[0]
    assert (first.key != second.key) == apart


def test_what_a_cell_follows_from_is_in_its_key() -> None:
    found, file = study("mimic3"), {}
    wanted = one(found, "scores", "timediff", "discriminative")
    for scale in (ONE, Scale(seeds=2), Scale(seeds=1, repetitions=3), Scale(0.5, 1), Scale(seeds=1, sampling=10)):
        file[scale] = found.cell(wanted, scale).file
    other = study("mimic3")
    other.datasets[0].digests["test"] = "changed"
    changed = other.cell(one(other, "scores", "timediff", "discriminative"), ONE).file
    assert len({*file.values(), changed}) == 6


def test_seeds_are_the_paper_s_and_those_after_it() -> None:
    found = study("mimic3", only=("scores",))
    fits = found.fits(one(found, "scores", "timediff", "discriminative"), Scale(), 1)
    assert [fit.seed for fit in fits] == [2023, 2024, 2025]
    assert len({fit.key for fit in fits}) == 3


def test_what_matters_most_is_done_first() -> None:
    found = study("stocks", "mimic3", only=("scores", "lambda"))
    ranks = [wanted.rank for wanted in found.wanted]
    assert ranks == sorted(ranks)
    assert found.wanted[0].method == TIMEDIFF
    assert found.wanted[0].dataset.kind.name == "stocks"
    assert not [w for w in found.wanted if w.experiment.name == "lambda" and w.dataset.kind.windows]


def test_the_supplement_is_for_one_experiment_and_that_for_nothing_else() -> None:
    found = study("mimic4", "static")
    names = {(w.experiment.name == "static", w.dataset.kind.name) for w in found.listed}
    assert names == {(False, "mimic4"), (True, "mimic4-static")}
    wanted = one(found, "static", "static", "mir")
    assert found.fits(wanted, ONE, 1)[0].row.settings.codec.sparse == ("glucose",)


def test_real_stays_need_no_training() -> None:
    found = study("mimic3", only=("privacy",))
    wanted = one(found, "privacy", REAL.name, "mir")
    assert found.fits(wanted, ONE, 1) == ()
    assert found.cell(wanted, ONE).fits == ()


def test_a_small_budget_keeps_the_paper_s_method_and_leaves_out_the_largest() -> None:
    found = study("mimic3", only=("scores",))
    found.datasets[0].cohort = td.simulate(300, steps=25, seed=0)  # type: ignore[misc]
    choice = found.choice(120, Machine(), 1)
    assert choice.scale == SCALES[-1]
    assert not [name for name in choice.dropped if "timediff" in str(name)]
    assert any("halo" in str(name) for name in choice.dropped)
    assert found.choice(1e12, Machine(), 1).scale == SCALES[0]


def test_every_experiment_of_the_paper_has_a_data_set_here() -> None:
    found = study("stocks", "mimic3", "mimic4", "eicu", "static")
    with_arms = {name for name, experiment in EXPERIMENTS.items() if experiment.arms}
    assert {w.experiment.name for w in found.listed} == with_arms
