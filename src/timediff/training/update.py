"""One update: the gradient of a batch, by all processes together, and the step of the weights and of their average.

Of several players each has its turn in every update: a batch, a gradient and a step of its own.
"""

import math
from collections.abc import Sequence

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from timediff.capture import Captured, is_full, make_room
from timediff.config import TrainingSettings
from timediff.devices import CACHED_CELLS
from timediff.errors import TimeDiffError
from timediff.progress import Say, unheard
from timediff.randomness import Noise, Share, seed_torch
from timediff.training.ema import EMA
from timediff.training.order import Order
from timediff.training.processes import average, share_of
from timediff.training.turns import Turn


class Update:
    """`update(step)` changes the network, its average and the optimisers' states; losses gather until taken.

    On a GPU all of it is recorded as graphs: of each player up to the gradient, and from there on; between them
    processes add up their gradients. Where a batch does not fit, it is computed in parts, with the same result but for
    rounding, for what compares whole batches and, on a GPU, for dropout's masks.
    """

    def __init__(
        self, network: nn.Module, turns: Sequence[Turn], data: tuple[Tensor, ...],
        optimizers: Sequence[torch.optim.Optimizer], ema: EMA, settings: TrainingSettings, *, seed: int,
        accelerator: Accelerator, say: Say = unheard,
    ) -> None:  # fmt: skip
        self.batch, self._settings = settings.batch_for(len(data[0])), settings
        self.whole = True  # no update is half done: some players have moved, and others not yet
        order = Order(len(data[0]), self.batch, seed, accelerator.device)
        self._players = [
            Player(
                network,
                turn,
                data,
                optimizer,
                settings,
                order,
                seed=seed,
                accelerator=accelerator,
                say=say,
                alone=len(turns) == 1,
            )
            for turn, optimizer in zip(turns, optimizers, strict=True)
        ]
        most = max(turn.times for turn in turns)
        self._plays = [player for time in range(most) for player in self._players if time < player.turn.times]
        self._ema, self._ema_share = ema, torch.zeros((), device=accelerator.device)
        self._average = Captured(
            lambda: ema.update(network, self._ema_share), accelerator.device, enabled=settings.capture, say=say
        )

    def rate(self, step: int) -> float:
        """The learning rate of who takes part."""
        return max(learning_rate(self._settings, step, player.turn) for player in self._players if player.turn.at(step))

    def __call__(self, step: int) -> None:
        for number, player in enumerate(self._plays):
            if player.turn.at(step):
                player.begin(step)
                player(step, step * len(self._plays) + number)
                self.whole = False
        self._ema_share.fill_(self._ema.share(step))
        self._average()
        self.whole = True

    def take(self) -> dict[str, float]:
        """The means of the losses since they were last taken; of several players their totals by name too."""
        if len(self._players) == 1:
            return self._players[0].take()
        found: dict[str, float] = {}
        for player in self._players:
            for name, value in player.take().items():
                found[player.turn.name if name == "total" else f"{player.turn.name}_{name}"] = value
                if name == "total":
                    found["total"] = found.get("total", 0.0) + value
        return found

    def close(self) -> None:
        """Gives back the GPU's memory: what is recorded refers to this, and this to what is recorded."""
        del self._average
        for player in self._players:
            player.close()


def learning_rate(settings: TrainingSettings, step: int, turn: Turn) -> float:
    """Of update `step`: it rises and falls from the first to the last that the turn is part of."""
    if settings.lr is None:
        raise ValueError("training.lr is unset: whoever knows the width of the network sets it")
    step, steps = step - turn.first, (settings.steps if turn.end is None else turn.end) - turn.first
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    done = (step - settings.warmup) / max(1, steps - settings.warmup)
    falling = {"none": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
    return settings.lr * falling[settings.decay]


class Player:
    """One turn of an update: the gradient, added up over processes, and the step of the weights it moves."""

    def __init__(
        self, network: nn.Module, turn: Turn, data: tuple[Tensor, ...], optimizer: torch.optim.Optimizer,
        settings: TrainingSettings, order: Order, *, seed: int, accelerator: Accelerator, say: Say, alone: bool,
    ) -> None:  # fmt: skip
        self.turn, self._alone = turn, alone
        self._network, self._data, self._order = network, data, order
        self._optimizer, self._settings, self._say = optimizer, settings, say
        self._seed, self._accelerator = seed, accelerator
        self._rounded = accelerator.mixed_precision == "bf16"
        device = accelerator.device
        self._mine = share_of(order.batch, accelerator)
        self._noise = Noise("training", [(seed, 0, 0)], [order.batch], order.batch, device)
        self._weights = turn.weights(network)
        self._gradient, self._parts = _one_gradient(self._weights)
        self._lr: Tensor = optimizer.param_groups[0]["lr"]
        self._sums: dict[str, Tensor] = {}
        self._batches = 0  # in the sums
        self._begun: int | None = None
        self._skips = False
        self._rows = self._mine.stop - self._mine.start
        while device.type == "cpu" and self._rows * data[0].shape[1] > CACHED_CELLS and self._rows % 2 == 0:
            self._rows //= 2  # so that processes that share a batch compute the same parts as one would
        self._record(settings.capture)

    def __call__(self, step: int, number: int) -> None:
        """Turn `number`, counted from the start of training, in update `step`."""
        self._lr.fill_(learning_rate(self._settings, step, self.turn) * self.turn.lr)
        while not self._learnt(step, number):
            pass
        self._batches += self._settings.accumulate
        average(self._gradient, self._accelerator)
        self._apply()

    def begin(self, step: int) -> None:
        if self.turn.begin and step == self.turn.first and step != self._begun:
            self.turn.begin(self._network, self._data)
            self._begun = step

    def take(self) -> dict[str, float]:
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
        del self._learn, self._apply

    def _record(self, enabled: bool) -> None:
        device, generators = self._accelerator.device, self._noise.generators
        self._learn = Captured(self._learn_from, device, generators=generators, enabled=enabled, say=self._say)
        self._apply = Captured(self._step, device, enabled=enabled, say=self._say)

    def _learnt(self, step: int, number: int) -> bool:
        """Adds up the gradient; False where it did not fit: then fewer rows are computed at once from now on."""
        before = {name: total.clone() for name, total in self._sums.items()}
        try:
            for micro in range(self._settings.accumulate):
                batch = number * self._settings.accumulate + micro
                # The last number of the key is, where one player is alone, which of the update's batches it is.
                self._key = (self._seed, step, batch - step * self._settings.accumulate)
                self._noise.rekey([self._key])
                if self._noise.device.type == "cuda":
                    self._seed_dropout(self._mine.start)
                self._learn(self._order(batch)[self._mine])
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
        make_room(recorded=not self._alone)
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
        self._take_weights()
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
                losses = self.turn.objective(self._network, batch, Share(self._noise, drawn, rows))
            (losses["total"] * (share / self._settings.accumulate)).backward()  # type: ignore[no-untyped-call]
            if "skip" in losses:
                self._skips = True
                self._gradient[-1] += losses.pop("skip").detach() * (share / self._settings.accumulate)
            for name, value in losses.items():
                means[name] = means.get(name, 0.0) + share * value.detach()
        for name, value in means.items():
            if name not in self._sums:
                self._sums[name] = torch.zeros_like(value)
            self._sums[name] += value

    def _take_weights(self) -> None:
        """Only this player's weights get a gradient, and each its part of the one vector."""
        for weight in self._network.parameters():
            weight.requires_grad_(False)
        for weight, part in zip(self._weights, self._parts, strict=True):
            weight.requires_grad_(True)
            weight.grad = part

    @torch.no_grad()
    def _step(self) -> None:
        self._take_weights()
        gradient, skip = self._gradient[:-1], self._gradient[-1]
        norm = torch.linalg.vector_norm(gradient)
        gradient *= (self._settings.clip / (norm + 1e-6)).clamp(max=1.0)
        if self._skips:  # as where a scaled gradient overflows: on the device, with no question to the host
            self._optimizer.found_inf = (skip > 0.5).float()  # type: ignore[attr-defined]
        self._optimizer.step()
        self._gradient.zero_()


def _one_gradient(weights: Sequence[nn.Parameter]) -> tuple[Tensor, list[Tensor]]:
    """The gradients of all weights as one vector, with a last number for the wish to skip; and each weight's view."""
    gradient = torch.zeros(sum(one.numel() for one in weights) + 1, device=weights[0].device)
    parts, start = [], 0
    for one in weights:
        parts.append(gradient[start : start + one.numel()].view_as(one))
        start += one.numel()
    return gradient, parts
