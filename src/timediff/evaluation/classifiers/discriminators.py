"""Discriminators of series: how each is trained, on which stays, and what it says of those held out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Floats, Units
from timediff.runtime.progress import Progress, silent

if TYPE_CHECKING:
    from timediff.evaluation.classifiers.parallel_networks import Recipe
    from timediff.evaluation.classifiers.series_classifiers import Index, Repetition

Architecture = Literal["paper", "strong", "convolution"]
TRAINING, VALIDATION = 0.8, 0.15  # fraction of all stays, and of the training stays


def recipe(architecture: Architecture, channels: int) -> "Recipe":
    from timediff.evaluation.classifiers.parallel_networks import Recipe

    if architecture == "paper":
        return Recipe(max(channels // 2, 1))
    if architecture == "convolution":
        return Recipe(32, layers=3, network="convolution", iterations=1000, batch=64, rate=3e-3, patience=15)
    # So patient because a weak signal, a few mask bits in a thousand flipped, takes hundreds of iterations to show.
    return Recipe(64, layers=2, reads="summary", batch=64, rate=3e-3, patience=25)


def network_logits(
    architecture: Architecture,
    series: npt.NDArray[np.float32],
    is_real: npt.NDArray[np.bool_],
    splits: "Sequence[Repetition]",
    *,
    seed: int,
    device: str,
    first: int = 0,
    progress: Progress = silent,
) -> list[Floats]:
    """What networks of one kind, one a split, say of their held-out stays."""
    from timediff.evaluation.classifiers.series_classifiers import cross_entropy, logit, train_and_measure

    return train_and_measure(
        recipe(architecture, series.shape[2]),
        series,
        is_real.astype(np.float32)[:, None, None],
        splits,
        loss=cross_entropy,
        measure=logit,
        seed=seed,
        device=device,
        first=first,
        progress=progress,
    )


def split(
    architecture: Architecture, real: "int | Units", synthetic: "int | Units", seed: int, repetition: int
) -> "Repetition":
    """Equally many real and synthetic stays, each split at random; synthetic ones come after all real ones.

    Given the units of the stays (patients, say) and not their number, none is on both sides.
    """
    from timediff.evaluation.classifiers.series_classifiers import Repetition, split_stream

    rng = split_stream(seed, repetition)
    several = [np.arange(kind) if isinstance(kind, int) else kind for kind in (real, synthetic)]
    count = min(map(len, several))
    orders = [_by_unit(units, rng)[:count] for units in several]
    training = int(TRAINING * count)
    cuts = [_between_units(units[order], training) for units, order in zip(several, orders, strict=True)]
    validation = 0 if architecture == "paper" else int(VALIDATION * training)
    orders[1] = len(several[0]) + orders[1]
    return Repetition(
        pools=tuple(stays[validation:cut] for stays, cut in zip(orders, cuts, strict=True)),
        held_out=np.concatenate([stays[cut:] for stays, cut in zip(orders, cuts, strict=True)]),
        validation=np.concatenate([stays[:validation] for stays in orders]) if validation else None,
    )


def split_by_period(
    architecture: Architecture, real: Units, synthetic: Units, seed: int, repetition: int
) -> "Repetition":
    """The same, where both kinds lie in the same periods of one long series: each period is on one side.

    With periods of its own for each kind, a classifier would learn when a window was, and be wrong about others.
    """
    from timediff.evaluation.classifiers.series_classifiers import Repetition, split_stream

    rng = split_stream(seed, repetition)
    kinds = real, synthetic
    place = rng.permutation(int(max(units.max() for units in kinds)) + 1)  # of each period
    cut = min(max(1, round(TRAINING * len(place))), len(place) - 1)
    sides = []
    for low, high in ((0, cut), (cut, len(place))):
        inside = [np.flatnonzero((units >= 0) & (place[units] >= low) & (place[units] < high)) for units in kinds]
        count = min(map(len, inside))
        chosen = [rng.permutation(stays)[:count] for stays in inside]
        ordered = [stays[np.argsort(place[units[stays]])] for units, stays in zip(kinds, chosen, strict=True)]
        sides.append([ordered[0], len(real) + ordered[1]])
    training, held_out = sides
    validation = 0 if architecture == "paper" else int(VALIDATION * len(training[0]))
    return Repetition(
        pools=tuple(stays[validation:] for stays in training),
        held_out=np.concatenate(held_out),
        validation=np.concatenate([stays[:validation] for stays in training]) if validation else None,
    )


def _by_unit(units: Units, rng: np.random.Generator) -> "Index":
    """Positions of all stays, the units in a random order."""
    order = rng.permutation(int(units.max(initial=-1)) + 1)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return np.argsort(place[units], kind="stable")


def _between_units(units: Units, wanted: int) -> int:
    """Where a row of stays can be cut, at `wanted` or before it, so that no unit is on both sides."""
    cut = wanted
    while 0 < cut < len(units) and units[cut - 1] == units[cut]:
        cut -= 1
    return cut or wanted  # one unit alone cannot be kept together
