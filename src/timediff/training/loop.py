"""The training loop: Accelerate for devices and processes, and nothing in it that depends on when it was started.

Order of stays and noise follow from (seed, number of the update), so a resumed run takes the very steps that an
uninterrupted one would have taken.
"""

import math
import time
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from timediff.config import TrainingSettings
from timediff.errors import Stopped, TimeDiffError
from timediff.progress import Progress, silent
from timediff.randomness import Noise, seed_torch
from timediff.training.checkpoints import Checkpoints
from timediff.training.ema import EMA
from timediff.training.log import Log
from timediff.training.order import Order
from timediff.training.signals import stop_on_signals
from timediff.training.validation import Objective, Validation


def learning_rate(settings: TrainingSettings, step: int) -> float:
    """The learning rate of update `step` = 0 … steps − 1."""
    if settings.lr is None:
        raise ValueError("training.lr is unset: whoever knows the width of the network sets it")
    if step < settings.warmup:
        return settings.lr * (step + 1) / settings.warmup
    done = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
    falling = {"none": 1.0, "linear": 1 - done, "cosine": (1 + math.cos(math.pi * done)) / 2}
    return settings.lr * falling[settings.decay]


def train(
    network: nn.Module,
    objective: Objective,
    data: tuple[Tensor, ...],
    settings: TrainingSettings,
    *,
    seed: int,
    folder: Path | None = None,
    held_out: tuple[Tensor, ...] | None = None,
    accelerator: Accelerator | None = None,
    progress: Progress = silent,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Tensor]:
    """Trains in place and returns the averaged weights; goes on from the newest checkpoint in `folder`.

    With stays held out, the averaged weights with the lowest loss on them are returned.
    """
    accelerator = accelerator or make_accelerator(settings)
    device = accelerator.device
    data = tuple(part.to(device) for part in data)
    network.to(device).train()
    # A list and no weight decay: the order of parameters is the order of their states in a checkpoint.
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate(settings, 0), betas=settings.betas, fused=True)
    ema = EMA(network, settings.ema)
    checkpoints = Checkpoints(folder / "checkpoints", settings.keep) if folder else None
    judge = Validation(network, objective, tuple(part.to(device) for part in held_out), seed) if held_out else None
    start = _restore(checkpoints, network, ema, optimizer, judge, say)
    wrapped, stepper = accelerator.prepare(network, optimizer)

    def save(step: int) -> None:
        if checkpoints and accelerator.is_main_process:
            checkpoints.write(
                step,
                {"model": network.state_dict(), "ema": ema.weights, "optimizer": _flattened(optimizer)}
                | (judge.parts() if judge else {}),
            )

    batch = settings.batch_for(len(data[0]))
    order = Order(len(data[0]), batch, seed, device)
    mine = _share(batch, accelerator)
    log = Log(folder, start) if folder and accelerator.is_main_process else nullcontext()
    sums: dict[str, Tensor] = {}
    since, clock, written = 0, time.monotonic(), start
    with stop_on_signals() as stop, log, torch.random.fork_rng():
        for step in range(start, settings.steps):
            if judge and judge.over(settings.patience):
                break
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(settings, step)
            for micro in range(settings.accumulate):
                index = order(step * settings.accumulate + micro)[mine]
                noise = Noise("training", [(seed, step, micro)], [batch], batch, device)
                noise = noise if accelerator.num_processes == 1 else Share(noise, mine)
                torch.manual_seed(seed_torch("training", seed, step, micro, accelerator.process_index))  # for dropout
                with accelerator.accumulate(wrapped):
                    losses = objective(wrapped, tuple(part[index] for part in data), noise)
                    accelerator.backward(losses["total"])
                    if accelerator.sync_gradients:
                        accelerator.clip_grad_norm_(wrapped.parameters(), settings.clip)
                    stepper.step()
                    stepper.zero_grad()
                for name, value in losses.items():
                    sums[name] = sums.get(name, torch.zeros((), device=device)) + value.detach()
            ema.update(network, step)
            since, done = since + 1, step + 1
            looked = judge is not None and (done % settings.validate_every == 0 or done == settings.steps)
            if judge and looked:
                judge.look(ema.weights, done)
            last = done == settings.steps or bool(judge and judge.over(settings.patience))
            means = {}
            if done % settings.log_every == 0 or last:
                means = {name: float(total) / (since * settings.accumulate) for name, total in sums.items()}
                rate = since * settings.accumulate * batch / (time.monotonic() - clock)
                if isinstance(log, Log):
                    seen = {"held_out": judge.latest} if judge and judge.seen else {}
                    log.write(done, {**means, **seen, "lr": learning_rate(settings, step), "stays_per_second": rate})
                sums, since, clock = {}, 0, time.monotonic()
            progress(
                settings.steps if last else done,
                settings.steps,
                **({"loss": means["total"], "rate": rate} if means else {}),
            )
            stopping = stop.requested and not last
            saving = done % settings.checkpoint_every == 0 or last or stopping
            if means or saving:
                _require_numbers(means.get("total", 0.0), network, done, settings, written if folder else None)
            if saving:
                save(done)
                written = done
            if stopping:
                raise Stopped(f"stopped at update {done:,} of {settings.steps:,}")
    if judge and judge.seen:
        say(f"held-out loss was lowest after update {judge.best_step:,}: those weights are kept")
        return judge.best
    return ema.weights


def _require_numbers(
    loss: float, network: nn.Module, done: int, settings: TrainingSettings, written: int | None
) -> None:
    """A loss or a weight that is no number is never saved."""
    if math.isfinite(loss) and all(bool(torch.isfinite(value).all()) for value in network.parameters()):
        return
    kept = "" if not written else f" The checkpoint of update {written:,} is sound."
    raise TimeDiffError(
        f"training broke down before update {done:,}: the loss or a weight is no longer a number. "
        f"Start again with a lower training.lr than {settings.lr}.{kept}"
    )


def make_accelerator(settings: TrainingSettings) -> Accelerator:
    from accelerate.state import AcceleratorState

    precision = {"float32": "no", "bfloat16": "bf16"}[settings.precision]
    # Accelerate keeps its precision for the whole process; another fit in the same process may want another.
    AcceleratorState._reset_state(reset_partial_state=False)
    # Without CUDA the CPU: Apple's GPUs have no double precision, which the schedules need.
    cpu = not torch.cuda.is_available()
    return Accelerator(gradient_accumulation_steps=settings.accumulate, mixed_precision=precision, cpu=cpu)


def _share(batch: int, accelerator: Accelerator) -> slice:
    """The rows of each batch that this process computes."""
    if batch % accelerator.num_processes:
        raise TimeDiffError(
            f"training.batch is {batch}, which {accelerator.num_processes} processes cannot share equally: "
            f"choose a multiple of {accelerator.num_processes}."
        )
    size = batch // accelerator.num_processes
    return slice(accelerator.process_index * size, (accelerator.process_index + 1) * size)


class Share(Noise):
    """One process's rows of the noise of a whole batch, so that many processes see what one would."""

    def __init__(self, noise: Noise, rows: slice) -> None:
        self._whole, self._rows = noise, rows
        self.rows, self.block, self.device = [rows.stop - rows.start], noise.block, noise.device

    def spread(self) -> Tensor:
        return self._whole.spread()[self._rows]

    def _draw(self, kind: str, shape: tuple[int, ...]) -> Tensor:
        return self._whole._draw(kind, shape)[self._rows]


def _restore(
    checkpoints: Checkpoints | None,
    network: nn.Module,
    ema: EMA,
    optimizer: torch.optim.Adam,
    judge: Validation | None,
    say: Callable[[str], None],
) -> int:
    checkpoint = checkpoints.newest(say) if checkpoints else None
    if checkpoint is None:
        return 0
    say(f"going on from update {checkpoint.step:,}")
    network.load_state_dict(checkpoint.parts["model"])
    ema.load(checkpoint.parts["ema"])
    if judge and "validation" in checkpoint.parts:
        judge.load(checkpoint.parts)
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in checkpoint.parts["optimizer"].items():
        number, _, key = name.partition(".")
        state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return checkpoint.step


def _flattened(optimizer: torch.optim.Adam) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{number}.{key}": value for number, entry in state.items() for key, value in entry.items()}
