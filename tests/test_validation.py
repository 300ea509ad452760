"""Weights are chosen by stays that are not learnt from, always with the same noise; a resumed run chooses alike."""

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file
from torch import nn

from timediff.cohort import Cohort
from timediff.config import Settings, TrainingSettings, resolve
from timediff.errors import Lost, Stopped
from timediff.generators.timediff import TimeDiff
from timediff.training.loop import TOGETHER, train
from timediff.training.turns import Turn
from timediff.training.validation import Validation


class One(nn.Module):
    """A network of one number."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1))


def squared(network, batch, noise):
    """Its distance from the data, with a little noise of its own."""
    return {"total": (network.w - batch[0] + 0.01 * noise.normal(1)).square().mean()}


ALONE = (Turn(squared),)


def settings(**changes) -> TrainingSettings:
    base = {"steps": 300, "batch": 10, "accumulate": 1, "lr": 0.01, "ema": 0.0, "validate_every": 5, "validation": 0.1}
    return TrainingSettings(**{**base, **changes})


def test_the_weights_are_those_of_the_lowest_held_out_loss():
    """Training pulls the number from 0 to 1; the held-out stays want 0.5."""
    learnt, held_out = torch.ones(20, 1), torch.full((30, 1), 0.5)
    said: list[str] = []
    weights = train(One(), ALONE, (learnt,), settings(), seed=0, held_out=(held_out,), say=said.append)
    assert float(weights["w"]) == pytest.approx(0.5, abs=0.05)
    assert "lowest after update" in said[0]
    without = train(One(), ALONE, (learnt,), settings(), seed=0)
    assert float(without["w"]) > 0.9


def test_patience_ends_training():
    learnt, held_out = torch.ones(20, 1), torch.full((30, 1), 0.5)
    network = One()
    train(network, ALONE, (learnt,), settings(patience=3), seed=0, held_out=(held_out,))
    assert 0.5 < float(network.w.detach()) < 0.8  # and not the 1 that it would have reached


def test_the_same_weights_have_the_same_loss_whenever_they_are_looked_at():
    judge = Validation(One(), squared, (torch.randn(50, 1, generator=torch.Generator().manual_seed(0)),), seed=3)
    judge.look({"w": torch.tensor([0.2])}, 1)
    first = judge.latest
    torch.manual_seed(99)
    judge.look({"w": torch.tensor([0.2])}, 2)
    assert judge.latest == first
    assert judge.stale == 1


def test_a_process_that_is_left_alone_while_it_looks_saves_what_it_has_seen(tmp_path: Path, monkeypatch):
    """Resumed, it ends where it would have ended."""
    learnt, held_out = torch.rand(20, 1), torch.full((30, 1), 0.5)
    whole = train(One(), ALONE, (learnt,), settings(steps=40), seed=0, held_out=(held_out,))
    looks: list[float] = []

    def told(loss: float, accelerator: object) -> float:
        looks.append(loss)
        if len(looks) == 3:
            raise Lost("another process has ended")
        return loss

    monkeypatch.setattr("timediff.training.loop.of_the_first", told)
    for _ in range(2):
        with suppress(Lost):
            resumed = train(One(), ALONE, (learnt,), settings(steps=40), seed=0, held_out=(held_out,), folder=tmp_path)
    assert (tmp_path / "checkpoints" / "step-000000015").exists()
    assert len(looks) == 40 / 5  # none was missed, and none taken twice
    assert torch.equal(resumed["w"], whole["w"])


def test_an_update_of_which_some_players_have_moved_and_others_not_is_not_saved(tmp_path: Path, monkeypatch):
    two = SimpleNamespace(
        device=torch.device("cpu"), num_processes=2, process_index=0, is_main_process=True, mixed_precision="no"
    )
    averaged: list[int] = []

    def gone_at_the_sixth(value: torch.Tensor, accelerator: object) -> None:
        averaged.append(1)
        if len(averaged) == 6:
            raise Lost("another process has ended")

    monkeypatch.setattr("timediff.training.update.average", gone_at_the_sixth)
    turns = (Turn(squared, "a"), Turn(squared, "b"))
    with pytest.raises(Lost):
        train(One(), turns, (torch.ones(20, 1),), settings(), seed=0, folder=tmp_path, accelerator=two)
    assert not list((tmp_path / "checkpoints").glob("step-*"))


def test_a_signal_that_comes_while_processes_agree_is_met_the_next_time(tmp_path: Path, monkeypatch):
    two = SimpleNamespace(
        device=torch.device("cpu"), num_processes=2, process_index=0, is_main_process=True, mixed_precision="no"
    )
    asked: list[bool] = []

    def agreed(requested: bool, accelerator: object) -> bool:
        asked.append(requested)
        if len(asked) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return requested

    monkeypatch.setattr("timediff.training.loop.any_of", agreed)
    monkeypatch.setattr("timediff.training.update.average", lambda value, accelerator: None)
    with pytest.raises(Stopped, match=f"stopped at update {2 * TOGETHER} "):
        train(One(), ALONE, (torch.ones(20, 1),), settings(), seed=0, folder=tmp_path, accelerator=two)
    assert asked[:2] == [False, True]


def test_held_out_stays_that_do_not_fit_are_looked_at_in_parts_with_the_same_loss():
    data = (torch.randn(50, 1, generator=torch.Generator().manual_seed(0)),)
    sizes: list[int] = []

    def limited(network, batch, noise):
        sizes.append(len(batch[0]))
        if len(batch[0]) > 20:
            raise RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")
        return squared(network, batch, noise)

    whole, parts = Validation(One(), squared, data, seed=3), Validation(One(), limited, data, seed=3)
    for judge in (whole, parts):
        judge.look({"w": torch.tensor([0.2])}, 1)
    assert parts.latest == pytest.approx(whole.latest, rel=1e-5)
    assert sizes[:3] == [50, 25, 13]


def small(steps: int = 12) -> Settings:
    changes = {
        "model.hidden": 8, "training.batch": 16, "training.warmup": 2, "training.checkpoint_every": 4,
        "training.validate_every": 3, "training.steps": steps, "training.validation": 0.2, "sampling.steps": 8,
    }  # fmt: skip
    return resolve("fast", assignments=changes)


@pytest.mark.parametrize("stop_at", [3, 7])
def test_with_dropout_and_held_out_stays_a_resumed_run_is_the_same_too(
    icu: Cohort, tmp_path: Path, stop_at: int
) -> None:

    def progress(done: int, total: int, **values: float) -> None:
        if done == stop_at:
            os.kill(os.getpid(), signal.SIGINT)

    TimeDiff(settings=small()).fit(icu, seed=5, run=tmp_path / "whole")
    with pytest.raises(Stopped):
        TimeDiff(settings=small()).fit(icu, seed=5, run=tmp_path / "run", progress=progress)
    TimeDiff(settings=small()).fit(icu, seed=5, run=tmp_path / "run", resume=True)
    whole, resumed = (load_file(tmp_path / name / "weights.safetensors") for name in ("whole", "run"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_stays_held_out_are_logged_and_not_learnt_from(icu: Cohort, tmp_path: Path, monkeypatch) -> None:
    seen = []
    encode = TimeDiff._held_out

    def watched(self, cohort, seed):
        learnt, held_out = encode(self, cohort, seed)
        seen.append((set(learnt.stay_id), set(held_out.stay_id)))
        return learnt, held_out

    monkeypatch.setattr(TimeDiff, "_held_out", watched)
    TimeDiff(settings=small()).fit(icu, seed=5, run=tmp_path / "run")
    learnt, held_out = seen[0]
    assert learnt.isdisjoint(held_out)
    assert learnt | held_out == set(icu.stay_id)
    lines = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert any("held_out" in line for line in lines)
