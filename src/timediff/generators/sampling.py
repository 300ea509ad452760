"""Sampling in compute batches of whole blocks; a GPU whose memory is full gets smaller ones."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import torch
from torch import nn

from timediff.data.batch import Batch
from timediff.errors import TimeDiffError
from timediff.kernels.inference import Denoiser, accelerated
from timediff.runtime.cuda_graphs import free_memory, gpu_failures, is_out_of_memory
from timediff.runtime.precision import arithmetic
from timediff.runtime.progress import Progress, Say
from timediff.runtime.randomness import BLOCK, Noise, sampling_noise
from timediff.settings.training import ComputeSettings

C = TypeVar("C", bound=ComputeSettings)
STEPS_AT_ONCE = 500_000  # stays × steps that keep a GPU busy; a CPU computes a block at a time
STAYS_EACH = 64  # to a multiprocessor, where Triton kernels are used: a program of each, for 128 stays in one direction
MEMORY_EACH = 24_000  # bytes of the GPU to a step of these; it takes a third of that, or all where cuDNN has to do it


class BatchSampler(Protocol):
    """Samples the stays of one compute batch, and ticks `calls` times."""

    @property
    def calls(self) -> int: ...

    def __call__(self, noise: Noise, tick: Callable[[], None]) -> Batch: ...


@dataclass(frozen=True)
class Compute(Generic[C]):
    """How a compute batch is computed: where, of how many steps, with which settings."""

    device: torch.device
    length: int
    settings: C
    say: Say
    rows: int | None = None  # stays that the network computes at once, where memory is short; None = all of a batch

    def accelerated(self, network: nn.Module) -> Denoiser:
        """The same function as the network, to rounding, as this device computes it soonest."""
        return accelerated(network, self.device, self.length, self.settings.precision, self.say, self.rows)


# A BatchSampler whose network computes no more than so many stays at once; None = all of a batch.
MakeSampler = Callable[[int | None], BatchSampler]


def compute_batch(n: int, length: int, settings: ComputeSettings, device: torch.device) -> int:
    """Stays to sample at once, whole blocks: as set, or as many as are worth it, shared evenly among the batches."""
    if settings.batch:
        return BLOCK * -(-settings.batch // BLOCK)
    most = 1
    if device.type == "cuda":
        most = STEPS_AT_ONCE // length
        if settings.precision == "float16":
            gpu = torch.cuda.get_device_properties(device)
            most = min(STAYS_EACH * gpu.multi_processor_count, gpu.total_memory // (MEMORY_EACH * length))
    blocks = max(1, -(-n // BLOCK))
    return BLOCK * -(-blocks // -(-blocks // max(1, most // BLOCK)))


class ComputeBatches:
    """Iterates over (number of its first stay, Batch on the CPU), from stay `skip` to stay n − 1."""

    def __init__(
        self, make: MakeSampler, n: int, *, seed: int, skip: int, length: int, batch: int, device: torch.device,
        progress: Progress, say: Say,
    ) -> None:  # fmt: skip
        self._make, self._n, self._seed, self._length, self._device = make, n, seed, length, device
        self._progress, self._say = progress, say
        self._start, self._batch = skip, batch
        self._rows: int | None = None  # fewer than a block, where a GPU does not hold one
        self._done = self._begun = 0  # calls of the network, and those before the batch in hand

    def __iter__(self) -> Iterator[tuple[int, Batch]]:
        if self._device.type == "cuda" and self._device.index is not None:  # a thread's is the first unless it is set
            torch.cuda.set_device(self._device)
        self._sampler = self._make(None)
        while self._start < self._n:
            self._begun = self._done
            sampled = self._try()
            if sampled is None:  # outside of the handler, which keeps what was half computed alive
                self._take_less()
                continue
            yield self._start, sampled
            self._start += self._batch

    def _try(self) -> Batch | None:
        """The next batch; None where memory was short."""
        noise = sampling_noise(
            self._seed, self._start // BLOCK, min(self._batch, self._n - self._start), self._device
        )  # fmt: skip
        try:
            with torch.inference_mode(), arithmetic("float32"), gpu_failures():
                return self._sampler(noise, self._tick).cpu()
        except RuntimeError as error:
            if not is_out_of_memory(error):
                raise
            if self._rows == 1:
                raise TimeDiffError(
                    f"the GPU's memory does not hold one stay of {self._length:,} steps: a GPU with more of it, or a "
                    "smaller model.hidden, would."
                ) from error
        return None

    def _take_less(self) -> None:
        if self._batch > BLOCK:
            self._batch = BLOCK * -(-self._batch // BLOCK // 2)
        else:
            self._rows = (self._rows or BLOCK) // 2
        self._sampler = self._make(self._rows)
        free_memory()
        self._say(f"the GPU's memory is full: {self._rows or self._batch:,} stays are sampled at once from now on")

    def _tick(self) -> None:
        self._done += 1
        left = -(-(self._n - self._start) // self._batch)
        self._progress(self._done, self._begun + left * self._sampler.calls)
