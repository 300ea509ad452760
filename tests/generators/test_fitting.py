"""Fitting: which stays are trained on, what may be resumed, and how long it took."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.small_baselines import baseline
from helpers.small_generators import PAPER
from helpers.small_runs import small_settings
from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators import fitting
from timediff.generators.timediff.generator import TimeDiff
from timediff.runtime.files import locked
from timediff.settings.resolve import resolve
from timediff.settings.training import CodecSettings, TrainingSettings


def test_resuming_with_other_data_seed_or_settings_is_refused(icu: Cohort, tmp_path: Path) -> None:
    run = tmp_path / "run"
    TimeDiff(settings=small_settings(2)).fit(icu, seed=5, run=run)
    with pytest.raises(TimeDiffError, match="other data"):
        TimeDiff(settings=small_settings(2)).fit(icu.split()[0], seed=5, run=run, resume=True)
    with pytest.raises(TimeDiffError, match="another seed"):
        TimeDiff(settings=small_settings(2)).fit(icu, seed=6, run=run, resume=True)
    with pytest.raises(TimeDiffError, match=r"training\.lr was 0\.001, now 0\.5"):
        TimeDiff(settings=small_settings(2, **{"training.lr": 0.5})).fit(icu, seed=5, run=run, resume=True)


def test_a_run_of_another_generator_is_not_resumed(mixed: Cohort, tmp_path: Path) -> None:
    baseline("tforcing", training__steps=1).fit(mixed, seed=0, run=tmp_path / "run")
    with pytest.raises(TimeDiffError, match="is a run of tforcing, not of pforcing"):
        baseline("pforcing", training__steps=1).fit(mixed, seed=0, run=tmp_path / "run", resume=True)


def test_stays_held_out_are_logged_and_not_trained_on(
    icu: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the codec's stays are is what training is given."""
    splits: list[tuple[Cohort, Cohort | None]] = []
    given: list[tuple[Batch, Batch]] = []
    split, train = fitting.split_held_out, fitting.train

    def watched_split(*arguments: Any) -> tuple[Cohort, Cohort | None]:
        splits.append(split(*arguments))
        return splits[-1]

    def watched_train(network: Any, objectives: Any, data: Batch, *rest: Any, held_out: Batch, **more: Any) -> Any:
        given.append((data, held_out))
        return train(network, objectives, data, *rest, held_out=held_out, **more)

    monkeypatch.setattr(fitting, "split_held_out", watched_split)
    monkeypatch.setattr(fitting, "train", watched_train)
    changes = {
        "model.hidden": 8, "training.batch": 16, "training.validate_every": 3, "training.steps": 6,
        "training.log_every": 3, "training.validation": 0.2,
    }  # fmt: skip
    model = TimeDiff(settings=resolve("fast", assignments=changes)).fit(icu, seed=5, run=tmp_path / "run")
    ((training, held_out),) = splits
    assert held_out is not None
    assert set(training.stay_id).isdisjoint(held_out.stay_id)
    assert set(training.stay_id) | set(held_out.stay_id) == set(icu.stay_id)
    for cohort, batch in zip((training, held_out), given[0], strict=True):
        encoded = model.fitted.codec.encode(cohort)
        assert np.array_equal(batch.continuous.numpy(), encoded.continuous.numpy())
        assert np.array_equal(batch.discrete.numpy(), encoded.discrete.numpy())
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert ["held_out" in line for line in lines] == [True, True]


def test_of_few_stays_none_are_held_out(icu: Cohort) -> None:
    few = icu.take(np.arange(100))
    assert fitting.split_held_out(few, TrainingSettings(validation=0.19), 0) == (few, None)
    training, held_out = fitting.split_held_out(few, TrainingSettings(validation=0.2), 0)
    assert held_out is not None
    assert (len(training), len(held_out)) == (80, 20)
    assert fitting.split_held_out(few, TrainingSettings(validation=0.2, batch=81), 0) == (few, None)


def test_seconds_are_those_of_all_parts_of_a_run_that_was_stopped(
    mixed: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on ten seconds with every update."""
    now = [0.0]
    monkeypatch.setattr("timediff.generators.fitting.time.monotonic", lambda: now[0])

    def seconds() -> float:
        return float(json.loads((tmp_path / "run" / "provenance.json").read_text())["seconds"])

    def fit(until: int, **options: bool) -> None:
        def watch(done: int, total: int, **values: float) -> None:
            now[0] += 10
            if done == until:
                raise KeyboardInterrupt

        TimeDiff(settings=PAPER).fit(mixed, seed=0, run=tmp_path / "run", progress=watch, **options)

    with pytest.raises(KeyboardInterrupt):
        fit(until=4)
    assert seconds() == 40
    fit(until=99, resume=True)
    assert seconds() == 70  # three updates again, from the checkpoint after the third


def test_fewer_stays_than_a_batch_are_named(mixed: Cohort) -> None:
    with pytest.raises(TimeDiffError, match=r"9 stays, fewer than one batch of 16.*training\.batch=9"):
        TimeDiff(settings=PAPER).plan(mixed.take(np.arange(9)))


def test_bounds_that_are_missing_are_asked_for(mixed: Cohort) -> None:
    with pytest.raises(TimeDiffError, match="'lactate' has none") as caught:
        Codec.fit(mixed, CodecSettings(scale="bounds"))
    assert "'pulse'" not in str(caught.value)


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64, 10**30])
def test_a_seed_that_cannot_be_is_refused_before_anything_is_written(seed: int, mixed: Cohort, tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match="cannot be a seed"):
        TimeDiff(settings=PAPER).fit(mixed, seed=seed, run=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_fit_that_failed_before_it_saved_anything_leaves_nothing_in_the_way(mixed: Cohort, tmp_path: Path) -> None:
    def fail(done: int, total: int, **values: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TimeDiff(settings=PAPER).fit(mixed, seed=0, run=tmp_path / "run", progress=fail)
    assert list(tmp_path.iterdir()) == []
    TimeDiff(settings=PAPER).fit(mixed, seed=1, run=tmp_path / "run")


def test_a_run_that_was_there_before_is_never_taken_away(mixed: Cohort, tmp_path: Path) -> None:
    def fail(done: int, total: int, **values: float) -> None:
        raise KeyboardInterrupt

    run = tmp_path / "run"
    TimeDiff(settings=PAPER).fit(mixed, seed=0, run=run)
    shutil.rmtree(run / "checkpoints")
    with pytest.raises(KeyboardInterrupt):
        TimeDiff(settings=PAPER).fit(mixed, seed=0, run=run, resume=True, progress=fail)
    assert (run / "weights.safetensors").exists()


def test_of_two_processes_that_fit_into_one_folder_the_second_is_told(mixed: Cohort, tmp_path: Path) -> None:
    run = tmp_path / "run"
    TimeDiff(settings=PAPER).fit(mixed, seed=0, run=run)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    with locked(run, run), pytest.raises(TimeDiffError, match="another process is writing"):
        TimeDiff(settings=PAPER).fit(mixed, seed=0, run=run, resume=True)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
    TimeDiff(settings=PAPER).fit(mixed, seed=0, run=run, resume=True)


def test_settings_edited_before_a_resumption_are_answered_in_a_sentence(mixed: Cohort, tmp_path: Path) -> None:
    run = tmp_path / "run"
    TimeDiff(settings=PAPER).fit(mixed, seed=0, run=run)
    wider = resolve(PAPER, assignments={"model.hidden": 9})
    (run / "settings.toml").write_text(wider.to_toml())
    with pytest.raises(TimeDiffError, match=r"changed: 'settings\.toml'.*--allow-edited"):
        TimeDiff(settings=wider).fit(mixed, seed=0, run=run, resume=True)
    with pytest.raises(TimeDiffError, match="update 6 does not fit this run"):
        TimeDiff(settings=wider).fit(mixed, seed=0, run=run, resume=True, allow_edited=True)


def test_numbers_beyond_all_measure_are_named_before_training(mixed: Cohort, tmp_path: Path) -> None:
    values = np.where(np.isnan(mixed.series["lactate"]), np.nan, mixed.series["lactate"] * 1e307)
    broken = replace(mixed, series={**mixed.series, "lactate": values})
    with pytest.raises(TimeDiffError, match="'lactate' has values of about"):
        TimeDiff(settings=PAPER).fit(broken, seed=0, run=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []
