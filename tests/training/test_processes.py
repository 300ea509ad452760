"""Many processes do what one does: the same losses, the same stays; one that is killed ends all with a sentence.

Two CPU processes that talk through gloo stand for the GPUs of one machine or of many.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from timediff.data.cohort import Cohort, read_cohort

SETTINGS = """
[model]
hidden = 8
dropout = 0.0  # its masks are drawn by each process for its own rows
[training]
steps = {steps}
batch = 32
lr = 3e-3
warmup = 2
validate_every = 5
log_every = 5
checkpoint_every = {checkpoints}
[sampling]
steps = 4
"""
ALONE = [sys.executable, "-m", "timediff"]
TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "timediff"]


@pytest.fixture(scope="module")
def folder(icu: Cohort, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cohort and its settings, and the run of one process."""
    place = tmp_path_factory.mktemp("processes")
    icu.write(place / "icu")
    (place / "settings.toml").write_text(SETTINGS.format(steps=15, checkpoints=5))
    (place / "long.toml").write_text(SETTINGS.format(steps=100_000, checkpoints=1_000_000))
    ran(ALONE, place, "fit", "icu", "one", "--config", "settings.toml")
    return place


def started(launcher: list[str], place: Path, *words: str) -> "subprocess.Popen[str]":
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*launcher, *words], cwd=place, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def ran(launcher: list[str], place: Path, *words: str, expected: int = 0) -> str:
    process = started(launcher, place, *words)
    said, _ = process.communicate(timeout=240)
    assert (process.returncode == 0) == (expected == 0), said
    return said


def losses(run: Path) -> np.ndarray:
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return np.array([[line[name] for name in ("total", "continuous", "discrete", "held_out")] for line in lines])


def test_two_processes_train_as_one_does(folder: Path) -> None:
    said = ran(TWO, folder, "fit", "icu", "two", "--config", "settings.toml")
    assert said.count("two: fitted.") == 1  # only the first speaks
    assert np.allclose(losses(folder / "two"), losses(folder / "one"), rtol=1e-4)


def test_two_processes_sample_as_one_does(folder: Path) -> None:
    for launcher, out in ((ALONE, "alone"), (TWO, "together")):
        ran(launcher, folder, "sample", "one", out, "-n", "1200", "--seed", "1")
    assert read_cohort(folder / "alone").digest() == read_cohort(folder / "together").digest()
    assert not list(folder.glob(".*.parts"))


def logged(run: Path, after: int, seconds: float = 120) -> None:
    """Waits until the log tells of a later update."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        lines = (run / "log.jsonl").read_text().splitlines() if (run / "log.jsonl").exists() else []
        if lines and lines[-1].endswith("}") and json.loads(lines[-1])["step"] > after:
            return
        time.sleep(0.2)
    pytest.fail("it does not go on")


def workers(launcher: "subprocess.Popen[str]") -> list[int]:
    return [int(one) for one in Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()]


def test_one_process_killed_ends_all_with_a_sentence_and_the_run_goes_on(folder: Path) -> None:
    """No checkpoint is due: the one that is there was written by the process that survived."""
    process = started(TWO, folder, "fit", "icu", "killed", "--config", "long.toml")
    logged(folder / "killed", 0)
    os.kill(workers(process)[-1], signal.SIGKILL)
    said, _ = process.communicate(timeout=120)
    assert process.returncode != 0
    assert "another process of this work has ended" in said
    assert "--resume" in said
    assert "timediff/training" not in said  # no traceback of ours; the launcher has its own
    (checkpoint,) = (folder / "killed" / "checkpoints").glob("step-*")
    step = int(checkpoint.name.removeprefix("step-"))
    again = started(TWO, folder, "fit", "icu", "killed", "--resume")
    logged(folder / "killed", step + 5)
    for worker in workers(again):
        os.kill(worker, signal.SIGINT)
    said, _ = again.communicate(timeout=120)
    assert f"going on from update {step:,}" in said
    assert "stopped at update" in said
    assert len(list((folder / "killed" / "checkpoints").glob("step-*"))) == 2


def test_a_batch_that_cannot_be_shared_equally_is_named(folder: Path) -> None:
    said = ran(TWO, folder, "fit", "icu", "odd", "--config", "settings.toml", "--set", "training.batch=31", expected=2)
    assert "training.batch is 31, which 2 processes cannot share equally" in said
