"""Distillation: the network of a run is trained on a teacher's stays alone, and the teacher does not stay."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from helpers.small_runs import equal, signal_at, weights
from timediff.data.cohort import Cohort
from timediff.errors import Stopped, TimeDiffError
from timediff.generators import fitting
from timediff.generators.fitting import TEACHER, Lesson
from timediff.generators.registry import load
from timediff.generators.timediff.generator import TimeDiff
from timediff.settings.resolve import resolve
from timediff.settings.training import TrainingSettings
from timediff.sources.simulated import simulate

STEPS = 8


def settings(rounds: int = 1, **more: Any) -> Any:
    small = {
        "model.hidden": 8, "training.batch": 16, "training.steps": STEPS, "training.distillation": rounds,
        "training.distilled": 210, "training.checkpoint_every": 4, "training.log_every": 2, "training.track": [],
    }  # fmt: skip
    return resolve("careful", assignments=small | {key.replace("__", "."): value for key, value in more.items()})


@pytest.fixture(scope="module")
def stays() -> Cohort:
    return simulate(210, steps=6, seed=0)


@pytest.fixture(scope="module", autouse=True)
def _one_thread(one_thread: None) -> None:
    """Every network here is small."""


def test_of_a_finished_run_no_teacher_is_left(stays: Cohort, tmp_path: Path) -> None:
    run = tmp_path / "run"
    model = TimeDiff(settings=settings(2)).fit(stays, seed=0, run=run)
    assert not (run / TEACHER).exists()
    assert json.loads((run / "provenance.json").read_text())["data_sha256"] == stays.digest()
    assert np.array_equal(
        load(run).sample(20, seed=1).series["heart_rate"], model.sample(20, seed=1).series["heart_rate"], equal_nan=True
    )


def test_what_a_teacher_generates_is_all_that_its_student_is_trained_on(
    stays: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another teacher's lesson gives other weights; the same lesson, of other stays with the same codec, the same."""
    codec = TimeDiff(settings=settings())._sized_for(stays)
    monkeypatch.setattr("timediff.generators.neural.fitted_codec", lambda *_: codec)

    def taught_by(lesson: Cohort, cohort: Cohort) -> dict[str, torch.Tensor]:
        monkeypatch.setattr(TimeDiff, "_taught", lambda *_: Lesson(lesson, None))
        return TimeDiff(settings=settings()).fit(cohort, seed=0).fitted.network.state_dict()

    one, other = simulate(210, steps=6, seed=1), simulate(210, steps=6, seed=2)
    assert equal(taught_by(one, stays), taught_by(one, other))
    assert not equal(taught_by(one, stays), taught_by(other, stays))


def test_the_first_round_begins_anew_and_later_ones_with_the_network_before(
    stays: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[dict[str, torch.Tensor], TrainingSettings, int]] = []
    train = fitting.train

    def watched(network: Any, objectives: Any, data: Any, used: TrainingSettings, **more: Any) -> Any:
        begin = {name: value.clone() for name, value in network.state_dict().items()}
        given.append((begin, used, len(data) + len(more["held_out"])))
        given_back = train(network, objectives, data, used, **more)
        ends.append(given_back)
        return given_back

    ends: list[dict[str, torch.Tensor]] = []
    monkeypatch.setattr(fitting, "train", watched)
    TimeDiff(settings=settings(2)).fit(stays, seed=0)
    (teacher, _, real), (first, used, _), (second, less, made) = given
    assert equal(first, teacher)  # random weights, of the same seed
    assert not equal(first, ends[0])  # and not those that were trained on real stays
    assert equal(second, ends[1])
    assert (real, made) == (210, 210)
    assert (used.steps, less.steps) == (STEPS, STEPS // 4)
    assert used.lr is not None
    assert less.lr is not None
    assert less.lr < used.lr


@pytest.mark.parametrize("where", ["teacher", "student"])
def test_stopped_anywhere_it_goes_on_to_the_same_weights(stays: Cohort, tmp_path: Path, where: str) -> None:
    whole, run, trainings = tmp_path / "whole", tmp_path / "run", [0]
    TimeDiff(settings=settings()).fit(stays, seed=0, run=whole)

    def stop(done: int, total: int, **values: float) -> None:
        trainings[0] += total == STEPS and done == 1
        if trainings[0] == (1 if where == "teacher" else 2):
            signal_at(5)(done, total)

    with pytest.raises(Stopped, match="stopped at update 5 of 8"):
        TimeDiff(settings=settings()).fit(stays, seed=0, run=run, progress=stop)
    assert (run / TEACHER).is_dir()
    TimeDiff(settings=settings()).fit(stays, seed=0, run=run, resume=True)
    assert equal(weights(run), weights(whole))
    assert not (run / TEACHER).exists()


def test_a_teacher_that_a_kill_left_beside_finished_weights_is_removed(stays: Cohort, tmp_path: Path) -> None:
    run, kept = tmp_path / "run", tmp_path / "kept"
    TimeDiff(settings=settings()).fit(stays, seed=0, run=run)
    before = weights(run)
    shutil.copytree(run, kept)
    shutil.copytree(kept, run / TEACHER)
    TimeDiff(settings=settings()).fit(stays, seed=0, run=run, resume=True)
    assert not (run / TEACHER).exists()
    assert equal(weights(run), before)


def test_without_selection_the_teachers_stays_are_taken_as_they_come(
    stays: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("timediff.generators.neural.chosen", lambda *_: pytest.fail("no stay is to be chosen"))
    TimeDiff(settings=settings(training__selection=False)).fit(stays, seed=0)


@pytest.mark.parametrize(("key", "value"), [("distillation", -1), ("distillation", 101), ("distilled", 0)])
def test_numbers_that_cannot_be_are_named(key: str, value: int) -> None:
    with pytest.raises(TimeDiffError, match=f"training.{key} is {value}"):
        resolve("careful", assignments={f"training.{key}": value})
