"""RMIA: how a stay's likelihood ratio stands among those of other stays; a few shadow models are enough."""

import numpy as np

from timediff.data.arrays import Floats
from timediff.evaluation.attacks.calibration import usual
from timediff.evaluation.attacks.case import AttackCase
from timediff.evaluation.attacks.loss import standard
from timediff.evaluation.attacks.registry import attack

MODELS = 2  # at most


@attack(
    "rmia",
    "run",
    title="relative loss (RMIA)",
    sentence="Compares the loss with that of one or two models of its own, and the difference with that of other "
    "patients.",
    source="Zarifzadeh, Liu and Shokri, 2024",
    shadows=True,
    reference=True,
)
def rmia(case: AttackCase) -> Floats:
    """The fraction of reference stays z with p(x | θ) / p(x) ≥ p(z | θ) / p(z); p(x) is that of models without x.

    Of equal fractions the larger ratio comes first, so that the most exposed stays are not tied.
    """
    # Of each stay the first models without it; a stay that all were trained on has no score.
    out = ~case.trained
    chosen = out & (np.cumsum(out, axis=0) <= MODELS)
    calibrated = usual(case.shadow_losses, chosen)
    others = [case.losses_by(shadow.model, case.reference) for shadow in case.shadows[:MODELS]]
    assert case.model is not None
    ratio = standard(case, calibrated) - standard(case, case.losses)
    population = np.sort(standard(case, np.mean(others, axis=0)) - standard(case, case.reference_losses))
    rank = np.searchsorted(population, ratio, side="right") / len(population)
    return np.where(np.isnan(ratio), np.nan, rank + 1e-3 * np.tanh(ratio / (np.nanstd(ratio) + 1e-9)))
