"""LiRA: the likelihood ratio of a stay's losses, had the model been trained on it or not (Carlini et al. 2022).

Losses of many noise levels are one vector. Each level's mean without a stay (offline), or with and without it (online),
is that of the shadow models; how much each level tells is learnt where shadow models are attacked by the others.
"""

import numpy as np

from timediff.data.arrays import Floats
from timediff.evaluation.attacks.calibration import learnt, usual
from timediff.evaluation.attacks.case import AttackCase
from timediff.evaluation.attacks.registry import attack

PRIOR = 2.0  # models' worth of belief that training on any stay shows as on the average one


@attack(
    "lira-offline",
    "run",
    title="likelihood ratio (LiRA), offline",
    sentence="Compares the losses with those of models of its own that were not trained on the stay.",
    source="Carlini et al., 2022",
    shadows=True,
    reference=True,
)
def lira_offline(case: AttackCase) -> Floats:
    return learnt(case, _below_usual)


@attack(
    "lira",
    "run",
    title="likelihood ratio (LiRA), online",
    sentence="Compares the losses with those of models of its own that were trained on the stay, and of others that "
    "were not.",
    source="Carlini et al., 2022",
    shadows=True,
    reference=True,
)
def lira(case: AttackCase) -> Floats:
    return learnt(case, lambda attacked: np.concatenate([_below_usual(attacked), _ratio(attacked)], axis=1))


def _below_usual(case: AttackCase) -> Floats:
    """How far below those of models without the stay its losses are."""
    return usual(case.shadow_losses, ~case.trained) - case.losses


def _ratio(case: AttackCase) -> Floats:
    """log N(ℓ; with) − log N(ℓ; without) of each stay, summed over levels; the variance of a level is that of all."""
    losses, trained = case.shadow_losses, case.trained
    without = usual(losses, ~trained)
    with_count = trained.sum(axis=0)[:, None]
    with_mean = usual(losses, trained)
    drop = without - with_mean
    general = np.nanmean(drop, axis=0)
    # A few models say little of one stay: its own drop is drawn towards that of all.
    drop = (np.nan_to_num(drop) * with_count + PRIOR * general) / (with_count + PRIOR)
    left = np.where(trained[..., None], losses - with_mean, losses - without)
    variance = np.nanmean(np.square(left), axis=(0, 1)) + 1e-9
    found: Floats = ((without - case.losses - drop / 2) * drop / variance).sum(axis=1, keepdims=True)
    return found


def exposure(case: AttackCase) -> Floats:
    """How much training on a stay shows in its losses, by the shadow models alone, (candidates,)."""
    losses, trained = case.shadow_losses, case.trained
    drop = usual(losses, ~trained) - usual(losses, trained)
    shown: Floats = (drop / (np.nanstd(losses - losses.mean(axis=0), axis=(0, 1)) + 1e-9)).mean(axis=1)
    return shown
