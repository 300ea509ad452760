"""The training loop: Accelerate for devices and processes, and nothing in it that depends on when it was started.

Order of stays and noise follow from (seed, number of the training step), so a resumed run takes the very steps that an
uninterrupted one would have taken.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.errors import Lost, Stopped
from timediff.runtime import devices
from timediff.runtime.cuda_graphs import gpu_failures
from timediff.runtime.progress import Progress, Say, silent, unheard
from timediff.runtime.signals import Stop, stop_on_signals
from timediff.settings.training import TrainingSettings
from timediff.training.checkpoints import Checkpoints
from timediff.training.log import Log
from timediff.training.objective import Objective
from timediff.training.processes import any_process, broadcast
from timediff.training.state import TrainingState
from timediff.training.step import TrainingStep
from timediff.training.trackers import Heard, asked_for
from timediff.training.trackers import unheard as untold
from timediff.training.validation import Validation

ASK_EVERY = 10  # training steps after which many processes ask each other whether to stop


def train(
    network: nn.Module,
    objectives: Sequence[Objective],
    data: Batch,
    settings: TrainingSettings,
    *,
    seed: int,
    folder: Path | None = None,
    held_out: Batch | None = None,
    accelerator: Accelerator | None = None,
    progress: Progress = silent,
    say: Say = unheard,
    heard: Heard = untold,
) -> dict[str, Tensor]:
    """Trains in place and returns the averaged weights; goes on from the newest checkpoint in `folder`.

    `heard` is told of the losses of each report.

    With held-out stays, the averaged weights with the lowest loss on them are returned: that of the first objective, or
    of each that is validated by itself, which then ends by itself too.
    """
    accelerator = accelerator or make_accelerator(settings)
    device = accelerator.device
    network.to(device).train()
    validated = [one for one in objectives if one.validated] or list(objectives[:1])
    validations = [Validation(network, one, held_out.to(device), seed) for one in validated] if held_out else []
    state = TrainingState.initial(network, objectives, settings, validations)
    checkpoints = Checkpoints(folder / "checkpoints", settings.keep) if folder else None
    with devices.main_process_first():
        start = state.restore(checkpoints, say)
    step = TrainingStep(
        network, objectives, data.to(device), list(state.optimizers.values()), state.ema, settings,
        seed=seed, accelerator=accelerator, say=say,
    )  # fmt: skip
    board = "tensorboard" in settings.track
    log = Log(folder, start, board=board) if folder and accelerator.is_main_process else None
    loop = Loop(state, step, settings, accelerator, checkpoints, log, progress, heard, start)
    with (
        stop_on_signals() as stop, log or nullcontext(), torch.random.fork_rng(), closing(step), gpu_failures(),
        loop.saved_if_another_process_ends(),
    ):  # fmt: skip
        loop.run(stop)
    return state.best_weights(say)


class Loop:
    """Training steps, and between them validation, log, checkpoints and the wish to stop."""

    def __init__(
        self, state: TrainingState, step: TrainingStep, settings: TrainingSettings, accelerator: Accelerator,
        checkpoints: Checkpoints | None, log: Log | None, progress: Progress, heard: Heard, start: int,
    ) -> None:  # fmt: skip
        self.state, self.step, self.settings, self.accelerator = state, step, settings, accelerator
        self.checkpoints, self.log, self.progress, self.heard = checkpoints, log, progress, heard
        self.done, self.saved = start, start
        self._to_look: list[Validation] = []  # while a validation is under way
        self._logged, self._clock = start, time.monotonic()

    def run(self, stop: Stop) -> None:
        settings = self.settings
        while self.done < settings.steps and not self.state.over(settings.patience):
            self.step(self.done, self.state.finished(settings.patience))
            self.done += 1
            if self.state.validations and (self.done % settings.validate_every == 0 or self.done == settings.steps):
                self._validate()
            last = self.done == settings.steps or self.state.over(settings.patience)
            loss = self._report(last) if self.done % settings.log_every == 0 or last else None
            if loss is None:
                self.progress(self.done, settings.steps)
            stopping = not last and self._asked(stop)
            saving = self.done % settings.checkpoint_every == 0 or last or stopping
            if saving or loss is not None:
                self._require_finite(loss or 0.0)
            if saving:
                self._save()
            if stopping:
                any_process(False, self.accelerator)  # none leaves before the main process has saved
                raise Stopped(f"stopped at update {self.done:,} of {settings.steps:,}")

    def _validate(self) -> None:
        self._to_look = [one for one in self.state.validations if not one.over(self.settings.patience)]
        while self._to_look:
            self._to_look[0].look(self.state.ema.weights, self.done, lambda loss: broadcast(loss, self.accelerator))
            del self._to_look[0]

    def _report(self, last: bool) -> float:
        """Logs and shows the losses since the last time; returns their total."""
        losses, settings = self.step.take_losses(), self.settings
        stays = (self.done - self._logged) * settings.accumulate * self.step.batch
        rate = stays / (time.monotonic() - self._clock)
        seen = {f"held_out{one.name and '_'}{one.name}": one.latest for one in self.state.validations if one.seen}
        values = {**losses, **seen, "lr": self.step.learning_rate(self.done - 1), "stays_per_second": rate}
        if self.log:
            self.log.write(self.done, values)
        self.heard(self.done, values)
        self._logged, self._clock = self.done, time.monotonic()
        self.progress(settings.steps if last else self.done, settings.steps, loss=losses["total"], rate=rate)
        return losses["total"]

    def _asked(self, stop: Stop) -> bool:
        """Whether to stop; all processes do so after the same training step."""
        alone = self.accelerator.num_processes == 1
        return (alone or self.done % ASK_EVERY == 0) and any_process(stop.requested, self.accelerator)

    def _save(self) -> None:
        if self.checkpoints and self.accelerator.is_main_process:
            self.checkpoints.write(self.done, self.state.parts())
        self.saved = self.done

    def _require_finite(self, loss: float) -> None:
        self.state.require_finite(loss, self.done, self.settings.lr, self.saved if self.checkpoints else 0)

    @contextmanager
    def saved_if_another_process_ends(self) -> Iterator[None]:
        """Then what this one has is saved, if it is whole: an optimizer step is taken by all or by none."""
        try:
            yield
        except Lost:
            if self.done > self.saved and self.step.complete and self.accelerator.is_main_process:
                for validation in self._to_look:  # its loss is what the others would have been given
                    validation.look(self.state.ema.weights, self.done)
                self._require_finite(0.0)
                self._save()
            raise


def make_accelerator(settings: TrainingSettings) -> Accelerator:
    from accelerate.state import AcceleratorState

    # Without CUDA the CPU: Apple's GPUs have no double precision, which the schedules need.
    cpu = not torch.cuda.is_available()
    precision = "bf16" if settings.precision == "bfloat16" and not cpu else "no"
    # Accelerate keeps its precision for the whole process; another fit in the same process may want another.
    AcceleratorState._reset_state(reset_partial_state=False)
    return Accelerator(mixed_precision=precision, cpu=cpu, log_with=asked_for(settings.track) or None)
