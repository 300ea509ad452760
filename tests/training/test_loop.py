"""The loop: stopped at any moment and resumed, it ends with the weights of a run that was never stopped."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file

from helpers.one_number import ALONE, OneNumber, data, one_number_settings, squared
from helpers.small_runs import SMALL, equal, signal_at, small_settings, weights
from timediff.data.cohort import Cohort
from timediff.errors import Lost, Stopped, TimeDiffError
from timediff.generators.timediff.generator import TimeDiff
from timediff.settings.resolve import resolve
from timediff.training.loop import ASK_EVERY, train
from timediff.training.objective import Objective
from timediff.training.step import TrainingStep


def test_same_seed_same_weights_and_same_stays(icu: Cohort, whole: Path) -> None:
    again = TimeDiff(settings=small_settings()).fit(icu, seed=5)
    assert equal(again.fitted.network.state_dict(), weights(whole))
    other = TimeDiff(settings=small_settings()).fit(icu, seed=6)
    assert not equal(other.fitted.network.state_dict(), weights(whole))
    first, second = again.sample(40, seed=1), TimeDiff.load(whole).sample(40, seed=1)
    assert first.digest() == second.digest()
    assert first.digest() != again.sample(40, seed=2).digest()


@pytest.mark.parametrize("stop_at", [1, 4, 7, 11])
def test_interrupted_and_resumed_is_uninterrupted_bit_for_bit(
    icu: Cohort, whole: Path, tmp_path: Path, stop_at: int
) -> None:
    with pytest.raises(Stopped, match=f"update {stop_at} of 12"):
        TimeDiff(settings=small_settings()).fit(icu, seed=5, run=tmp_path / "run", progress=signal_at(stop_at))
    TimeDiff(settings=small_settings()).fit(icu, seed=5, run=tmp_path / "run", resume=True)
    assert equal(weights(tmp_path / "run"), weights(whole))


@pytest.mark.parametrize("setting", ["diffusion.discrete=rounding", "diffusion.discrete=softmax", "model.network=cde"])
def test_other_parts_of_the_paper_are_resumed_bit_for_bit(icu: Cohort, tmp_path: Path, setting: str) -> None:
    key, value = setting.split("=")
    settings = small_settings(3, **{key: value})
    with pytest.raises(Stopped, match="update 1 of 3"):
        TimeDiff(settings=settings).fit(icu, seed=5, run=tmp_path / "run", progress=signal_at(1))
    TimeDiff(settings=settings).fit(icu, seed=5, run=tmp_path / "run", resume=True)
    uninterrupted = TimeDiff(settings=settings).fit(icu, seed=5)
    assert equal(weights(tmp_path / "run"), uninterrupted.fitted.network.state_dict())


def test_killed_at_any_moment_it_can_be_resumed(icu: Cohort, tmp_path: Path) -> None:
    """SIGKILL at every write and rename of a run: its folder, three checkpoints, seconds, weights, provenance."""
    icu.write(tmp_path / "icu")
    script = Path(__file__).parents[1] / "helpers" / "kill_points.py"
    arguments = [tmp_path / "icu", json.dumps({**SMALL, "training.steps": 12}), tmp_path]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    survived = json.loads(done.stdout)
    assert len(survived) == 1 + 3 * 5 + 3 * 2
    assert all(survived)


def test_what_is_no_number_is_never_saved(icu: Cohort, tmp_path: Path) -> None:
    """Weights that break down between two log lines are seen before a checkpoint is written."""
    broken = {"training.lr": 1e30, "training.clip": 1e30, "training.warmup": 0, "training.log_every": 1000}
    settings = small_settings(**broken, **{"training.checkpoint_every": 1})
    with pytest.raises(TimeDiffError, match=r"no longer a number.*lower training\.lr"):
        TimeDiff(settings=settings).fit(icu, seed=0, run=tmp_path / "run")
    for file in (tmp_path / "run" / "checkpoints").rglob("*.safetensors"):
        assert all(torch.isfinite(value).all() for value in load_file(file).values())


def test_training_lowers_the_loss(icu: Cohort, tmp_path: Path) -> None:
    settings = small_settings(120, **{"training.lr": 5e-3, "diffusion.class_input": "one-hot"})
    TimeDiff(settings=settings).fit(icu, seed=0, run=tmp_path / "run")
    losses = [json.loads(line)["total"] for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


def test_a_run_whose_gpu_went_can_be_resumed(icu: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"model.hidden": 4, "training.steps": 9, "training.batch": 16, "training.checkpoint_every": 3}
    settings = resolve("fast", assignments=small)
    whole = TimeDiff(settings=settings).fit(icu, seed=0)
    step = TrainingStep.__call__

    def failing(self: TrainingStep, number: int, skip: frozenset[str]) -> None:
        if number == 7:
            raise RuntimeError("CUDA error: device unavailable")
        step(self, number, skip)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingStep, "__call__", failing)
        with pytest.raises(TimeDiffError, match="--resume goes on"):
            TimeDiff(settings=settings).fit(icu, seed=0, run=tmp_path / "run")
    resumed = TimeDiff(settings=settings).fit(icu, seed=0, run=tmp_path / "run", resume=True)
    assert resumed.identity == whole.identity


def two_processes() -> SimpleNamespace:
    """The accelerator of the first of two."""
    return SimpleNamespace(
        device=torch.device("cpu"), num_processes=2, process_index=0, is_main_process=True, mixed_precision="no"
    )


def test_a_process_left_alone_while_it_validates_saves_what_it_has_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Resumed, it ends where it would have ended."""
    training, held_out = data(torch.rand(20, generator=torch.Generator().manual_seed(0))), data(torch.full((30,), 0.5))
    settings = one_number_settings(steps=40)
    whole = train(OneNumber(), ALONE, training, settings, seed=0, held_out=held_out)
    losses: list[float] = []

    def lost_at_the_third(loss: float, accelerator: object) -> float:
        losses.append(loss)
        if len(losses) == 3:
            raise Lost("another process has ended")
        return loss

    monkeypatch.setattr("timediff.training.loop.broadcast", lost_at_the_third)
    for _ in range(2):
        with suppress(Lost):
            resumed = train(OneNumber(), ALONE, training, settings, seed=0, held_out=held_out, folder=tmp_path)
    assert (tmp_path / "checkpoints" / "step-000000015").exists()
    assert len(losses) == 40 / 5  # none was missed, and none taken twice
    assert torch.equal(resumed["w"], whole["w"])


def test_a_training_step_of_which_only_some_objectives_were_stepped_is_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    averaged: list[int] = []

    def lost_at_the_sixth(value: torch.Tensor, accelerator: object) -> None:
        averaged.append(1)
        if len(averaged) == 6:
            raise Lost("another process has ended")

    monkeypatch.setattr("timediff.training.optimizer_step.average", lost_at_the_sixth)
    objectives = (Objective(squared, "a"), Objective(squared, "b"))
    with pytest.raises(Lost):
        train(
            OneNumber(), objectives, data(torch.ones(20)), one_number_settings(), seed=0, folder=tmp_path,
            accelerator=two_processes(),  # type: ignore[arg-type]
        )  # fmt: skip
    assert len(averaged) == 6
    assert not list((tmp_path / "checkpoints").glob("step-*"))


def test_a_whole_training_step_is_saved_where_another_process_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    averaged: list[int] = []

    def lost_at_the_fifth(value: torch.Tensor, accelerator: object) -> None:
        averaged.append(1)
        if len(averaged) == 5:
            raise Lost("another process has ended")

    monkeypatch.setattr("timediff.training.optimizer_step.average", lost_at_the_fifth)
    objectives = (Objective(squared, "a"), Objective(squared, "b"))
    with pytest.raises(Lost):
        train(
            OneNumber(), objectives, data(torch.ones(20)), one_number_settings(), seed=0, folder=tmp_path,
            accelerator=two_processes(),  # type: ignore[arg-type]
        )  # fmt: skip
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["step-000000002"]


def test_a_signal_that_comes_while_processes_agree_is_met_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def agreed(requested: bool, accelerator: object) -> bool:
        asked.append(requested)
        if len(asked) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return requested

    monkeypatch.setattr("timediff.training.loop.any_process", agreed)
    monkeypatch.setattr("timediff.training.optimizer_step.average", lambda value, accelerator: None)
    with pytest.raises(Stopped, match=f"stopped at update {2 * ASK_EVERY} "):
        train(
            OneNumber(), ALONE, data(torch.ones(20)), one_number_settings(), seed=0, folder=tmp_path,
            accelerator=two_processes(),  # type: ignore[arg-type]
        )  # fmt: skip
    assert asked[:2] == [False, True]
