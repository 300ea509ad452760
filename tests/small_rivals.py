"""Rivals small enough for tests, and what their networks see."""

from typing import Any

import torch

from timediff.codec import Codec
from timediff.cohort import Cohort
from timediff.config import resolve
from timediff.generators.columns import Columns
from timediff.generators.registry import GENERATORS, generator
from timediff.randomness import Noise

RIVALS = [name for name in GENERATORS if name != "timediff"]
SMALL = {"model.hidden": 8, "training.batch": 16, "training.checkpoint_every": 1000}


def rival(name: str, **changes: object) -> Any:
    given = {key.replace("__", "."): value for key, value in changes.items()}
    return generator(name)(settings=resolve(GENERATORS[name].preset, assignments={**SMALL, **given}))


def columns_of(cohort: Cohort) -> tuple[Columns, torch.Tensor]:
    codec = Codec.fit(cohort)
    encoded = codec.encode(cohort)
    columns = Columns(codec)
    return columns, columns.join(torch.from_numpy(encoded.continuous), torch.from_numpy(encoded.discrete))


def noise_for(stays: int) -> Noise:
    return Noise("training", [(0, 0, 0)], [stays], stays, torch.device("cpu"))
