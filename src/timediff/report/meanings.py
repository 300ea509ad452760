"""Meanings: what every number of an evaluation says, in words for someone who has never seen it, and its good value."""

import re
from typing import NamedTuple

from timediff.metrics.record import Score


class Meaning(NamedTuple):
    title: str
    sentence: str
    good: str  # the value that a perfect generator has; empty where the number is a yardstick for others


class Family(NamedTuple):
    title: str
    question: str
    sentence: str


LOOKS, USEFUL, EXPOSES = "Does it look real?", "Is it useful?", "Whom could it expose?"
QUESTIONS = (LOOKS, USEFUL, EXPOSES)

FAMILIES = {
    "discriminative": Family(
        "Telling real from synthetic",
        LOOKS,
        "A neural network (the judge) learns to tell synthetic stays from real ones and is then tested on stays that "
        "it has not met. If it can only guess, the synthetic stays look real to it.",
    ),
    "fidelity": Family(
        "The statistics of the values",
        LOOKS,
        "Distributions, gaps and relations of the measured values, synthetic against real stays that the generator "
        "has not seen.",
    ),
    "predictive": Family(
        "Forecasting the next step",
        USEFUL,
        "A neural network learns from synthetic stays to forecast the next step, and is tested on real stays.",
    ),
    "tstr": Family(
        "Predicting the outcome",
        USEFUL,
        "Classifiers learn to predict the outcome once from synthetic and once from real stays; both are tested on "
        "the same real stays that nobody has seen. AUROC: 0.5 is guessing, 1 is always right.",
    ),
    "tsrtr": Family(
        "Adding synthetic to real stays",
        USEFUL,
        "Classifiers learn from real stays with more and more synthetic stays beside them; all are tested on real "
        "stays. The share is that of synthetic stays in the whole.",
    ),
    "copies": Family(
        "Exact copies",
        EXPOSES,
        "Whether stays of the training data were simply repeated.",
    ),
    "nnaa": Family(
        "Nearest neighbours",
        EXPOSES,
        "Whether synthetic stays lie closer to the real stays that the generator learnt from than to real stays that "
        "it has never seen. If so, it has learnt single patients by heart.",
    ),
    "mir": Family(
        "Guessing who was in the training data",
        EXPOSES,
        "A simulated attacker holds real stays and, by how close each is to the synthetic ones, guesses whether it "
        "was used for training.",
    ),
}

MEANINGS = {
    ("discriminative", "score"): Meaning(
        "discriminative score", "How far the judge's accuracy lies from guessing, |accuracy − 0.5|.", "0; 0.5 is worst"
    ),
    ("discriminative", "auc"): Meaning(
        "judge's AUC",
        "How often the judge finds the synthetic one of a pair of one real and one synthetic stay.",
        "0.5; 1 is worst",
    ),
    ("predictive", "error"): Meaning(
        "forecast error", "Mean absolute error of the forecast on real stays.", "as low as after training on real stays"
    ),
    ("fidelity", "ks"): Meaning(
        "KS distance", "Largest gap between the two cumulative distributions (Kolmogorov–Smirnov).", "0; 1 is worst"
    ),
    ("fidelity", "wasserstein"): Meaning(
        "Wasserstein distance", "How far values must be moved on average, in real standard deviations.", "0"
    ),
    ("fidelity", "mean"): Meaning("shift of the mean", "Synthetic minus real mean, in real standard deviations.", "0"),
    ("fidelity", "sd"): Meaning(
        "change of the spread", "Synthetic standard deviation relative to the real one, minus 1; −0.5 is halved.", "0"
    ),
    ("fidelity", "out_of_range"): Meaning(
        "out of range", "Share of synthetic values outside the allowed bounds or, without bounds, the real range.", "0"
    ),
    ("fidelity", "frequencies"): Meaning(
        "class shares", "Share of values that would have to change class (total variation distance).", "0; 1 is worst"
    ),
    ("fidelity", "missing"): Meaning("missing rate", "Synthetic minus real share of missing values.", "0"),
    ("fidelity", "runs"): Meaning(
        "lengths of gaps",
        "How differently long the stretches with and without measurements are (total variation distance).",
        "0; 1 is worst",
    ),
    ("fidelity", "missing_by_step"): Meaning(
        "missing by step", "Mean absolute difference of the missing rates at each step.", "0"
    ),
    ("fidelity", "correlation"): Meaning(
        "correlations", "Mean absolute difference of the correlations between features at the same step.", "0"
    ),
    ("fidelity", "autocorrelation"): Meaning(
        "course over time", "Mean absolute difference of each feature's correlation with its own past.", "0"
    ),
    ("fidelity", "mask_correlation"): Meaning(
        "what is missing together", "Mean absolute difference of the correlations between gaps of features.", "0"
    ),
    ("fidelity", "label_association"): Meaning(
        "relation to the outcome", "Mean absolute difference of the features' correlations with the outcome.", "0"
    ),
    ("tstr", "tstr"): Meaning(
        "learnt from synthetic", "AUROC on real stays after training on synthetic ones (TSTR).", "as learnt from real"
    ),
    ("tstr", "trtr"): Meaning(
        "learnt from real", "AUROC on real stays after training on real ones (TRTR): the yardstick.", ""
    ),
    ("tstr", "trts"): Meaning(
        "real, tried on synthetic", "AUROC on synthetic stays after training on real ones (TRTS).", "as on real stays"
    ),
    ("tstr", "gap"): Meaning("loss", "Learnt from real minus learnt from synthetic, in AUROC.", "0 or below"),
    ("copies", "share"): Meaning(
        "copies", "Share of synthetic stays that equal a training stay in every value.", "0, or as among unseen stays"
    ),
    ("nnaa", "aa_train"): Meaning(
        "adversarial accuracy, training",
        "How often the nearest neighbour tells synthetic from training stays; below 0.5 they lie too close.",
        "0.5",
    ),
    ("nnaa", "aa_test"): Meaning(
        "adversarial accuracy, unseen", "The same with real stays that the generator has not seen.", "0.5"
    ),
    ("nnaa", "nnaa"): Meaning(
        "NNAA risk", "Difference of the two: what being in the training data changes.", "0; 0.5 is worst"
    ),
    ("nnaa", "nearer_training"): Meaning(
        "nearer to training", "Share of synthetic stays nearer to a training stay than to an unseen one.", "0.5"
    ),
    ("mir", "f1"): Meaning("attack's F1", "Success of the attacker as the paper counts it (MIR).", "as without a leak"),
    ("mir", "no_leak_f1"): Meaning(
        "F1 without a leak", "What the same number of alarms gives if they are raised blindly: the yardstick.", ""
    ),
    ("mir", "tpr"): Meaning(
        "members called members", "Share of training stays that the attacker takes for such.", "as for unseen stays"
    ),
    ("mir", "fpr"): Meaning(
        "others called members", "Share of unseen stays that the attacker takes for training stays: the yardstick.", ""
    ),
    ("mir", "auc"): Meaning(
        "attack's AUC", "How often the attacker finds the training stay in a pair with an unseen one.", "0.5"
    ),
}

JUDGES = {
    "paper": "the paper's small judge",
    "strong": "strong judge",
    "strong, masks alone": "strong judge that sees only what is missing",
    "scalar": "last feature",
    "vector": "all features",
}


def meaning(score: Score) -> Meaning:
    """What a score says; a number that nobody has described keeps its own name."""
    if found := MEANINGS.get((score.metric, score.what)):
        return found
    if score.metric == "tsrtr" and (share := re.search(r"\d+ %", score.what)):
        real = "all real stays" if "all real" in score.what else "a fixed number of real stays"
        sentence = f"AUROC on real stays after training on {real} and {share[0]} synthetic ones."
        return Meaning(score.what, sentence, "not below 0 % synthetic")
    return Meaning(score.what.replace("_", " "), "", "")


def judge(score: Score) -> str:
    """Who measured it, in words."""
    return JUDGES.get(score.judge, score.judge) if score.judge else ""
