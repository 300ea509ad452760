"""What the data sets are like, and how long methods train."""

from timediff.reproduction.experiments.base import Arm, Experiment
from timediff.reproduction.methods import BASELINES, TIMEDIFF

TIMED = (TIMEDIFF, *(one for one in BASELINES if one.name in (
    "ehrmgan", "timegan", "gtgan", "dspd-gp", "dspd-ou", "cspd-gp", "cspd-ou"
)))  # fmt: skip

DATASETS = Experiment(
    "datasets", "Statistics of the data sets", "Table 5",
    "Features are counted as the paper does: a mask for each vital sign, and the label. Our grids are those of "
    "docs/extract.md; where the budget cuts stays, these statistics are still of all of them.",
    published="datasets", told="statistics",
)  # fmt: skip
RUNTIME = Experiment(
    "runtime", "Hours of training", "Table 3, Table 11",
    "The paper's hardware is an Intel Xeon Gold 6226 and an NVIDIA GeForce RTX 2080 Ti, and its numbers of updates are "
    "not known. Where updates are cut, the hours are of so many, and cannot be compared. With several trainings at "
    "once each is slower than alone.",
    (Arm(TIMED, (), records_only=True),), published="runtime", told="times",
)  # fmt: skip
