"""A network of one number, whose loss is its distance from the data: what training does to it can be worked out."""

from typing import Any

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.runtime.randomness import Noise
from timediff.settings.training import TrainingSettings
from timediff.training.objective import Objective


class OneNumber(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1))


def data(values: Tensor) -> Batch:
    """Stays of one step with one value each."""
    return Batch.of(values[:, None, None], torch.zeros(len(values), 1, 0, dtype=torch.int32))


def squared(network: Any, batch: Batch, noise: Noise) -> dict[str, Tensor]:
    """Its distance from the data, with a little noise of its own."""
    return {"total": (network.w - batch.continuous[:, 0] + 0.01 * noise.normal(1)).square().mean()}


ALONE = (Objective(squared),)


def one_number_settings(**changes: Any) -> TrainingSettings:
    base: dict[str, Any] = {
        "steps": 300, "batch": 10, "accumulate": 1, "lr": 0.01, "ema": 0.0, "validate_every": 5, "validation": 0.1,
    }  # fmt: skip
    return TrainingSettings(**{**base, **changes})
