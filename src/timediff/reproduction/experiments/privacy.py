"""Nearest-neighbour adversarial accuracy and membership inference risk, of all methods."""

from timediff.reproduction.experiments.base import Arm, Experiment, Number
from timediff.reproduction.experiments.fidelity import BASELINES, UNSTATED
from timediff.reproduction.methods import EVERY

MEASURES = ("nnaa", "mir")
NUMBERS = (
    Number("nnaa", "aa_test", "aa_test", "AA_test"),
    Number("nnaa", "aa_train", "aa_train", "AA_train"),
    Number("nnaa", "nnaa", "nnaa", "NNAA"),
    Number("mir", "f1", "mir", "MIR"),
)

PRIVACY = Experiment(
    "privacy", "Privacy scores", "Table 2, Tables 8 and 9",
    UNSTATED + BASELINES + "These numbers decide nothing about a release: docs/privacy.md has the attacks. Of real "
    "data the training stays themselves stand in place of synthetic ones; the paper does not say which it took.",
    (Arm(EVERY, MEASURES, records_only=True),), NUMBERS, "privacy", real="measured",
)  # fmt: skip
