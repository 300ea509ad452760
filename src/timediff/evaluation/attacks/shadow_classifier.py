"""A classifier of "trained on", trained on the cohorts of shadow models."""

import numpy as np

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.evaluation.attacks.calibration import learnt, usual
from timediff.evaluation.attacks.case import AttackCase
from timediff.evaluation.attacks.registry import attack

NEAREST = 3


@attack(
    "shadow-classifier",
    "cohort",
    title="classifier of shadow cohorts",
    sentence="Trains models of its own, sees in their cohorts how training on a stay shows, and looks for the same.",
    source="Stadler, Oprisanu and Troncoso, 2022",
    shadows=True,
    reference=True,
)
def shadow_classifier(case: AttackCase) -> Floats:
    """Features are log distances to the nearest synthetic stays, and how they differ from those of other models."""
    near = {id(one): _near(case, one) for one in [case.attacked, *case.shadow_cohorts]}

    def features(attacked: AttackCase) -> Floats:
        own = near[id(attacked.attacked)]
        others = np.stack([near[id(one)] for one in attacked.shadow_cohorts])
        out = usual(others, ~attacked.trained)
        return np.concatenate([own, own - out], axis=1)

    return learnt(case, features)


def _near(case: AttackCase, synthetic: Cohort) -> Floats:
    from timediff.evaluation.statistics.neighbours import nearest_few

    rows, others = (case.view.flat(cohort) for cohort in (case.candidates, synthetic))
    found: Floats = nearest_few(rows, others, NEAREST, device=case.device)
    return np.log(found + 1e-9)
