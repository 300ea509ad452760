"""Discriminative scores: can a classifier that was trained on both tell real stays from synthetic ones?

A panel of classifiers that see different things, because each passes faults that another one finds:

- paper: the classifier of TimeGAN (Yoon et al., 2019): a GRU of half as many units as channels, |accuracy − 0.5|.
- strong: a two-layer GRU of 64 units whose head reads the mean and the last of its states and how rough each channel
  is; it stops when the loss on validation stays no longer falls. Also on masks alone.
- convolution: three layers over values, masks and the time since each feature was last measured.
- trees: gradient-boosted trees on statistics of each stay.

The headline is the worst of them. Its interval holds for all of them at once, so it accounts for the choice.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Units
from timediff.evaluation.case import Measurement
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, unavailable
from timediff.runtime.progress import Progress, silent

if TYPE_CHECKING:
    from timediff.evaluation.classifiers.discriminators import Architecture

FEWEST = 50  # stays of either kind
TREES = "trees"
CLASSIFIERS = {
    "worst": "the worst of the panel",
    "paper": "the paper's GRU",
    "strong": "two-layer GRU",
    "strong, masks alone": "two-layer GRU that sees only what is missing",
    "convolution": "convolution",
    TREES: "trees on statistics of a stay",
}


@metric(
    "discriminative",
    "looks real",
    title="Telling real from synthetic",
    sentence="Classifiers of different kinds are trained to tell synthetic stays from real ones and are then tested on "
    "stays that they have not met. If even the best of them can only guess, the synthetic stays look real.",
    numbers={
        "auc": Meaning(
            "classifier's AUC",
            "How often the classifier finds the synthetic one of a pair of one real and one synthetic stay.",
            "0.5; 1 is worst",
        ),
        "score": Meaning(
            "discriminative score",
            "How far the classifier's accuracy lies from guessing, |accuracy − 0.5|.",
            "0; 0.5 is worst",
        ),
        "uncovered": Meaning(
            "real stays left out",
            "Fraction of real stays that look more real to the classifier than 95 % of the synthetic ones do: kinds of "
            "stays that are not, or too seldom, generated.",
            "0.05",
            in_terminal=False,
        ),
        "implausible": Meaning(
            "synthetic stays that stand out",
            "Fraction of synthetic stays that look less real to the classifier than 95 % of the real ones do.",
            "0.05",
            in_terminal=False,
        ),
        "group_auc": Meaning(
            "AUC by one kind of statistics",
            "The same by trees that see one kind of statistics alone: what betrays the cohort.",
            "0.5; 1 is worst",
            in_terminal=False,
        ),
        "importance": Meaning(
            "AUC lost without it",
            "How much of their AUC the trees lose when this statistic is shuffled among stays.",
            in_terminal=False,
        ),
        "auc_alone": Meaning(
            "AUC by it alone", "How well this statistic by itself tells the two kinds apart.", in_terminal=False
        ),
        "mean_statistic": Meaning("mean over stays", "The statistic, averaged over synthetic stays.", "as real stays"),
        "whole_stays": Meaning(
            "stays with nothing else", "Of a fraction: the fraction of stays in which it is 1.", "as real stays"
        ),
    },
    classifiers=CLASSIFIERS,
    floored=True,
    cost=Cost(12, 30),
)
def measure(given: Measurement) -> list[Score]:
    from timediff.evaluation.classifiers.panel import Panel

    real, cohort = given.test, given.cohort
    if why := _too_few(len(real), len(cohort)):
        return [unavailable("discriminative", what, why, classifier="paper") for what in ("score", "auc")]
    panel = Panel(given, real, cohort, CLASSIFIERS)
    view = given.view.unlabelled
    if given.settings.protocol == "strict":
        seen = view.with_elapsed
        panel.add_network("strong", "strong", view.series(real), view.series(cohort))
        panel.add_network("convolution", "convolution", seen.series(real), seen.series(cohort))
        if view.masks.channels:
            panel.add_network("strong", "strong, masks alone", view.masks.series(real), view.masks.series(cohort))
        table = np.concatenate([given.case.test_table, given.case.statistics.table(cohort, training=given.floor)])
        panel.add_trees(table)
    panel.add_network("paper", "paper", *view.compared(real, cohort))
    panel.train(given.progress)
    return panel.scores()


NOTHING_TO_SEE = "there is no channel to see; at least one is needed."


def _too_few(real: int, synthetic: int) -> str:
    if min(real, synthetic) < FEWEST:
        return f"{real} real and {synthetic} synthetic stays; at least {FEWEST} of each are needed."
    return ""


def discriminative(
    real: npt.NDArray[np.float32],
    synthetic: npt.NDArray[np.float32],
    *,
    seed: int,
    repetitions: int,
    device: str = "cpu",
    architecture: "Architecture" = "paper",
    name: str | None = None,
    units: Units | None = None,
    progress: Progress = silent,
) -> list[Score]:
    """|accuracy − 0.5| and AUC of one kind of network on stays it was not trained on; both arrays (N, L, C)."""
    from timediff.evaluation.classifiers.discriminators import network_logits, split
    from timediff.evaluation.classifiers.held_out import OnHeldOut

    name = name or architecture
    why = _too_few(len(real), len(synthetic)) or NOTHING_TO_SEE * (real.shape[2] == 0)
    if why:
        return [unavailable("discriminative", what, why, classifier=name) for what in ("score", "auc")]
    splits = [split(architecture, len(real), len(synthetic), seed, number) for number in range(repetitions)]
    is_real = np.repeat([True, False], [len(real), len(synthetic)])
    series = np.concatenate([real, synthetic])
    logits = network_logits(architecture, series, is_real, splits, seed=seed, device=device, progress=progress)
    return OnHeldOut(name, logits, [one.held_out for one in splits], is_real, seed, units).scores()
