"""Distance to the nearest synthetic stay."""

from timediff.data.arrays import Floats
from timediff.evaluation.attacks.case import AttackCase
from timediff.evaluation.attacks.registry import attack


@attack(
    "distance",
    "cohort",
    title="nearest synthetic stay",
    sentence="Calls a stay a training stay if a synthetic stay lies near.",
    source="Chen et al., GAN-Leaks, 2020",
    reference=True,
)
def distance(case: AttackCase) -> Floats:
    from timediff.evaluation.statistics.neighbours import nearest

    rows = (case.view.flat(cohort) for cohort in (case.candidates, case.attacked))
    return -nearest(*rows, device=case.device)
