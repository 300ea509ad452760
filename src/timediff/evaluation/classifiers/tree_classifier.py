"""Gradient-boosted trees on statistics of stays, and which statistics they go by."""

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from timediff.data.arrays import Array, Floats
from timediff.evaluation.classifiers.series_classifiers import Index
from timediff.evaluation.statistics.auc import Ranked

ITERATIONS = 400  # at most
RATE = 0.07
LEAVES = 12
PATIENCE = 15  # iterations without a lower validation loss
VALIDATION = 0.15  # fraction of the training stays
COLUMNS = 0.3  # fraction that each node may choose from: faster, and related statistics share the work
FEWEST = 20  # values in a column; scikit-learn fails if all of them are among the validation rows
CANDIDATES = 40  # statistics whose importance is measured: those that tell most by themselves


class Trees:
    """Trees that tell real rows of a table from synthetic ones."""

    def __init__(self, table: Floats, is_real: npt.NDArray[np.bool_], stays: Index, seed: int) -> None:
        """Trained on the rows of these stays; a column in which few of them have a value is left out."""
        self.columns = np.flatnonzero((~np.isnan(table[stays])).sum(axis=0) >= FEWEST)
        self.trees = HistGradientBoostingClassifier(
            max_iter=ITERATIONS,
            learning_rate=RATE,
            max_leaf_nodes=LEAVES,
            max_features=COLUMNS,
            early_stopping=True,
            validation_fraction=VALIDATION,
            n_iter_no_change=PATIENCE,
            random_state=seed,
        )
        if len(self.columns):
            with threadpool_limits(1, user_api="openmp"):  # several are trained at a time, a core each
                self.trees.fit(table[stays][:, self.columns], is_real[stays])

    def logits(self, rows: Floats) -> Floats:
        """Positive for what looks real."""
        if len(self.columns) == 0:
            return np.zeros(len(rows))
        with threadpool_limits(1, user_api="openmp"):
            return np.asarray(self.trees.decision_function(rows[:, self.columns]), np.float64)


def separation(values: Floats, is_real: npt.NDArray[np.bool_]) -> float:
    """The AUC of one statistic by itself, whichever way; where it is defined for some stays only, that counts too."""
    known = ~np.isnan(values)
    apart = [abs(_auc(known.astype(np.float64), is_real) - 0.5)]
    if known.any():
        apart.append(abs(_auc(values[known], is_real[known]) - 0.5))
    return 0.5 + max(apart)


def importances(
    trees: Trees,
    table: Floats,
    is_real: npt.NDArray[np.bool_],
    held_out: Index,
    rng: np.random.Generator,
) -> dict[int, tuple[float, float]]:
    """Of the columns that tell most by themselves: held-out AUC that is lost when shuffled, and AUC of it alone."""
    rows, truth = table[held_out], is_real[held_out]
    alone = [separation(column, truth) for column in rows.T]
    chosen = np.argsort(alone)[::-1][:CANDIDATES]
    whole = _auc(trees.logits(rows), truth)
    lost = {}
    for column in chosen:
        shuffled = rows.copy()
        shuffled[:, column] = rng.permutation(shuffled[:, column])
        lost[int(column)] = whole - _auc(trees.logits(shuffled), truth), alone[column]
    return lost


def _auc(scores: Array, positive: Array) -> float:
    area = Ranked(scores, positive).auc()
    return 0.5 if np.isnan(area) else area
