"""MIMIC-IV with glucose, the 72 most frequent ICD codes and antibiotics, and age."""

from timediff.reproduction.experiments import fidelity, privacy
from timediff.reproduction.experiments.base import Arm, Experiment
from timediff.reproduction.experiments.downstream import TWICE
from timediff.reproduction.methods import STATIC

SUPPLEMENT = Experiment(
    "static", "Glucose, ICD codes, antibiotics and age", "Table 13 and Figures 38 to 40",
    "Codes are one channel over the 72 steps, a code a step, and antibiotics another one, as in the paper. Age is a "
    "static value, which the network's channel repeats at every step. No simulated database has these tables.",
    (Arm((STATIC,), (*fidelity.MEASURES, *privacy.MEASURES, "tstr", "tsne", "courses")),),
    (*fidelity.NUMBERS, *privacy.NUMBERS, *TWICE), "static", own_data=True, real="floor",
)  # fmt: skip
