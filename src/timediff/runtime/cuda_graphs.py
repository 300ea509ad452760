"""CUDA graphs: work captured once and launched as a whole; and what is said of a GPU that is full or fails."""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor

from timediff.errors import TimeDiffError
from timediff.runtime.progress import Say, unheard

MARGIN = 1.5  # of free memory to what is captured: others, such as validation, want some too
WARM_UP = 3  # calls before the one that is captured: kernels are chosen and buffers made in them


class Captured:
    """A function of tensors of fixed shapes, whose work is all on the GPU: captured at its fourth call, then replayed.

    What it returns is overwritten by the next call. Draws of `generators` and of PyTorch's own are new at every replay.
    Without a GPU, or where capturing fails, it is the function itself.
    """

    def __init__(
        self, function: Callable[..., Any], device: torch.device, *,
        generators: Sequence[torch.Generator] = (), enabled: bool = True, say: Say = unheard,
    ) -> None:  # fmt: skip
        self._function, self._device, self._generators, self._say = function, device, generators, say
        self._enabled = enabled and device.type == "cuda"
        self._calls = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._inputs: tuple[Tensor, ...] = ()
        self._outputs: Any = None

    def __call__(self, *inputs: Tensor) -> Any:
        if not self._enabled:
            return self._function(*inputs)
        with torch.cuda.device(self._device):  # another thread's is the first, whatever this process uses
            return self._on_gpu(inputs)

    def _on_gpu(self, inputs: tuple[Tensor, ...]) -> Any:
        self._calls += 1
        if self._calls == 1:
            torch.cuda.reset_peak_memory_stats()
        if self._calls <= WARM_UP:
            return self._aside(inputs)
        if self._graph is None and not (self._fits() and self._capture(inputs)):
            self._enabled = False
            return self._function(*inputs)
        if [one.shape for one in inputs] != [one.shape for one in self._inputs]:  # the last, smaller part of a work
            return self._function(*inputs)
        for kept, given in zip(self._inputs, inputs, strict=True):
            kept.copy_(given)
        assert self._graph is not None
        self._graph.replay()
        return self._outputs

    def _aside(self, inputs: tuple[Tensor, ...]) -> Any:
        """An ordinary call, on another stream: what it leaves behind must not belong to the one that captures."""
        stream = _side_stream(torch.cuda.current_device())
        stream.wait_stream(torch.cuda.current_stream())
        try:
            with torch.cuda.stream(stream):
                return self._function(*inputs)
        finally:
            torch.cuda.current_stream().wait_stream(stream)

    def _fits(self) -> bool:
        """Whether there is memory for all that the function allocates once more; capturing cannot free any."""
        torch.cuda.empty_cache()
        needed = torch.cuda.max_memory_allocated() - torch.cuda.memory_allocated()
        if MARGIN * needed < torch.cuda.mem_get_info()[0]:
            return True
        self._say("the GPU's work is launched piece by piece: its memory is too full for a CUDA graph")
        return False

    def _capture(self, inputs: tuple[Tensor, ...]) -> bool:
        self._inputs = tuple(one.clone() for one in inputs)
        graph, stream = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            for generator in self._generators:
                graph.register_generator_state(generator)
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._outputs = self._function(*self._inputs)
        except RuntimeError as error:  # and goes on as before; if memory is short, that will say so
            torch.cuda.set_stream(stream)  # which a failed capture does not do
            self._inputs, self._outputs = (), None
            self._say(
                f"the GPU's work is launched piece by piece: no CUDA graph could be captured ({first_line(error)})"
            )
            return False
        self._graph = graph
        return True


@cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """One for all: every stream has a work space of its own."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def free_memory(*, captured: bool = False) -> None:
    """Gives back what a work that did not fit has left on the GPU; `captured`: something is that will be replayed."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
        if not captured:  # each is cut out of some larger piece of memory, which could not be given back otherwise
            torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()


def is_out_of_memory(error: Exception) -> bool:
    """Whether memory was short: PyTorch's own error, or one of the libraries that allocate by themselves."""
    said = str(error)
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in said or "ALLOC_FAILED" in said


@contextmanager
def gpu_failures() -> Iterator[None]:
    """A GPU that fails or disappears ends the work with a sentence, not a traceback."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error) or ("CUDA" not in str(error) and "cuDNN" not in str(error)):
            raise
        raise TimeDiffError(
            f"the GPU failed or is gone ({first_line(error)}). What was saved is sound: when the GPU is back, or "
            "without it, --resume goes on from there."
        ) from error


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
