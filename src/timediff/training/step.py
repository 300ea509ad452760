"""One training step: an optimizer step for each objective, and the moving average of the weights."""

import math
from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import nn

from timediff.data.batch import Batch
from timediff.runtime.cuda_graphs import Captured
from timediff.runtime.progress import Say, unheard
from timediff.settings.training import TrainingSettings
from timediff.training.ema import EMA
from timediff.training.gradients import clip_norm
from timediff.training.objective import Objective
from timediff.training.optimizer_step import OptimizerStep
from timediff.training.order import Order


class TrainingStep:
    """`step(number)` changes the network, its average and the optimizers' states; losses gather until taken.

    On a GPU all of it is captured as CUDA graphs: of each objective up to the gradient, and from there on; between them
    processes add up their gradients. Where a batch does not fit, it is computed in parts, with the same result but for
    rounding, for what compares whole batches and, on a GPU, for dropout's masks.
    """

    def __init__(
        self, network: nn.Module, objectives: Sequence[Objective], data: Batch,
        optimizers: Sequence[torch.optim.Optimizer], ema: EMA, settings: TrainingSettings, *, seed: int,
        accelerator: Accelerator, say: Say = unheard,
    ) -> None:  # fmt: skip
        self.batch, self._settings = settings.batch_for(len(data)), settings
        self.complete = True  # no training step is half done: some objectives have been stepped, and others not yet
        order = Order(len(data), self.batch, seed, accelerator.device)
        self._optimizer_steps = [
            OptimizerStep(
                network, objective, data, optimizer, settings, order, transforms=(clip_norm(settings.clip),),
                seed=seed, accelerator=accelerator, say=say, alone=len(objectives) == 1,
            )
            for objective, optimizer in zip(objectives, optimizers, strict=True)
        ]  # fmt: skip
        most = max(objective.repeats for objective in objectives)
        self._sequence = [
            one for repeat in range(most) for one in self._optimizer_steps if repeat < one.objective.repeats
        ]
        self._ema, self._ema_rate = ema, torch.zeros((), device=accelerator.device)
        self._average = Captured(
            lambda: ema.update(network, self._ema_rate), accelerator.device, enabled=settings.capture, say=say
        )

    def learning_rate(self, step: int) -> float:
        """The highest of the active objectives."""
        active = [one.objective for one in self._optimizer_steps if one.objective.active(step)]
        return max(learning_rate(self._settings, step, objective) for objective in active)

    def __call__(self, step: int, skip: frozenset[str] = frozenset()) -> None:
        """`skip` names objectives that have ended."""
        for number, optimizer_step in enumerate(self._sequence):
            objective = optimizer_step.objective
            if objective.active(step) and objective.name not in skip:
                optimizer_step.initialise(step)
                lr = learning_rate(self._settings, step, objective)
                optimizer_step(step, step * len(self._sequence) + number, lr)
                self.complete = False
        if step % self._settings.ema_every == 0:
            self._ema_rate.fill_(self._ema.rate(step // self._settings.ema_every))
            self._average()
        self.complete = True

    def take_losses(self) -> dict[str, float]:
        """The means of the losses since they were last taken; of several objectives their totals by name too."""
        if len(self._optimizer_steps) == 1:
            return self._optimizer_steps[0].take_losses()
        found: dict[str, float] = {}
        for one in self._optimizer_steps:
            for name, value in one.take_losses().items():
                found[one.objective.name if name == "total" else f"{one.objective.name}_{name}"] = value
                if name == "total":
                    found["total"] = found.get("total", 0.0) + value
        return found

    def close(self) -> None:
        """Gives back the GPU's memory: what is captured refers to this, and this to what is captured."""
        del self._average
        for one in self._optimizer_steps:
            one.close()


def learning_rate(settings: TrainingSettings, step: int, objective: Objective) -> float:
    """Of a training step: it rises and falls from the first to the last in which the objective is active."""
    if settings.lr is None:
        raise ValueError("training.lr is unset: whoever knows the width of the network sets it")
    step, steps = step - objective.first, (settings.steps if objective.end is None else objective.end) - objective.first
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    done = (step - settings.warmup) / max(1, steps - settings.warmup)
    falling = {"none": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
    return settings.lr * falling[settings.decay]
