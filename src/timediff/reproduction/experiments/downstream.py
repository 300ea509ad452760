"""Predicting the outcome: after training on synthetic stays, and on real and synthetic ones together."""

from timediff.reproduction.experiments.base import Arm, Experiment, Number
from timediff.reproduction.methods import ABLATION, BASELINES, FAST, TIMEDIFF

SOFTMAX = ABLATION[1]
FIGURES = "The paper draws these numbers and prints none, so there is nothing beside ours."
METHODS = (TIMEDIFF, FAST, *BASELINES, SOFTMAX)
TWICE = (Number("tstr", "tstr", "tstr", "TSTR"), Number("tstr", "trtr", "trtr", "TRTR"))

TSTR = Experiment(
    "tstr", "Train on synthetic, test on real", "Figures 4, 16 and 18 to 26",
    f"{FIGURES} The label is that of the data set, which is not death in hospital for PhysioNet 2019.",
    (Arm(METHODS, ("tstr",), records_only=True),), TWICE,
)  # fmt: skip
TSRTR = Experiment(
    "tsrtr", "Train on synthetic and real, test on real", "Figures 4, 17, 27 to 35 and 36",
    f"{FIGURES} Where a data set has fewer than 2,000 training stays, all of them are the real ones.",
    (
        Arm(METHODS, ("tsrtr",), "some", "2,000 real stays", True),
        Arm((TIMEDIFF,), ("tsrtr",), "train", "all real stays", True),
    ),
    (Number("tsrtr", "auc at", "tsrtr", "TSRTR"),),
)  # fmt: skip
RNN_CLASSIFIERS = Experiment(
    "rnn-classifiers", "Recurrent networks as classifiers", "Table 10", "",
    (Arm((TIMEDIFF,), ("tstr",), records_only=True),),
    tuple(
        Number("tstr", what, what, f"{what.upper()}, {name}", f"{name}, series")
        for name in ("GRU", "LSTM") for what in ("tstr", "trtr")
    ),
    "rnn-classifiers",
)  # fmt: skip
