"""Baselines small enough for tests, and what their networks see."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.generators.common.columns import Columns
from timediff.generators.fitting import seeded_network
from timediff.generators.registry import GENERATORS
from timediff.runtime.randomness import Noise
from timediff.settings.resolve import generator_of, resolve
from timediff.training.objective import Objective

PROCESS_DIFFUSION = ["dspd-gp", "dspd-ou", "cspd-gp", "cspd-ou"]
# Those that see real columns, by generator and preset.
BASELINES = [
    "timegan", "rcgan", "crnngan", "tforcing", "pforcing", "latent-forcing", "rnn", "ehrmgan", "gtgan",
    *PROCESS_DIFFUSION,
]  # fmt: skip
PUBLISHED = [  # that are trained in another way than the preset of the generator's name
    f"{name}-published" for name in ("rcgan", "crnngan", "tforcing", "pforcing", "rnn", "ehrmgan", "gtgan")
]
EVERY_BASELINE = [*BASELINES, "halo", *PUBLISHED]
SMALL = {"model.hidden": 8, "training.batch": 16, "training.checkpoint_every": 1000}


def baseline(name: str, **changes: object) -> Any:
    """Of a preset, a baseline's own or another one."""
    given = {key.replace("__", "."): value for key, value in changes.items()}
    return GENERATORS(generator_of(name))(settings=resolve(name, assignments={**SMALL, **given}))


def columns_of(cohort: Cohort) -> tuple[Columns, Tensor]:
    codec = Codec.fit(cohort)
    columns = Columns(codec)
    return columns, columns.of(codec.encode(cohort))


def noise_for(stays: int) -> Noise:
    return Noise("training", [(0, 0, 0)], [stays], stays, torch.device("cpu"))


class Untrained(NamedTuple):
    network: Any  # nn.Module, of whichever baseline
    objectives: dict[str, Objective]
    batch: Batch
    columns: Columns

    def losses(self, objective: str) -> dict[str, Tensor]:
        """Of the whole batch, always with the same noise."""
        return self.objectives[objective].loss(self.network, self.batch, noise_for(len(self.batch)))

    def gradient(self, objective: str, loss: str = "total") -> Tensor:
        """Of one of its losses, by the parameters of the objective."""
        self.network.zero_grad()
        self.losses(objective)[loss].backward()
        parameters = self.objectives[objective].parameters(self.network)
        return torch.cat([(torch.zeros_like(one) if one.grad is None else one.grad).flatten() for one in parameters])


def untrained(model: Any, cohort: Cohort) -> Untrained:
    """The network of a baseline before training, its objectives by name, and the cohort as they see it."""
    codec = Codec.fit(cohort, model.settings.codec)
    model.settings = model.settings.for_cohort(len(cohort), codec.layout)
    network = seeded_network(model.build, codec)  # the same whatever ran before
    objectives = {objective.name: objective for objective in model.objectives(codec)}
    return Untrained(network, objectives, codec.encode(cohort), Columns(codec))
