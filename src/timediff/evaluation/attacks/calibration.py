"""What an attacker learns from his shadow models: how training on a stay shows in what he measures of it."""

from collections.abc import Callable

import numpy as np

from timediff.data.arrays import Floats
from timediff.evaluation.attacks.case import AttackCase, Flags

FEWEST_OUT = 1  # shadow models that were not trained on a stay, without which nothing is known of it
Features = Callable[[AttackCase], Floats]  # of each candidate, (candidates, features); NaN = not known


def learnt(case: AttackCase, features: Features) -> Floats:
    """Scores by a logistic regression on features, trained where each shadow model in turn is the attacked one."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    rows, classes = [], []
    for number, shadow in enumerate(case.shadows):
        found = features(case.as_if(number))
        known = ~np.isnan(found).any(axis=1)
        rows.append(found[known])
        classes.append(shadow.trained[known])
    x, y = np.concatenate(rows), np.concatenate(classes)
    if len(np.unique(y)) < 2:
        return np.full(len(case.candidates), np.nan)
    scaler = StandardScaler().fit(x)
    model = LogisticRegression(C=0.1, max_iter=2000).fit(scaler.transform(x), y)
    scores = np.full(len(case.candidates), np.nan)
    found = features(case)
    known = ~np.isnan(found).any(axis=1)
    scores[known] = model.decision_function(scaler.transform(found[known]))
    return scores


def usual(values: Floats, chosen: Flags, least: int = FEWEST_OUT) -> Floats:
    """The mean over the chosen models, (candidates, K), of values (models, candidates, K); NaN of fewer than `least`.

    `chosen` is (models, candidates).
    """
    count = chosen.sum(axis=0)[:, None]
    total = (values * chosen[..., None]).sum(axis=0)
    found: Floats = np.where(count >= least, total / np.maximum(count, 1), np.nan)
    return found
