"""A small network, a loss in which every kind of noise takes part, and a training step of both."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from timediff.data.batch import Batch
from timediff.runtime.randomness import Noise
from timediff.settings.training import TrainingSettings
from timediff.training.ema import EMA
from timediff.training.loop import make_accelerator
from timediff.training.objective import Objective
from timediff.training.state import make_optimizer
from timediff.training.step import TrainingStep

BATCH, STAYS = 24, 60


def small_network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 1))


def stays() -> Batch:
    """Of one step and five channels."""
    continuous = torch.randn(STAYS, 1, 5, generator=torch.Generator().manual_seed(1))
    return Batch.of(continuous, torch.zeros(STAYS, 1, 0, dtype=torch.int32))


def noisy_loss(model: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
    x = batch.continuous[:, 0] + 0.1 * noise.normal(5) + noise.stratified()[:, None] + noise.uniform(5)
    return {"total": model(x[:, None]).square().mean(), "other": x.mean()}


def training_step(
    network: nn.Module, objectives: Sequence[Objective], said: list[str] | None = None, ema: EMA | None = None,
    optimizers: list[torch.optim.Optimizer] | None = None, **changes: Any,
) -> TrainingStep:  # fmt: skip
    """The optimizers are put into the list, where one is given."""
    given: dict[str, Any] = {"batch": BATCH, "accumulate": 1, "lr": 0.01, **changes}
    settings = TrainingSettings(**given)
    made = [make_optimizer(one.parameters(network), settings, one.optimizer) for one in objectives]
    if optimizers is not None:
        optimizers += made
    return TrainingStep(
        network, objectives, stays(), made, ema or EMA(network, 0.9), settings,
        seed=3, accelerator=make_accelerator(settings), say=(said if said is not None else []).append,
    )  # fmt: skip
