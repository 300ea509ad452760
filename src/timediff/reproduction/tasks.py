"""Tasks of workers: extractions, trainings and measurements; and what is done when a GPU is gone."""

from typing import Protocol

from timediff.errors import TimeDiffError
from timediff.runtime.cuda_graphs import is_out_of_memory
from timediff.runtime.progress import Say, Watch

GPU_LOST = "the GPU could not be used any more; when it is back, --resume does what is missing."
LOST = ("CUDA error", "CUDA driver", "device-side assert", "cuDNN error", "CUBLAS_STATUS", "NVML")


class StudyTask(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def stage(self) -> str:
        """What all tasks of this kind are doing."""
        ...

    @property
    def on_gpu(self) -> bool:
        """Whether it is for a GPU, where there is one."""
        ...

    @property
    def done(self) -> bool: ...

    def carry_out(self, watch: Watch, say: Say) -> None: ...


def device() -> str:
    """ "cuda", or "cpu" where there is no GPU."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def carry_out(task: StudyTask, begun_on: str, watch: Watch, say: Say) -> None:
    """In a worker. A process that has lost its GPU is of no use any more, so it ends, and says why."""
    try:
        carry_out_in_process(task, begun_on, watch, say)
    except (RuntimeError, TimeDiffError) as error:
        if not (is_lost(error) or is_lost(error.__cause__)):
            raise
        raise SystemExit(GPU_LOST) from error


def carry_out_in_process(task: StudyTask, begun_on: str, watch: Watch, say: Say) -> None:
    """No training goes on on the CPU that was begun on a GPU: it would take for ever."""
    if task.on_gpu and begun_on == "cuda" and device() == "cpu":
        raise TimeDiffError(GPU_LOST)
    task.carry_out(watch, say)


def is_lost(error: BaseException | None) -> bool:
    """Whether a GPU has failed; one whose memory was short has not."""
    if not isinstance(error, RuntimeError) or is_out_of_memory(error):
        return False
    return any(word in str(error) for word in LOST)
