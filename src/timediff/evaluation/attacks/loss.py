"""The loss of a stay: a model that was trained on it has a lower one (Yeom et al. 2018)."""

from timediff.data.arrays import Floats
from timediff.evaluation.attacks.case import AttackCase
from timediff.evaluation.attacks.registry import attack


@attack(
    "loss",
    "run",
    title="loss",
    sentence="Calls a stay a training stay if the model's loss on it is low.",
    source="Yeom et al., 2018",
    reference=True,
)
def loss(case: AttackCase) -> Floats:
    return -standard(case, case.losses)


def standard(case: AttackCase, losses: Floats) -> Floats:
    """One number of each stay: the mean over levels, in standard deviations of real stays that were not trained on."""
    known = case.reference_losses
    scale = known.std(axis=0)
    found: Floats = ((losses - known.mean(axis=0)) / (scale + 1e-9)).mean(axis=1)
    return found
