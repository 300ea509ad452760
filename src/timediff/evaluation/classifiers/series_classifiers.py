"""Classifiers and regressors of series: small networks, one a repetition, each with its own weights, split, batches.

On an accelerator all repetitions train side by side, as one network (`parallel_networks`): a network of a few units
leaves the device idle, and one call serves all. On the CPU each has a core of its own. Both ways give the same
networks.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from timediff.data.arrays import Floats
from timediff.evaluation.classifiers.parallel_networks import Recipe, parallel
from timediff.runtime import seeding
from timediff.runtime.progress import Progress, part, silent

T = TypeVar("T")
Index = npt.NDArray[np.int64]
Compare = Callable[[Tensor, Tensor], Tensor]  # outputs and targets, (L, B, R, T) → the same shape
CHECK = 20  # iterations from one look at the validation stays to the next
GAIN = 1e-3  # by which a validation loss must be lower than the lowest before
PARTS = 1000  # of a piece of work, in its progress
ROWS = 4096  # stays at a time, over all repetitions
SPLIT, WEIGHTS, BATCHES, BOOTSTRAP = range(4)  # what a stream of random numbers is for


@dataclass(frozen=True)
class Repetition:
    """The stays of one repetition, as positions: a batch takes equally many from each pool."""

    pools: tuple[Index, ...]
    held_out: Index
    validation: Index | None = None


def cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(outputs, targets, reduction="none")


def logit(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs


def absolute_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).abs()


def sigmoid_absolute_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.sigmoid() - targets).abs()


def split_stream(seed: int, repetition: int) -> np.random.Generator:
    return seeding.stream("evaluation", seed, repetition, SPLIT)


def bootstrap_stream(seed: int) -> np.random.Generator:
    return seeding.stream("evaluation", seed, 0, BOOTSTRAP)


def train_and_measure(
    recipe: Recipe,
    series: npt.NDArray[np.float32],
    targets: npt.NDArray[np.float32],
    repetitions: Sequence[Repetition],
    *,
    loss: Compare,
    measure: Compare,
    seed: int,
    device: str = "cpu",
    side_by_side: bool | None = None,
    first: int = 0,
    progress: Progress = silent,
) -> list[Floats]:
    """Trains one network a repetition; for each, the mean over steps and outputs of `measure`, by held-out stay.

    `series` (N, L, C) and `targets` (N, 1 or L, T) hold all stays; repetitions say which are used for what. `first` is
    the number of the first of them, from which its streams of random numbers follow.
    """
    if side_by_side is None:
        side_by_side = torch.device(device).type == "cuda"
    data, wanted = (
        torch.from_numpy(array).to(device, torch.float32).transpose(0, 1).contiguous() for array in (series, targets)
    )
    groups = _alike(recipe, repetitions) if side_by_side else [[r] for r in range(len(repetitions))]

    def trained(number: int, progress: Progress) -> list[Floats]:
        group = groups[number]
        numbers = [first + r for r in group]
        trainer = _Trainer(recipe, data, wanted, [repetitions[r] for r in group], numbers, loss, seed)
        trainer.train(lambda iteration: progress(iteration, recipe.iterations))
        held_out = [repetitions[r].held_out for r in group]
        longest = max(map(len, held_out))
        found = trainer.measured(np.stack([np.resize(stays, longest) for stays in held_out]), measure)
        return [own[: len(stays)] for own, stays in zip(found, held_out, strict=True)]

    if len(groups) == 1 or data.is_cuda:
        found = [trained(number, part(progress, number, len(groups))) for number in range(len(groups))]
    else:
        found = in_parallel(trained, len(groups), progress)
    by_number = dict(zip((r for group in groups for r in group), (own for some in found for own in some), strict=True))
    return [by_number[r] for r in range(len(repetitions))]


def _alike(recipe: Recipe, repetitions: Sequence[Repetition]) -> list[list[int]]:
    """Which repetitions can train side by side: those whose batches, and validation stays, are as many."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for r, one in enumerate(repetitions):
        batch = (min(recipe.batch, len(pool)) for pool in one.pools)
        groups.setdefault((*batch, 0 if one.validation is None else len(one.validation)), []).append(r)
    return list(groups.values())


def in_parallel(work: Callable[[int, Progress], T], count: int, progress: Progress) -> list[T]:
    """`work(0, …)` to `work(count − 1, …)`, as many at a time as there are cores; each is the same part of progress."""
    steps, over = dict.fromkeys(range(count), 0.0), threading.Event()

    def one(number: int) -> T:
        def report(done: int, total: int, **values: float) -> None:
            if over.is_set():
                raise KeyboardInterrupt
            steps[number] = done / max(total, 1)
            progress(round(PARTS * sum(steps.values())), PARTS * count)

        return work(number, report)

    with one_core_each() as pool:
        try:
            return list(pool.map(one, range(count)))
        except BaseException:  # such as Ctrl-C: those still at work must stop, or the pool would wait for them
            over.set()
            raise


@contextmanager
def one_core_each() -> Iterator[ThreadPoolExecutor]:
    """As many threads as PyTorch uses cores, each with one of them: small networks gain nothing from sharing two."""
    cores = torch.get_num_threads()
    with ThreadPoolExecutor(cores, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        try:
            yield pool
        finally:
            pool.shutdown(cancel_futures=True)
            torch.set_num_threads(cores)


class _Trainer:
    """Some repetitions that train together; one, or all of them."""

    def __init__(
        self,
        recipe: Recipe,
        data: Tensor,
        targets: Tensor,
        repetitions: list[Repetition],
        which: list[int],
        loss: Compare,
        seed: int,
    ) -> None:
        self.recipe, self.data, self.targets, self.repetitions = recipe, data, targets, repetitions
        self.loss = loss
        self.batches = [seeding.stream("evaluation", seed, r, BATCHES) for r in which]
        weights = [seeding.stream("evaluation", seed, r, WEIGHTS) for r in which]
        self.networks = parallel(recipe, data.shape[2], targets.shape[2], weights).to(data.device)
        self.adam = torch.optim.Adam(self.networks.parameters(), lr=recipe.rate, fused=True)

    def train(self, report: Callable[[int], None]) -> None:
        best = np.full(len(self.repetitions), np.inf)
        stale = np.zeros(len(self.repetitions), np.int64)
        kept = {name: values.detach().clone() for name, values in self.networks.named_parameters()}
        for start in range(0, self.recipe.iterations, CHECK):
            count = min(CHECK, self.recipe.iterations - start)
            for index in torch.from_numpy(self._batches(count)).to(self.data.device):
                self._step(index)
            report(start + count)
            if self.recipe.patience is None:
                continue
            training = stale < self.recipe.patience  # one that has stopped keeps what it had
            lower = training & ((now := self._validation_loss()) < best - GAIN)
            best[lower], stale = now[lower], np.where(lower, 0, stale + 1)
            self._copy(dict(self.networks.named_parameters()), kept, lower)
            if (stale >= self.recipe.patience).all():
                break
        if self.recipe.patience is not None:
            self._copy(kept, dict(self.networks.named_parameters()), np.isfinite(best))
        report(self.recipe.iterations)

    def _batches(self, count: int) -> Index:
        """Batches of the next `count` iterations, (count, R, B)."""
        rows = []
        for repetition, rng in zip(self.repetitions, self.batches, strict=True):
            sizes = [min(self.recipe.batch, len(pool)) for pool in repetition.pools]
            pools = list(zip(repetition.pools, sizes, strict=True))
            rows.append([np.concatenate([rng.choice(p, n, replace=False) for p, n in pools]) for _ in range(count)])
        return np.stack([np.stack(row) for row in rows], axis=1)

    def _step(self, index: Tensor) -> None:
        outputs, targets = self._outputs(index)
        self.adam.zero_grad()
        # The mean over each network's own batch, summed over networks: no gradient depends on how many there are.
        self.loss(outputs, targets).mean(dim=(0, 1, 3)).sum().backward()  # type: ignore[no-untyped-call]
        self.adam.step()

    def _outputs(self, index: Tensor) -> tuple[Tensor, Tensor]:
        """Outputs and targets, (L or 1, B, R, T), of each network's own stays, (R, B)."""
        own = index.T
        return self.networks(self.data[:, own].flatten(2)), self.targets[:, own]

    def measured(self, stays: Index, measure: Compare) -> Floats:
        """The mean of `measure` over steps and outputs, (R, n), of each network's own stays."""
        parts = []
        with torch.no_grad():
            for index in torch.split(torch.from_numpy(stays).to(self.data.device), max(1, ROWS // len(stays)), dim=1):
                parts.append(measure(*self._outputs(index)).double().mean(dim=(0, 3)).T)
        return torch.cat(parts, dim=1).cpu().numpy()

    def _validation_loss(self) -> Floats:
        stays = np.stack([one.validation for one in self.repetitions if one.validation is not None])
        return np.asarray(self.measured(stays, self.loss).mean(axis=1))

    def _copy(self, source: dict[str, Tensor], target: dict[str, Tensor], which: npt.NDArray[np.bool_]) -> None:
        with torch.no_grad():
            for name, values in source.items():
                pairs = zip(self.networks.blocks(name, target[name]), self.networks.blocks(name, values), strict=True)
                for chosen, (new, old) in zip(which, pairs, strict=True):
                    if chosen:
                        new.copy_(old)
