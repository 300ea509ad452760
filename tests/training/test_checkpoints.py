"""Checkpoints: there whole or not at all, and a damaged one is never used."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from helpers.small_runs import equal, signal_at, small_settings, weights
from timediff.data.cohort import Cohort
from timediff.errors import Stopped, TimeDiffError
from timediff.generators.timediff.generator import TimeDiff
from timediff.training.checkpoints import Checkpoints


def _truncate(path: Path) -> None:
    content = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(content[: len(content) // 2])


def _flip(path: Path) -> None:
    content = bytearray((path / "optimizer.safetensors").read_bytes())
    content[-5] ^= 1
    (path / "optimizer.safetensors").write_bytes(bytes(content))


def _manifest(**changes: object) -> Callable[[Path], object]:
    def write(path: Path) -> None:
        table = json.loads((path / "manifest.json").read_text())
        (path / "manifest.json").write_text(json.dumps({**table, **changes}))

    return write


DAMAGES = {
    "half a file": _truncate,
    "one bit": _flip,
    "no manifest": lambda path: (path / "manifest.json").unlink(),
    "no weights": lambda path: (path / "ema.safetensors").unlink(),
    "no sense": lambda path: (path / "manifest.json").write_text("{"),
    "a list": lambda path: (path / "manifest.json").write_text("[]"),
    "deep": lambda path: (path / "manifest.json").write_text("[" * 100_000),
    "digits": lambda path: (path / "manifest.json").write_text('{"step": ' + "9" * 5000 + "}"),
    "step as text": _manifest(step="9"),
    "another step": _manifest(step=10),
    "no hashes": lambda path: (path / "manifest.json").write_text('{"step": 9}'),
    "hashes as a list": _manifest(sha256=["model"]),
    "a hash as a number": _manifest(sha256={"model": 3}),
    "a part from elsewhere": _manifest(sha256={"../step-000000008/model": "0" * 64}),
}


@pytest.fixture(scope="module")
def stopped(icu: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after its ninth update; only read by tests."""
    run = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(Stopped):
        TimeDiff(settings=small_settings()).fit(icu, seed=5, run=run, progress=signal_at(9, signal.SIGTERM))
    return run


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_skipped(damage: str, stopped: Path, tmp_path: Path) -> None:
    checkpoints = Checkpoints(Path(shutil.copytree(stopped / "checkpoints", tmp_path / "checkpoints")))
    DAMAGES[damage](checkpoints.folder / "step-000000009")
    said: list[str] = []
    found = checkpoints.newest(said.append)
    assert found is not None
    assert found.step == 8
    assert len(said) == 1
    assert "step-000000009 is damaged (" in said[0]
    assert checkpoints.damages() == said


@pytest.mark.parametrize("damage", ["half a file", "one bit", "no manifest"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(
    damage: str, icu: Cohort, whole: Path, stopped: Path, tmp_path: Path
) -> None:
    run, settings = Path(shutil.copytree(stopped, tmp_path / "run")), small_settings()
    DAMAGES[damage](run / "checkpoints" / "step-000000009")
    said: list[str] = []
    TimeDiff(settings=settings).fit(icu, seed=5, run=run, resume=True, say=said.append)
    assert len(said) == 2
    assert "step-000000009 is damaged" in said[0]
    assert said[1] == "going on from update 8"
    assert equal(weights(run), weights(whole))


def test_only_the_newest_checkpoints_are_kept(whole: Path) -> None:
    assert sorted(p.name for p in (whole / "checkpoints").iterdir()) == ["step-000000008", "step-000000012"]


def test_a_checkpoint_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(1, {"model": {"w": torch.ones(3)}})

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(TimeDiffError, match="the disk is full"):
        checkpoints.write(2, {"model": {"w": torch.zeros(3)}})
    assert [p.name for p in tmp_path.iterdir()] == ["step-000000001"]
    found = checkpoints.newest(pytest.fail)
    assert found is not None
    assert torch.equal(found.parts["model"]["w"], torch.ones(3))


def test_what_a_killed_process_was_writing_is_removed_by_the_next(tmp_path: Path) -> None:
    abandoned = tmp_path / ".step-000000003.partial-1"
    abandoned.mkdir()
    (abandoned / "model.safetensors").touch()
    Checkpoints(tmp_path).write(7, {"model": {"w": torch.ones(2)}})
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000007"]
