"""DOMIAS: where synthetic stays are denser than real ones, training stays lie (van Breugel et al. 2023)."""

import numpy as np

from timediff.data.arrays import Floats
from timediff.evaluation.attacks.case import AttackCase
from timediff.evaluation.attacks.registry import attack

NEIGHBOURS = 3
AXES = 32  # principal ones


@attack(
    "domias",
    "cohort",
    title="density ratio",
    sentence="Calls a stay a training stay if synthetic stays are denser around it than real stays of other patients.",
    source="van Breugel et al., 2023",
    reference=True,
)
def domias(case: AttackCase) -> Floats:
    """log p_synthetic(x) − log p_reference(x), each by the distance to the third nearest of as many stays.

    On the principal axes of the real stays: masks, classes and values have one density there.
    """
    from timediff.evaluation.statistics.neighbours import nearest_few

    known = case.view.flat(case.reference)
    axes = np.linalg.svd(known - known.mean(axis=0), full_matrices=False)[2][:AXES]
    size = min(len(case.reference), len(case.attacked))

    def near(cohort_rows: Floats, key: int) -> Floats:
        rows = cohort_rows[case.rng(41, key).permutation(len(cohort_rows))[:size]]
        found: Floats = nearest_few(candidates, rows, min(NEIGHBOURS, size), device=case.device)[:, -1]
        return np.log(found + 1e-9)

    candidates = case.view.flat(case.candidates) @ axes.T
    # A density goes as one over the distance to the power of the number of axes, which orders no stay differently.
    return near(known @ axes.T, 0) - near(case.view.flat(case.attacked) @ axes.T, 1)
