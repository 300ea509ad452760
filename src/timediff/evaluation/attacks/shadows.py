"""Shadow models: trained like the attacked one, each on a random half of all candidates; several at once."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from timediff.data.arrays import Units
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.evaluation.attacks.case import Flags, Shadow
from timediff.evaluation.attacks.shadow_training import ShadowTask, carry_out, made
from timediff.generators.base import Generator
from timediff.runtime import devices
from timediff.runtime.files import write_atomically
from timediff.runtime.pool import can_be_sent, carry_out_all, carry_out_here
from timediff.runtime.progress import Progress, Say, Watch, silent, unheard
from timediff.runtime.seeding import stream
from timediff.runtime.worker import Ended
from timediff.settings.base import NeuralSettings
from timediff.settings.resolve import resolve

FEWEST = 4  # models; of fewer hardly a stay has some that were trained on it and some that were not
SHADOW = 51  # a part of the evaluation stream
ON_A_GPU = 4  # trainings at once: while one starts, validates or saves, and its GPU waits, others compute
SHOWN = 1000  # steps of a bar for each model


class TooFew(TimeDiffError):
    """So many trainings failed that the shadow models left are too few."""


def halves(units: Units, models: int, seed: int) -> Flags:
    """Who each model is trained on, (models, candidates): each patient by half of the models, chosen at random."""
    rng, patients = stream("evaluation", seed, SHADOW), int(units.max(initial=-1)) + 1
    places = rng.random((models, patients)).argsort(axis=0).argsort(axis=0)
    return np.asarray((places < models // 2)[:, units])


@dataclass(frozen=True)
class ShadowPlan:
    """How shadow models are trained."""

    like: Generator  # of its kind, with its settings
    candidates: Cohort
    units: Units
    models: int
    seed: int
    size: int  # stays of their synthetic cohorts; 0 = no attack needs these
    changes: Mapping[str, Any]  # settings that differ, such as a narrower network
    minutes: float | None = None  # no further model is begun that would not be done by then
    jobs: int = 1  # trainings at once, each in a process of its own

    def tasks(self, folder: Path | None) -> list[ShadowTask]:
        model, flags = self.generator(), halves(self.units, self.models, self.seed)
        return [
            ShadowTask(
                number, self.models, type(model), model.settings, on, self.seed + 1 + number, self.size, folder
            )
            for number, on in enumerate(flags)
        ]  # fmt: skip

    def generator(self) -> Generator:
        """One that is not trained yet."""
        untracked: dict[str, Any] = {"training.track": []} if isinstance(self.like.settings, NeuralSettings) else {}
        settings = resolve(self.like.settings, assignments=untracked | dict(self.changes))
        try:
            return type(self.like)(settings=settings)
        except TypeError as error:
            raise TimeDiffError(
                f"the generator {self.like.name} cannot be trained again by an audit: attack its synthetic cohort "
                "alone, with --attack distance or --attack domias."
            ) from error


def usual_jobs() -> int:
    """One on the CPU, which a training fills; four on a GPU, which it does not, or one a core where these are fewer."""
    return min(ON_A_GPU, devices.cores()) if devices.device().type == "cuda" else 1


class Budget:
    """Whether a further model may be begun: minutes are for more than the fewest."""

    def __init__(self, minutes: float | None, models: int, done: int = 0) -> None:
        self.minutes, self.possible, self.done = minutes, models, done
        self.started = time.monotonic()
        self.longest: float | None = None  # seconds that a model took; None = not known yet

    def may_begin(self, busy: int) -> bool:
        if self.possible < FEWEST:
            return False  # there is no use in more
        if self.minutes is None or self.done + busy < FEWEST:
            return True
        if busy and self.longest is None:
            return False  # it is known soon
        return time.monotonic() - self.started + (self.longest or 0.0) <= 60 * self.minutes

    def ended(self, end: Ended) -> None:
        if end.failure:
            self.possible -= 1
        else:
            self.done, self.longest = self.done + 1, max(self.longest or 0.0, end.seconds)


def shadow_models(
    plan: ShadowPlan, folder: Path | None, progress: Progress = silent, say: Say = unheard
) -> tuple[list[Shadow], list[str]]:
    """Trained, or found in `folder`, from where each was stopped; and why, of those that could not be trained.

    A model follows from its seed and number, not from how many are trained at once, or in which process.
    """
    several = plan.jobs > 1 and can_be_sent(plan.tasks(None)[0])
    with _place(folder, several) as place:
        tasks = plan.tasks(place)
        todo = [task for task in tasks if not task.done]
        done = {task.number for task in tasks if task not in todo}
        budget, bar = Budget(plan.minutes, plan.models, len(done)), _Bar(progress, tasks, len(done))
        here: dict[int, Shadow] = {}
        failures: list[str] = []

        def keep(task: ShadowTask, candidates: Cohort, watch: Watch, say: Say) -> None:
            here[task.number] = made(task, candidates, watch(task.name))

        def ended(task: ShadowTask, end: Ended) -> None:
            budget.ended(end)
            bar.ended(task)
            if not end.failure:
                done.add(task.number)
                say(f"{task.name}, {end.seconds:.0f} s")
                return
            why = end.failure.replace(f"{place}/", "")  # an audit says of no folder where it lies
            failures.append(f"{task.name} could not be trained: {why}")
            where = _details(task, folder, end)
            say(f"{failures[-1]}{f' All of it is in {where}.' if where else ''}")

        if several:
            carry_out_all(carry_out, todo, plan.candidates, plan.jobs, bar.watch, say, ended, budget.may_begin)
        else:
            carry_out_here(keep, todo, plan.candidates, bar.watch, say, ended, budget.may_begin)
        _require_enough(len(done), failures, plan, say)
        return [here.get(task.number) or made(task, plan.candidates) for task in tasks if task.number in done], failures


def _require_enough(done: int, failures: Sequence[str], plan: ShadowPlan, say: Say) -> None:
    if failures and done < FEWEST:
        raise TooFew(
            f"of {plan.models} shadow models {len(failures)} could not be trained, and attacks need at least {FEWEST}. "
            f"{failures[0]}"
        )
    if done + len(failures) < plan.models:
        say(f"{done} of {plan.models} shadow models fit into {plan.minutes:g} minutes")


def _details(task: ShadowTask, folder: Path | None, end: Ended) -> Path | None:
    """Where it is written what a training printed before it failed; not where the folder is soon gone."""
    if folder is None or not end.details:
        return None
    file = folder / f"shadow-{task.number}.txt"
    write_atomically(file, end.details)
    return file


@contextmanager
def _place(folder: Path | None, several: bool) -> Iterator[Path | None]:
    """Where models are written: workers need a place, if only for as long as they work."""
    if folder is not None or not several:
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="timediff-") as place:
        yield Path(place)


class _Bar:
    """One bar for all models, and how many of them are done."""

    def __init__(self, progress: Progress, tasks: Sequence[ShadowTask], done: int) -> None:
        self.progress, self.models, self.done = progress, len(tasks), done
        self.begun: dict[str, float] = {}  # how far each is that is being trained

    def watch(self, name: str) -> Progress:
        def show(done: int, total: int, **values: float) -> None:
            self.begun[name] = done / max(total, 1)
            self._show()

        return show

    def ended(self, task: ShadowTask) -> None:
        self.begun.pop(task.name, None)
        self.done += 1
        self._show()

    def _show(self) -> None:
        so_far = self.done + min(sum(self.begun.values()), self.models - self.done)
        self.progress(round(SHOWN * so_far), SHOWN * self.models, models=self.done)
