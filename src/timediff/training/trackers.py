"""Experiment trackers through Accelerate: losses and settings go to Weights & Biases or MLflow, if that is asked for.

TensorBoard is not among them: it is written with the log (log.py), into the run folder and without a machine's name.
Trackers write where they are set up to write (WANDB_MODE, MLFLOW_TRACKING_URI, …), and note by themselves who works on
which machine. None is imported unless it is asked for.
"""

import importlib.util
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from accelerate import Accelerator
from accelerate.tracking import GeneralTracker

from timediff.errors import TimeDiffError
from timediff.runtime import devices

PROJECT = "timediff"  # of Weights & Biases; MLflow calls it an experiment
PACKAGES = {"wandb": "wandb", "mlflow": "mlflow"}  # what is imported; extras have the same names
NAMED_BY = {"wandb": "name", "mlflow": "run_name"}

Heard = Callable[[int, Mapping[str, float]], None]  # what is told of each report of the log


def unheard(step: int, values: Mapping[str, float]) -> None:
    """Nobody is told."""


def asked_for(track: Sequence[str]) -> list[str]:
    return [name for name in dict.fromkeys(track) if name in PACKAGES]


def require_trackers(track: Sequence[str]) -> None:
    """Whether all that are asked for are installed; nothing is imported for it."""
    for name in asked_for(track):
        if importlib.util.find_spec(PACKAGES[name]) is None:
            raise TimeDiffError(
                f"training.track has {name!r}, which is not installed: pip install 'timediff-icu[{name}]', "
                "or leave it out."
            )


@contextmanager
def tracked(accelerator: Accelerator, track: Sequence[str], *, name: str, config: Mapping[str, Any]) -> Iterator[Heard]:
    """Yields what tells the trackers of losses. One that fails is told no more, and a warning says so."""
    names = asked_for(track) if devices.rank() == 0 else []
    if not names:
        yield unheard
        return
    try:
        accelerator.init_trackers(PROJECT, dict(config), {one: {NAMED_BY[one]: name} for one in names})
    except Exception as error:  # without its text, which may hold an address with a password
        raise TimeDiffError(
            f"{' or '.join(names)} could not begin ({type(error).__name__}): set it up as its own documentation says, "
            "or leave it out of training.track."
        ) from error
    listening: list[GeneralTracker] = list(accelerator.trackers)

    def heard(step: int, values: Mapping[str, float]) -> None:
        for tracker in [*listening]:
            try:
                tracker.log({f"training/{key}": value for key, value in values.items()}, step=step)
            except Exception as error:  # such as a server that cannot be reached
                listening.remove(tracker)
                warnings.warn(
                    f"the tracker {tracker.name} raised {type(error).__name__}: training goes on without it.",
                    RuntimeWarning,
                    stacklevel=2,
                )

    try:
        yield heard
    finally:
        for tracker in accelerator.trackers:  # not end_training, which would part the processes
            try:
                tracker.finish()
            except Exception as error:
                message = f"the tracker {tracker.name} could not be ended ({type(error).__name__})."
                warnings.warn(message, RuntimeWarning, stacklevel=2)
        accelerator.trackers = []
