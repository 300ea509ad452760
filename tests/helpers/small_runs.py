"""Runs of TimeDiff that take a second, their weights, and a stop at a chosen update."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from timediff.settings.resolve import resolve

SMALL = {
    "model.hidden": 8, "training.batch": 16, "training.accumulate": 2, "training.lr": 1e-3, "training.warmup": 3,
    "training.checkpoint_every": 4, "training.log_every": 2, "diffusion.steps": 20, "sampling.steps": "unset",
}  # fmt: skip


def small_settings(steps: int = 12, **more: object) -> Any:
    return resolve("paper", assignments={**SMALL, "training.steps": steps, **more})


def weights(run: Path) -> dict[str, torch.Tensor]:
    return load_file(run / "weights.safetensors")


def equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name].cpu(), b[name].cpu()) for name in a)


def signal_at(update: int, number: int = signal.SIGINT) -> Callable[..., None]:
    """A progress callback that sends this process a signal after an update."""

    def progress(done: int, total: int, **values: float) -> None:
        if done == update:
            os.kill(os.getpid(), number)

    return progress
