"""One training of a comparison: fitted and sampled by the same functions as the commands, with a clock beside it."""

import os
import platform
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import torch

from timediff.comparison.folder import Folder, read_record, write_record
from timediff.comparison.rows import Row
from timediff.data.cohort import Cohort
from timediff.generators.registry import load
from timediff.generators.run import Run
from timediff.generators.streaming import sample_to
from timediff.runtime.progress import Progress, Say, Watch
from timediff.settings.base import NeuralSettings
from timediff.training.log import read_log

NOTED_EVERY = 5  # seconds; what a kill can take from the clock


@dataclass(frozen=True)
class TrainingTask:
    """A row with one training seed, and its places in the folder."""

    row: Row
    seed: int
    stays: int
    folder: Folder
    at_once: int = 1

    @property
    def name(self) -> str:
        return f"{self.row.name}, seed {self.seed}"

    @property
    def run(self) -> Path:
        return self.folder.run(self.row, self.seed)

    @property
    def cohort(self) -> Path:
        return self.folder.cohort(self.row, self.seed)

    @property
    def record(self) -> Path:
        return self.folder.record(self.row, self.seed)

    @property
    def fitted(self) -> bool:
        return self.run.exists() and Run.open(self.run).finished

    @property
    def done(self) -> bool:
        return self.cohort.is_dir()

    def tidy(self) -> None:
        """Removes the parts that a sampling leaves which is killed between its end and its tidying up."""
        shutil.rmtree(self.cohort.parent / f".{self.cohort.name}.parts", ignore_errors=True)


def carry_out(task: TrainingTask, train: Cohort, watch: Watch, say: Say) -> None:
    """Fits and samples what is not there yet, from where it was stopped."""
    if task.done:
        return
    model: Any
    _warm(isinstance(task.row.settings, NeuralSettings))
    if task.fitted:
        model = load(task.run, say)
    else:
        model = task.row.kind(settings=task.row.settings)
        with timed(task, "fit", watch(f"{task.name}, fitting")) as progress:
            model.fit(train, seed=task.seed, run=task.run, resume=True, progress=progress, say=say)
        write_record(task.record, replace(read_record(task.record), updates=_updates(task.run)))
    with timed(task, "sample", watch(f"{task.name}, sampling")) as progress:
        sample_to(model, task.cohort, task.stays, seed=task.seed, resume=True, progress=progress, say=say)
    write_record(task.record, replace(read_record(task.record), failure=""))


@contextmanager
def timed(task: TrainingTask, what: Literal["fit", "sample"], progress: Progress) -> Iterator[Progress]:
    """Adds the seconds to the record as they pass: those of a try that is killed count too."""
    before, begun = read_record(task.record), time.monotonic()
    at_once = max(before.at_once, task.at_once)
    last = begun

    def note(ended: bool = False) -> None:
        nonlocal last
        last = time.monotonic()
        more: dict[str, Any] = {
            f"{what}_seconds": getattr(before, f"{what}_seconds") + last - begun,
            f"{what}_tries": getattr(before, f"{what}_tries") + 1,
            f"{what}_ended": ended,
        }
        write_record(task.record, replace(before, hardware=_hardware(), at_once=at_once, **more))

    def shown(done: int, total: int, **values: float) -> None:
        if time.monotonic() - last > NOTED_EVERY:
            note()
        progress(done, total, **values)

    note()
    try:
        yield shown
    except BaseException:
        note()
        raise
    note(ended=True)


def _warm(network: bool) -> None:
    """What any training would have to load or start, so that the first one is not charged for all."""
    if network:
        for module in ("torch.utils.tensorboard", "torch._dynamo"):
            import_module(module)
    if torch.cuda.is_available():
        torch.cuda.init()  # type: ignore[no-untyped-call]


def _updates(run: Path) -> int | None:
    """That were taken: fewer than planned where training ended early."""
    log = run / "log.jsonl"
    lines = read_log(log) if log.is_file() else []
    return int(lines[-1]["step"]) if lines else None


def _hardware() -> str:
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    threads = torch.get_num_threads()
    return f"{platform.machine()}, {threads} of {os.cpu_count()} cores"
