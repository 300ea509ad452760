"""An optimizer step: the gradient of a batch, by all processes together, and the step of the parameters."""

from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.errors import TimeDiffError
from timediff.runtime.cuda_graphs import Captured, free_memory, is_out_of_memory
from timediff.runtime.devices import CPU_CACHE_STEPS
from timediff.runtime.progress import Say
from timediff.runtime.randomness import Noise, NoiseSlice, seed_torch
from timediff.settings.training import TrainingSettings
from timediff.training.gradients import FlatGradient, GradientTransform
from timediff.training.objective import Objective
from timediff.training.order import Order
from timediff.training.processes import average, rows_of_process


class OptimizerStep:
    """The optimizer steps of one objective, with its own gradient, optimizer and noise."""

    def __init__(
        self, network: nn.Module, objective: Objective, data: Batch, optimizer: torch.optim.Optimizer,
        settings: TrainingSettings, order: Order, *, transforms: Sequence[GradientTransform], seed: int,
        accelerator: Accelerator, say: Say, alone: bool,
    ) -> None:  # fmt: skip
        self.objective, self._alone = objective, alone
        self._network, self._data, self._order = network, data, order
        self._optimizer, self._settings, self._say = optimizer, settings, say
        self._transforms = transforms
        self._seed, self._accelerator = seed, accelerator
        self._rounded = accelerator.mixed_precision == "bf16"
        device = accelerator.device
        self._mine = rows_of_process(order.batch, accelerator)
        self._noise = Noise("training", [(seed, 0, 0)], [order.batch], order.batch, device)
        self._gradient = FlatGradient(objective.parameters(network))
        self._lr: Tensor = optimizer.param_groups[0]["lr"]
        self._sums: dict[str, Tensor] = {}
        self._batches = 0  # in the sums
        self._initialised: int | None = None
        self._skips = False
        self._rows = self._mine.stop - self._mine.start
        while device.type == "cpu" and self._rows * data.steps > CPU_CACHE_STEPS and self._rows % 2 == 0:
            self._rows //= 2  # so that processes that share a batch compute the same parts as one would
        self._capture(settings.capture)

    def __call__(self, step: int, number: int, lr: float) -> None:
        """Optimizer step `number`, counted from the start of training, in training step `step`."""
        self._lr.fill_(lr * self.objective.lr)
        while not self._accumulated(step, number):
            pass
        self._batches += self._settings.accumulate
        average(self._gradient.with_skip, self._accelerator)
        self._apply()

    def initialise(self, step: int) -> None:
        objective = self.objective
        if objective.initialise and step == objective.first and step != self._initialised:
            objective.initialise(self._network, self._data)
            self._initialised = step

    def take_losses(self) -> dict[str, float]:
        """The means of the losses since they were last taken."""
        if not self._batches:
            return {}
        totals = torch.stack(list(self._sums.values())) / self._batches
        average(totals, self._accelerator)
        for total in self._sums.values():
            total.zero_()
        self._batches = 0
        return dict(zip(self._sums, totals.tolist(), strict=True))

    def close(self) -> None:
        del self._backward, self._apply

    def _capture(self, enabled: bool) -> None:
        device, generators = self._accelerator.device, self._noise.generators
        self._backward = Captured(self._add_gradient, device, generators=generators, enabled=enabled, say=self._say)
        self._apply = Captured(self._optimize, device, enabled=enabled, say=self._say)

    def _accumulated(self, step: int, number: int) -> bool:
        """Adds up the gradient; False where it did not fit: then fewer rows are computed at once from now on."""
        before = {name: total.clone() for name, total in self._sums.items()}
        try:
            for micro in range(self._settings.accumulate):
                batch = number * self._settings.accumulate + micro
                # The last number of the key is, where an objective is alone, which of the step's batches it is.
                self._key = (self._seed, step, batch - step * self._settings.accumulate)
                self._noise.rekey([self._key])
                if self._noise.device.type == "cuda":
                    self._seed_dropout(self._mine.start)
                self._backward(self._order(batch)[self._mine])
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if self._rows == 1:
                raise TimeDiffError(
                    "the GPU's memory does not hold one stay of this cohort: fewer features or steps, or a smaller "
                    "model.hidden, would fit."
                ) from error
        else:
            return True
        # Outside of the handler, which keeps what was half computed alive.
        self._rows = -(-self._rows // 2)
        self._capture(enabled=False)  # parts that fill the memory keep a GPU busy as they are
        free_memory(captured=not self._alone)
        self._gradient.with_skip.zero_()
        for name, total in self._sums.items():  # of the batches that did fit, which are computed again
            total.copy_(before.get(name, torch.zeros_like(total)))
        self._say(f"the GPU's memory is full: {self._rows:,} stays are computed at once from now on")
        return False

    def _seed_dropout(self, row: int) -> None:
        """PyTorch's own stream of the device."""
        seed = seed_torch("training", *self._key, row)
        device = self._accelerator.device
        generator = torch.default_generator
        if device.type == "cuda":
            generator = torch.cuda.default_generators[device.index or 0]
        generator.manual_seed(seed)

    def _add_gradient(self, index: Tensor) -> None:
        """The gradient of the mean loss of these stays, in as many parts as fit."""
        self._gradient.attach(self._network)
        draws: list[Tensor] = []
        means: dict[str, Tensor] = {}
        for start in range(self._mine.start, self._mine.stop, self._rows):
            rows = slice(start, min(start + self._rows, self._mine.stop))
            here = index[rows.start - self._mine.start : rows.stop - self._mine.start]
            if index.device.type == "cpu":  # a graph's stream is set at its start alone
                self._seed_dropout(start)
            fraction = len(here) / len(index)
            with torch.autocast(index.device.type, torch.bfloat16, enabled=self._rounded):
                losses = self.objective.loss(self._network, self._data[here], NoiseSlice(self._noise, draws, rows))
            (losses["total"] * (fraction / self._settings.accumulate)).backward()  # type: ignore[no-untyped-call]
            if "skip" in losses:
                self._skips = True
                self._gradient.skip.add_(losses.pop("skip").detach() * (fraction / self._settings.accumulate))
            for name, value in losses.items():
                means[name] = means.get(name, 0.0) + fraction * value.detach()
        for name, value in means.items():
            if name not in self._sums:
                self._sums[name] = torch.zeros_like(value)
            self._sums[name] += value

    @torch.no_grad()
    def _optimize(self) -> None:
        self._gradient.attach(self._network)
        for transform in self._transforms:
            transform(self._gradient.vector)
        if self._skips:  # as where a scaled gradient overflows: on the device, with no question to the host
            self._optimizer.found_inf = (self._gradient.skip > 0.5).float()  # type: ignore[attr-defined]
        self._optimizer.step()
        self._gradient.with_skip.zero_()
