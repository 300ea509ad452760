"""Fitting a neural generator: codec, run folder, held-out stays, training."""

import math
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.data.codec import Codec, require_equal_lengths
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators.run import History, Run
from timediff.kernels.training import accelerate
from timediff.runtime import devices
from timediff.runtime.files import locked
from timediff.runtime.parsing import Unreadable
from timediff.runtime.progress import Progress, Say, unheard
from timediff.runtime.randomness import seed_torch
from timediff.settings.base import NeuralSettings
from timediff.settings.training import TrainingSettings
from timediff.settings.typed import flat
from timediff.training.loop import make_accelerator, train
from timediff.training.objective import Objective
from timediff.training.trackers import require_trackers, tracked

MIN_HELD_OUT = 20  # stays; the loss of fewer would not say when to stop
TEACHER = "teacher"  # in a run folder that is being written


@dataclass(frozen=True)
class Lesson:
    """What a student is given by its teacher."""

    cohort: Cohort
    weights: Mapping[str, Tensor] | None  # to begin from; None of a teacher that was trained on real stays


Teach = Callable[[Path | None], Lesson]  # given where the teacher's run is written


@dataclass(frozen=True)
class FitRequest:
    """What is fitted, and where it is written."""

    generator: str
    settings: NeuralSettings  # with what the cohort decides
    codec: Codec
    seed: int
    data_sha256: str
    run: Path | None = None
    resume: bool = False
    allow_edited: bool = False


def fitted_codec(cohort: Cohort, settings: NeuralSettings) -> Codec:
    """The codec of a cohort that can be trained on."""
    require_trackers(settings.training.track)
    batch = settings.training.batch_for(len(cohort))
    if len(cohort) < batch:
        raise TimeDiffError(
            f"the cohort has {len(cohort)} stays, fewer than one batch of {batch}: "
            f"add --set training.batch={len(cohort)} or less, or more stays."
        )
    require_equal_lengths(cohort)
    return Codec.fit(cohort, settings.codec)


def seeded_network(build: Callable[[Codec], nn.Module], codec: Codec, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_torch("weights", seed))
        return build(codec)


def fit_network(
    request: FitRequest,
    cohort: Cohort,
    build: Callable[[Codec], nn.Module],
    objectives: Sequence[Objective],
    prepare: Callable[[nn.Module, Batch, Codec, Say], None],
    *,
    teach: Teach | None = None,
    progress: Progress,
    say: Say,
) -> tuple[dict[str, Tensor], History]:
    """Trains a network on the cohort and returns its averaged weights and how losses went.

    Writes or continues the run folder. With `teach`, the network is trained on what a teacher generates
    (Hinton et al. 2015; against membership inference: Shejwalkar and Houmansadr 2021), and the teacher is then deleted.
    """
    history: History = []
    settings, codec, seed = request.settings.training, request.codec, request.seed
    accelerator = make_accelerator(settings)
    with run_folder(request, cohort, accelerator.is_main_process, say) as run:
        if teach and run and run.finished:
            _dismiss_teacher(run)
            return run.weights(say), run.history()
        started, before = time.monotonic(), run.provenance.get("seconds", 0) if run else 0
        earlier = earlier_history(run)
        config = {"generator": request.generator, "seed": seed, "stays": len(cohort)} | flat(request.settings)
        name = run.path.name if run else request.generator
        try:
            lesson = teach(run.path / TEACHER if run else None) if teach else Lesson(cohort, None)
            network = seeded_network(build, codec, seed)
            training, held_out = split_held_out(lesson.cohort, settings, seed)
            encode = partial(codec.encode, intervals=request.settings.intervals)
            data = encode(training)
            prepare(network, data, codec, say)
            if lesson.weights:
                network.load_state_dict(lesson.weights)
                settings = settings.refining
            if accelerator.mixed_precision == "bf16":
                accelerate(network.to(accelerator.device), cohort.schema.steps, kernels=settings.kernels, say=say)
            with tracked(accelerator, settings.track, name=name, config=config) as track:

                def heard(step: int, values: Mapping[str, float]) -> None:
                    history.append({"step": step, **values})
                    track(step, values)

                weights = train(
                    network, objectives, data, settings, seed=seed, accelerator=accelerator,
                    folder=run.path if run else None, held_out=encode(held_out) if held_out else None,
                    progress=progress, say=say, heard=heard,
                )  # fmt: skip
        finally:  # also of a run that was stopped, for the one that goes on from there
            if run and accelerator.is_main_process:
                with suppress(OSError):  # a full disk is what ended it, and that is said
                    run.note(seconds=round(before + time.monotonic() - started, 1))
        if run and accelerator.is_main_process:
            run.finish(weights, updates=settings.steps)
            _dismiss_teacher(run)
    first = history[0]["step"] if history else math.inf
    return weights, [line for line in earlier if line["step"] < first] + history


def _dismiss_teacher(run: Run) -> None:
    """What was trained on real stays, or is of no more use, does not stay in a run folder."""
    shutil.rmtree(run.path / TEACHER, ignore_errors=True)


def earlier_history(run: Run | None) -> History:
    """Of a run that is continued; a log that cannot be read is no reason not to train."""
    with suppress(Unreadable):
        return run.history() if run else []
    return []


@contextmanager
def run_folder(request: FitRequest, cohort: Cohort, main_process: bool, say: Say) -> Iterator[Run | None]:
    """The run folder that is written, by one process at a time; a new one in which nothing was saved is not left."""
    if request.run is None:
        yield None
        return
    begun = request.run.exists()
    with devices.main_process_first():
        run = open_run(request, cohort, main_process, say)
    if not main_process:
        yield run
        return
    with locked(run.path, run.path):
        if run.differences:
            run.note(edited=sorted({*run.provenance.get("edited", ()), *run.differences.changed}))
        try:
            yield run
        except BaseException:
            if not begun and not any(run.path.glob("**/checkpoints/step-*")):
                shutil.rmtree(run.path, ignore_errors=True)  # it would only be in the way of the next try
            raise


def open_run(request: FitRequest, cohort: Cohort, main_process: bool, say: Say) -> Run:
    """A new run folder, or the one to be continued, if it was started in the same way."""
    path, digest = request.run, request.data_sha256
    assert path is not None
    facts: dict[str, Any] = {
        "generator": request.generator, "seed": request.seed, "stays": len(cohort), "data_sha256": digest,
    }  # fmt: skip
    if main_process and not (request.resume and path.exists()):  # resuming a run that never began is beginning it
        return Run.create(path, request.settings, request.codec.schema, facts, request.codec)
    run = Run.open(path, allow_edited=request.allow_edited, say=say if main_process else unheard)
    if run.generator != request.generator:
        raise TimeDiffError(f"{path} is a run of {run.generator}, not of {request.generator}: resume it as what it is.")
    if run.provenance["format"] == 1:
        raise TimeDiffError(f"{path} was begun by TimeDiff 0.1.0, which only samples from it now: fit again.")
    if run.provenance.get("data_sha256") != digest or run.provenance.get("seed") != request.seed:
        raise TimeDiffError(
            f"{path} was started on other data or with another seed: resume with the same cohort and seed."
        )
    changed = run.settings.differences(request.settings)
    different = {k: v for k, v in changed.items() if not k.startswith("sampling.") and k != "training.track"}
    if different:
        shown = "; ".join(f"{key} was {was!r}, now {now!r}" for key, (was, now) in different.items())
        raise TimeDiffError(f"{path} was started with other settings ({shown}): resume without changing them.")
    return run


def split_held_out(cohort: Cohort, settings: TrainingSettings, seed: int) -> tuple[Cohort, Cohort | None]:
    """The training stays, and those that say when to stop; none of few."""
    if len(cohort) * settings.validation < MIN_HELD_OUT:
        return cohort, None
    training, held_out = cohort.split(settings.validation, seed=seed, by="random")
    return (training, held_out) if len(training) >= settings.batch_for(len(training)) else (cohort, None)
