"""One update: the gradient of a batch, by all processes together, and the step of the weights and of their average."""

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from timediff.capture import Captured, is_full, make_room
from timediff.config import TrainingSettings
from timediff.errors import TimeDiffError
from timediff.progress import Say, unheard
from timediff.randomness import Noise, Share, seed_torch
from timediff.training.ema import EMA
from timediff.training.order import Order
from timediff.training.processes import average, share_of
from timediff.training.validation import Objective

CACHED_CELLS = 9000  # stays × steps that a CPU computes at once: what its cache holds is done sooner


class Update:
    """`update(step, lr)` changes the network, its average and the optimiser's state; losses add up until taken.

    On a GPU all of it is recorded as two graphs: up to the gradient, and from there on; between them processes add up
    their gradients. Where a batch does not fit, it is computed in parts, with the same result but for rounding and, on
    a GPU, for dropout's masks.
    """

    def __init__(
        self, network: nn.Module, objective: Objective, data: tuple[Tensor, ...], optimizer: torch.optim.Optimizer,
        ema: EMA, settings: TrainingSettings, *, seed: int, accelerator: Accelerator, say: Say = unheard,
    ) -> None:  # fmt: skip
        self.batch = settings.batch_for(len(data[0]))
        self._network, self._objective, self._data = network, objective, data
        self._optimizer, self._ema, self._settings, self._say = optimizer, ema, settings, say
        self._seed, self._accelerator = seed, accelerator
        self._rounded = accelerator.mixed_precision == "bf16"
        device = accelerator.device
        self._mine = share_of(self.batch, accelerator)
        self._order = Order(len(data[0]), self.batch, seed, device)
        self._noise = Noise("training", [(seed, 0, 0)], [self.batch], self.batch, device)
        self._gradient = _one_gradient(network)
        self._lr: Tensor = optimizer.param_groups[0]["lr"]
        self._ema_share = torch.zeros((), device=device)
        self._sums: dict[str, Tensor] = {}
        self._rows = self._mine.stop - self._mine.start
        while device.type == "cpu" and self._rows * data[0].shape[1] > CACHED_CELLS and self._rows % 2 == 0:
            self._rows //= 2  # so that processes that share a batch compute the same parts as one would
        self._record(settings.capture)

    def __call__(self, step: int, lr: float) -> None:
        self._lr.fill_(lr)
        self._ema_share.fill_(self._ema.share(step))
        while not self._learnt(step):
            pass
        average(self._gradient, self._accelerator)
        self._apply()

    def take(self) -> dict[str, float]:
        """The sums of the losses since they were last taken."""
        if not self._sums:
            return {}
        totals = torch.stack(list(self._sums.values()))
        average(totals, self._accelerator)
        for total in self._sums.values():
            total.zero_()
        return dict(zip(self._sums, totals.tolist(), strict=True))

    def close(self) -> None:
        """Gives back the GPU's memory: what is recorded refers to this, and this to what is recorded."""
        del self._learn, self._apply

    def _record(self, enabled: bool) -> None:
        device, generators = self._accelerator.device, self._noise.generators
        self._learn = Captured(self._learn_from, device, generators=generators, enabled=enabled, say=self._say)
        self._apply = Captured(self._step, device, enabled=enabled, say=self._say)

    def _learnt(self, step: int) -> bool:
        """Adds up the gradient; False where it did not fit: then fewer rows are computed at once from now on."""
        before = {name: total.clone() for name, total in self._sums.items()}
        try:
            for micro in range(self._settings.accumulate):
                self._key = (self._seed, step, micro)
                self._noise.rekey([self._key])
                if self._noise.device.type == "cuda":
                    self._seed_dropout(self._mine.start)
                self._learn(self._order(step * self._settings.accumulate + micro)[self._mine])
        except RuntimeError as error:
            if not is_full(error):
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
        self._record(enabled=False)  # parts that fill the memory keep a GPU busy as they are
        make_room()
        self._gradient.zero_()
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

    def _learn_from(self, index: Tensor) -> None:
        drawn: list[Tensor] = []
        means: dict[str, Tensor] = {}
        for start in range(self._mine.start, self._mine.stop, self._rows):
            rows = slice(start, min(start + self._rows, self._mine.stop))
            here = index[rows.start - self._mine.start : rows.stop - self._mine.start]
            if index.device.type == "cpu":  # a graph's stream is set at its start alone
                self._seed_dropout(start)
            share = len(here) / len(index)
            with torch.autocast(index.device.type, torch.bfloat16, enabled=self._rounded):
                batch = tuple(part[here] for part in self._data)
                losses = self._objective(self._network, batch, Share(self._noise, drawn, rows))
            (losses["total"] * (share / self._settings.accumulate)).backward()  # type: ignore[no-untyped-call]
            for name, value in losses.items():
                means[name] = means.get(name, 0.0) + share * value.detach()
        for name, value in means.items():
            if name not in self._sums:
                self._sums[name] = torch.zeros_like(value)
            self._sums[name] += value

    @torch.no_grad()
    def _step(self) -> None:
        norm = torch.linalg.vector_norm(self._gradient)
        self._gradient *= (self._settings.clip / (norm + 1e-6)).clamp(max=1.0)
        self._optimizer.step()
        self._gradient.zero_()
        self._ema.update(self._network, self._ema_share)


def _one_gradient(network: nn.Module) -> Tensor:
    """The gradients of all weights as one vector; each weight's is a view of its part."""
    weights = [one for one in network.parameters() if one.requires_grad]
    gradient = torch.zeros(sum(one.numel() for one in weights), device=weights[0].device)
    start = 0
    for one in weights:
        one.grad = gradient[start : start + one.numel()].view_as(one)
        start += one.numel()
    return gradient
