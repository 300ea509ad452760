"""Many processes, one training: who computes what, and what they agree on. Accelerate starts them."""

import torch
from accelerate import Accelerator
from torch import Tensor

from timediff.errors import TimeDiffError
from timediff.runtime.devices import together


def rows_of_process(batch: int, accelerator: Accelerator) -> slice:
    """The rows of each batch that this process computes."""
    if batch % accelerator.num_processes:
        raise TimeDiffError(
            f"training.batch is {batch}, which {accelerator.num_processes} processes cannot share equally: "
            f"choose a multiple of {accelerator.num_processes}."
        )
    size = batch // accelerator.num_processes
    return slice(accelerator.process_index * size, (accelerator.process_index + 1) * size)


def average(value: Tensor, accelerator: Accelerator) -> None:
    """The mean over all processes, in place."""
    if accelerator.num_processes == 1:
        return
    with together():
        torch.distributed.all_reduce(value)
    value /= accelerator.num_processes


def broadcast(value: float, accelerator: Accelerator) -> float:
    """The first process's value, so that all decide alike."""
    if accelerator.num_processes == 1:
        return value
    shared = torch.tensor([value], dtype=torch.float64, device=accelerator.device)
    with together():
        torch.distributed.broadcast(shared, src=0)
    return float(shared)


def any_process(flag: bool, accelerator: Accelerator) -> bool:
    """Whether it is so in any process; each waits for the others."""
    if accelerator.num_processes == 1:
        return flag
    shared = torch.tensor([float(flag)], device=accelerator.device)
    average(shared, accelerator)
    return bool(shared > 0)
