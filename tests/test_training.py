"""Training: stopped at any moment and resumed, it ends with the weights of a run that was never stopped."""

import json
import os
import signal
import socket
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from timediff.cohort import Cohort
from timediff.config import Settings, TrainingSettings, resolve
from timediff.errors import Stopped, TimeDiffError
from timediff.generators.timediff import TimeDiff
from timediff.training.checkpoints import Checkpoints
from timediff.training.ema import EMA
from timediff.training.order import Order
from timediff.training.turns import Turn
from timediff.training.update import learning_rate

CPU = torch.device("cpu")
SMALL = {
    "model.hidden": 8, "training.batch": 16, "training.accumulate": 2, "training.lr": 1e-3, "training.warmup": 3,
    "training.checkpoint_every": 4, "training.log_every": 2, "diffusion.steps": 20, "sampling.steps": "unset",
}  # fmt: skip


def settings(steps: int = 12, **more: object) -> Settings:
    return resolve("paper", assignments={**SMALL, "training.steps": steps, **more})


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "weights.safetensors")


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name].cpu(), b[name].cpu()) for name in a)


@pytest.fixture(scope="module")
def whole(icu: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    run = tmp_path_factory.mktemp("training") / "whole"
    TimeDiff(settings=settings()).fit(icu, seed=5, run=run)
    return run


def test_same_seed_same_weights_and_same_stays(icu: Cohort, whole: Path) -> None:
    again = TimeDiff(settings=settings()).fit(icu, seed=5)
    assert equal(again.fitted.network.state_dict(), weights(whole))
    other = TimeDiff(settings=settings()).fit(icu, seed=6)
    assert not equal(other.fitted.network.state_dict(), weights(whole))
    first, second = again.sample(40, seed=1), TimeDiff.load(whole).sample(40, seed=1)
    assert first.digest() == second.digest()
    assert first.digest() != again.sample(40, seed=2).digest()


@pytest.mark.parametrize("stop_at", [1, 4, 7, 11])
def test_interrupted_and_resumed_is_uninterrupted_bit_for_bit(
    icu: Cohort, whole: Path, tmp_path: Path, stop_at: int
) -> None:
    def interrupt(done: int, total: int, **values: float) -> None:
        if done == stop_at:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Stopped, match=f"update {stop_at} of 12"):
        TimeDiff(settings=settings()).fit(icu, seed=5, run=tmp_path / "run", progress=interrupt)
    TimeDiff(settings=settings()).fit(icu, seed=5, run=tmp_path / "run", resume=True)
    assert equal(weights(tmp_path / "run"), weights(whole))


def test_killed_at_any_moment_it_can_be_resumed(icu: Cohort, tmp_path: Path) -> None:
    """SIGKILL at every write and rename of a run: its folder, three checkpoints, seconds, weights, provenance."""
    icu.write(tmp_path / "icu")
    script = Path(__file__).parent / "kill_points.py"
    arguments = [tmp_path / "icu", json.dumps({**SMALL, "training.steps": 12}), tmp_path]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    survived = json.loads(done.stdout)
    assert len(survived) == 1 + 3 * 5 + 3 * 2
    assert all(survived)


def _truncate(path: Path) -> None:
    content = (path / "model.safetensors").read_bytes()
    (path / "model.safetensors").write_bytes(content[: len(content) // 2])


def _flip(path: Path) -> None:
    content = bytearray((path / "optimizer.safetensors").read_bytes())
    content[-5] ^= 1
    (path / "optimizer.safetensors").write_bytes(bytes(content))


DAMAGES = {
    "half a file": _truncate,
    "one bit": _flip,
    "no manifest": lambda path: (path / "manifest.json").unlink(),
    "no weights": lambda path: (path / "ema.safetensors").unlink(),
    "no sense": lambda path: (path / "manifest.json").write_text("{"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(
    damage: str, icu: Cohort, whole: Path, tmp_path: Path
) -> None:
    def stop(done: int, total: int, **values: float) -> None:
        if done == 9:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Stopped):
        TimeDiff(settings=settings()).fit(icu, seed=5, run=tmp_path / "run", progress=stop)
    DAMAGES[damage](tmp_path / "run" / "checkpoints" / "step-000000009")
    said: list[str] = []
    TimeDiff(settings=settings()).fit(icu, seed=5, run=tmp_path / "run", resume=True, say=said.append)
    assert len(said) == 2
    assert "step-000000009 is damaged" in said[0]
    assert said[1] == "going on from update 8"
    assert equal(weights(tmp_path / "run"), weights(whole))


def test_resuming_with_other_data_seed_or_settings_is_refused(icu: Cohort, whole: Path) -> None:
    with pytest.raises(TimeDiffError, match="other data"):
        TimeDiff(settings=settings()).fit(icu.split()[0], seed=5, run=whole, resume=True)
    with pytest.raises(TimeDiffError, match="another seed"):
        TimeDiff(settings=settings()).fit(icu, seed=6, run=whole, resume=True)
    with pytest.raises(TimeDiffError, match=r"training\.lr was 0\.001, now 0\.5"):
        TimeDiff(settings=settings(**{"training.lr": 0.5})).fit(icu, seed=5, run=whole, resume=True)


def test_the_log_tells_of_every_loss(whole: Path) -> None:
    lines = [json.loads(line) for line in (whole / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4, 6, 8, 10, 12]
    for line in lines:
        assert abs(line["total"] - (0.01 * line["multinomial"] + line["gaussian"])) < 1e-4 * line["total"]
    assert [socket.gethostname() in file.name for file in (whole / "tensorboard").iterdir()] == [False]


def test_only_the_newest_checkpoints_are_kept(whole: Path) -> None:
    assert sorted(p.name for p in (whole / "checkpoints").iterdir()) == ["step-000000008", "step-000000012"]


def test_what_is_no_number_is_never_saved(icu: Cohort, tmp_path: Path) -> None:
    """Weights that break down between two log lines are seen before a checkpoint is written."""
    broken = {"training.lr": 1e30, "training.clip": 1e30, "training.warmup": 0, "training.log_every": 1000}
    plan = settings(**broken, **{"training.checkpoint_every": 1})
    with pytest.raises(TimeDiffError, match=r"no longer a number.*lower training\.lr"):
        TimeDiff(settings=plan).fit(icu, seed=0, run=tmp_path / "run")
    for file in (tmp_path / "run" / "checkpoints").rglob("*.safetensors"):
        assert all(torch.isfinite(value).all() for value in load_file(file).values())


def test_training_lowers_the_loss(icu: Cohort, tmp_path: Path) -> None:
    TimeDiff(settings=settings(120, **{"training.lr": 5e-3})).fit(icu, seed=0, run=tmp_path / "run")
    losses = [json.loads(line)["total"] for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert sum(losses[-10:]) < 0.8 * sum(losses[:10])


def unused(*given: object) -> dict[str, torch.Tensor]:
    raise AssertionError


@pytest.mark.parametrize("decay", ["none", "linear", "cosine"])
def test_learning_rate_rises_and_falls(decay: str) -> None:
    plan = TrainingSettings(steps=100, lr=1.0, warmup=10, decay=decay)
    rates = [learning_rate(plan, step, Turn(unused)) for step in range(100)]
    assert rates[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert max(rates) == 1
    assert all(later <= earlier for earlier, later in pairwise(rates[10:]))
    assert rates[-1] == 1 if decay == "none" else rates[-1] < 0.02
    later = Turn(unused, first=1000, end=1100)  # in whatever training: each phase has its own rise and fall
    assert [learning_rate(replace(plan, steps=5000), 1000 + step, later) for step in range(100)] == rates


def test_an_epoch_sees_every_stay_once() -> None:
    order = Order(50, 10, seed=0, device=CPU)
    first, second = (torch.cat([order(i) for i in range(5 * e, 5 * e + 5)]) for e in (0, 1))
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(50))
    assert first.tolist() != second.tolist()
    assert torch.equal(Order(50, 10, seed=0, device=CPU)(7), order(7))


def test_ema_is_the_mean_that_it_says() -> None:
    layer = torch.nn.Linear(1, 1, bias=False)
    ema = EMA(layer, 0.5)
    expected = float(layer.weight.detach())
    for update in range(20, 24):
        layer.weight.data.fill_(update)
        ema.update(layer, torch.tensor(ema.share(update)))
        expected = 0.5 * expected + 0.5 * update
    assert float(ema.weights["weight"]) == pytest.approx(expected)


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
