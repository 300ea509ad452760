"""The training loop: Accelerate for devices and processes, and nothing in it that depends on when it was started.

Order of stays and noise follow from (seed, number of the update), so a resumed run takes the very steps that an
uninterrupted one would have taken.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

import torch
from accelerate import Accelerator
from torch import Tensor, nn

from timediff import devices
from timediff.capture import gpu_failures
from timediff.config import TrainingSettings
from timediff.errors import Lost, Stopped, TimeDiffError
from timediff.progress import Progress, silent
from timediff.training.checkpoints import Checkpoints
from timediff.training.ema import EMA
from timediff.training.log import Log
from timediff.training.processes import any_of, of_the_first
from timediff.training.signals import stop_on_signals
from timediff.training.turns import Turn
from timediff.training.update import Update
from timediff.training.validation import Validation

TOGETHER = 10  # updates after which many processes ask each other whether to stop


def train(
    network: nn.Module,
    turns: tuple[Turn, ...],
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

    With stays held out, the averaged weights with the lowest loss on them, that of the first turn, are returned.
    """
    accelerator = accelerator or make_accelerator(settings)
    device = accelerator.device
    data = tuple(part.to(device) for part in data)
    network.to(device).train()
    ema = EMA(network, settings.ema)
    optimizers = {_optimizer_part(turn): make_optimizer(turn.weights(network), settings) for turn in turns}
    checkpoints = Checkpoints(folder / "checkpoints", settings.keep) if folder else None
    judge = None
    if held_out:
        judge = Validation(network, turns[0].objective, tuple(part.to(device) for part in held_out), seed)
    with devices.first_first():
        start = _restore(checkpoints, network, ema, optimizers, judge, say)
    update = Update(
        network, turns, data, list(optimizers.values()), ema, settings, seed=seed, accelerator=accelerator, say=say
    )

    def save(step: int) -> None:
        if checkpoints and accelerator.is_main_process:
            checkpoints.write(
                step,
                {"model": network.state_dict(), "ema": ema.weights}
                | {part: _flattened(optimizer) for part, optimizer in optimizers.items()}
                | (judge.parts() if judge else {}),
            )

    log = Log(folder, start) if folder and accelerator.is_main_process else nullcontext()
    alone = accelerator.num_processes == 1
    since, clock, written, done, unlooked = 0, time.monotonic(), start, start, False

    @contextmanager
    def saved_if_alone() -> Iterator[None]:
        """If another process has gone, what this one has is saved if it is whole: a turn is taken by all or by none."""
        try:
            yield
        except Lost:
            if done > written and update.whole and accelerator.is_main_process:
                if judge and unlooked:  # the first one's loss is what the others would have been told
                    judge.look(ema.weights, done)
                _require_numbers(0.0, network, done, settings, written if folder else None)
                save(done)
            raise

    with stop_on_signals() as stop, log, torch.random.fork_rng(), closing(update), gpu_failures(), saved_if_alone():
        for step in range(start, settings.steps):
            if judge and judge.over(settings.patience):
                break
            update(step)
            since, done = since + 1, step + 1
            if judge and (done % settings.validate_every == 0 or done == settings.steps):
                unlooked = True
                judge.look(ema.weights, done, lambda loss: of_the_first(loss, accelerator))
                unlooked = False
            last = done == settings.steps or bool(judge and judge.over(settings.patience))
            means = {}
            if done % settings.log_every == 0 or last:
                means = update.take()
                rate = since * settings.accumulate * update.batch / (time.monotonic() - clock)
                if isinstance(log, Log):
                    seen = {"held_out": judge.latest} if judge and judge.seen else {}
                    log.write(done, {**means, **seen, "lr": update.rate(step), "stays_per_second": rate})
                since, clock = 0, time.monotonic()
            progress(
                settings.steps if last else done,
                settings.steps,
                **({"loss": means["total"], "rate": rate} if means else {}),
            )
            asked = alone or done % TOGETHER == 0  # all stop after the same update
            stopping = asked and not last and any_of(stop.requested, accelerator)
            saving = done % settings.checkpoint_every == 0 or last or stopping
            if means or saving:
                _require_numbers(means.get("total", 0.0), network, done, settings, written if folder else None)
            if saving:
                save(done)
                written = done
            if stopping:
                any_of(False, accelerator)  # none leaves before the first has saved
                raise Stopped(f"stopped at update {done:,} of {settings.steps:,}")
    if judge and judge.seen:
        say(f"held-out loss was lowest after update {judge.best_step:,}: those weights are kept")
        return judge.best
    return ema.weights


def make_optimizer(weights: list[nn.Parameter], settings: TrainingSettings) -> torch.optim.Adam:
    """Adam, whose learning rate is a tensor: what is recorded once then follows its changes."""
    device = weights[0].device
    # A list and no weight decay: the order of parameters is the order of their states in a checkpoint.
    return torch.optim.Adam(
        weights, lr=torch.zeros((), device=device), betas=settings.betas,
        fused=True, capturable=device.type == "cuda",
    )  # fmt: skip


def _require_numbers(
    loss: float, network: nn.Module, done: int, settings: TrainingSettings, written: int | None
) -> None:
    """A loss or a weight that is no number is never saved."""
    if math.isfinite(loss) and bool(torch.stack(torch._foreach_norm(list(network.parameters()))).isfinite().all()):
        return
    kept = "" if not written else f" The checkpoint of update {written:,} is sound."
    raise TimeDiffError(
        f"training broke down before update {done:,}: the loss or a weight is no longer a number. "
        f"Start again with a lower training.lr than {settings.lr}.{kept}"
    )


def make_accelerator(settings: TrainingSettings) -> Accelerator:
    from accelerate.state import AcceleratorState

    # Without CUDA the CPU: Apple's GPUs have no double precision, which the schedules need.
    cpu = not torch.cuda.is_available()
    precision = "bf16" if settings.precision == "bfloat16" and not cpu else "no"
    # Accelerate keeps its precision for the whole process; another fit in the same process may want another.
    AcceleratorState._reset_state(reset_partial_state=False)
    return Accelerator(mixed_precision=precision, cpu=cpu)


def _restore(
    checkpoints: Checkpoints | None,
    network: nn.Module,
    ema: EMA,
    optimizers: dict[str, torch.optim.Adam],
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
    for part, optimizer in optimizers.items():
        state: dict[int, dict[str, Tensor]] = {}
        for name, value in checkpoint.parts[part].items():
            number, _, key = name.partition(".")
            state.setdefault(int(number), {})[key] = value
        optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return checkpoint.step


def _optimizer_part(turn: Turn) -> str:
    """Of a checkpoint."""
    return f"optimizer-{turn.name}" if turn.name else "optimizer"


def _flattened(optimizer: torch.optim.Adam) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{number}.{key}": value for number, entry in state.items() for key, value in entry.items()}
