"""MIMIC-IV with glucose, the 72 most frequent ICD codes and antibiotics, and age."""

from timediff.reproduction.experiments import fidelity, privacy
from timediff.reproduction.experiments.base import Arm, Experiment
from timediff.reproduction.experiments.downstream import TWICE
from timediff.reproduction.methods import STATIC

SUPPLEMENT = Experiment(
    "static", "Glucose, ICD codes, antibiotics and age", "Table 13 and Figures 38 to 40",
    "Codes and antibiotics are static binary features, and age a static value, where the paper packs each into one "
    "channel over 72 steps. Names of antibiotics are merged whatever their case. No simulated database has these "
    "tables.",
    (Arm((STATIC,), (*fidelity.MEASURES, *privacy.MEASURES, "tstr", "tsne", "courses")),),
    (*fidelity.NUMBERS, *privacy.NUMBERS, *TWICE), "static", own_data=True, real="floor",
)  # fmt: skip
