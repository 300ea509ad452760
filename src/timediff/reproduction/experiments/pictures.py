"""Figures without numbers: maps of all stays, and features over time."""

from timediff.reproduction.experiments.base import Arm, Experiment
from timediff.reproduction.methods import EVERY, LAMBDAS, TIMEDIFF

DENSITIES = (
    "Real stays are shown as densities of at least ten, and not as points, which would be single patients; of several "
    "training seeds the first is drawn. Of data sets with fewer than 2,000 test stays at most 700 of each are shown."
)

TSNE = Experiment(
    "tsne", "t-SNE", "Figures 2, 8 to 11 and 37", DENSITIES,
    (Arm(EVERY, ("tsne",)), Arm(LAMBDAS, ("tsne",), label="λ", records_only=True)),
)  # fmt: skip
UMAP = Experiment("umap", "UMAP", "Figures 3 and 12 to 15", DENSITIES, (Arm(EVERY, ("umap",)),))
TRAJECTORIES = Experiment(
    "trajectories", "Features over time", "Figures 5 to 7, and the single stays after them",
    "Single real stays are never shown; single synthetic ones only where none is a copy of a real one.",
    (Arm((TIMEDIFF,), ("courses",)),),
)  # fmt: skip
