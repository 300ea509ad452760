"""Discriminative scores: can a classifier that was trained on both tell real stays from synthetic ones?

A panel of classifiers that see different things, because each passes faults that another one finds:

- paper: the classifier of TimeGAN (Yoon et al., 2019): a GRU of half as many units as channels, |accuracy − 0.5|.
- strong: a two-layer GRU of 64 units whose head reads the mean and the last of its states and how rough each channel
  is; it stops when the loss on validation stays no longer falls. Also on masks alone.
- convolution: three layers over values, masks and the time since each feature was last measured.
- trees: gradient-boosted trees on statistics of each stay.

The headline is the worst of them. Its interval holds for all of them at once, so it accounts for the choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Floats
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.evaluation.case import Measurement
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, mean_and_std, unavailable
from timediff.evaluation.statistics.auc import Ranked
from timediff.evaluation.statistics.bootstrap import (
    Counts,
    bootstrap,
    centred_interval,
    interval_of_greatest,
    resample,
)
from timediff.runtime.progress import Progress, part, silent
from timediff.runtime.seeding import stream

if TYPE_CHECKING:
    from timediff.evaluation.classifiers.parallel_networks import Recipe
    from timediff.evaluation.classifiers.series_classifiers import Index, Repetition

Architecture = Literal["paper", "strong", "convolution"]
FEWEST = 50  # stays of either kind
TRAINING, VALIDATION = 0.8, 0.15  # fraction of all stays, and of the training stays
RESAMPLES = 300
TREES = "trees"
SHOWN = 12  # statistics that betray a cohort
TELLING = 0.002, 0.55  # of a statistic that is shown: AUC that is lost without it, or that it has by itself
TAIL = 0.05
IMPORTANCE = 53  # a part of the evaluation stream
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
    real, cohort = given.test, given.cohort
    if given.settings.protocol == "paper":  # TimeGAN's classifier sees what the generator was trained on
        real, cohort = given.train, given.test if given.floor else cohort
    if why := _too_few(len(real), len(cohort)):
        return [unavailable("discriminative", what, why, classifier="paper") for what in ("score", "auc")]
    panel = Panel(given, len(real), len(cohort))
    view = given.view
    if given.settings.protocol == "strict":
        seen = view.with_elapsed
        panel.add_network("strong", "strong", view.series(real), view.series(cohort))
        panel.add_network("convolution", "convolution", seen.series(real), seen.series(cohort))
        if view.masks.channels:
            panel.add_network("strong", "strong, masks alone", view.masks.series(real), view.masks.series(cohort))
        table = np.concatenate([given.case.test_table, given.case.statistics.table(cohort, training=given.floor)])
        panel.add_trees(table)
    panel.add_network("paper", "paper", view.series(real), view.series(cohort))
    panel.train(given.progress)
    return panel.scores()


def recipe(architecture: Architecture, channels: int) -> "Recipe":
    from timediff.evaluation.classifiers.parallel_networks import Recipe

    if architecture == "paper":
        return Recipe(max(channels // 2, 1))
    if architecture == "convolution":
        return Recipe(32, layers=3, network="convolution", iterations=1000, batch=64, rate=3e-3, patience=15)
    # So patient because a weak signal, a few mask bits in a thousand flipped, takes hundreds of iterations to show.
    return Recipe(64, layers=2, reads="summary", batch=64, rate=3e-3, patience=25)


class Panel:
    """Classifiers of different kinds that are trained and tested on the same stays: real ones first, then synthetic."""

    def __init__(self, given: Measurement, real: int, synthetic: int) -> None:
        self.given, self.settings = given, given.settings
        self.sizes = real, synthetic
        self.is_real = np.repeat([True, False], [real, synthetic])
        self.networks: list[Callable[[Progress], None]] = []  # each trains one or some of them
        self.trees: list[Callable[[Progress], None]] = []
        self.logits: dict[str, dict[int, Floats]] = {}  # by classifier and repetition, of held-out stays
        self.by_group: dict[str, Floats] = {}  # of trees that see one group of statistics
        self.importances: dict[int, tuple[float, float]] = {}  # AUC lost without a column, and by it alone
        self.table: Floats | None = None

    def split(self, architecture: Architecture, repetition: int) -> "Repetition":
        """The same held-out stays for every classifier."""
        return split(architecture, *self.sizes, self.settings.seed, repetition)

    def add_network(
        self, architecture: Architecture, name: str, real: npt.NDArray[np.float32], cohort: npt.NDArray[np.float32]
    ) -> None:
        series, of_all = np.concatenate([real, cohort]), range(self.settings.repetitions)
        self.logits[name] = {}
        for numbers in [[number] for number in of_all] if self.given.device == "cpu" else [list(of_all)]:

            def train(progress: Progress, numbers: Sequence[int] = numbers) -> None:
                splits = [self.split(architecture, number) for number in numbers]
                found = network_logits(
                    architecture,
                    series,
                    self.is_real,
                    splits,
                    seed=self.settings.seed,
                    device=self.given.device,
                    first=numbers[0],
                    progress=progress,
                )
                self.logits[name] |= dict(zip(numbers, found, strict=True))

            self.networks.append(train)

    def add_trees(self, table: Floats) -> None:
        """Trees on statistics of stays (N, F); those of the first repetition also say what they go by."""
        self.table, self.logits[TREES] = table, {}
        for number in range(self.settings.repetitions):

            def train(progress: Progress, number: int = number) -> None:
                from timediff.evaluation.classifiers import tree_classifier

                stays = self.split("paper", number)
                trees = tree_classifier.trained(table, self.is_real, np.concatenate(stays.pools), number)
                self.logits[TREES][number] = trees.decision_function(table[stays.held_out])
                if number == 0 and not self.given.floor:
                    rng = stream("evaluation", self.settings.seed, IMPORTANCE)
                    self.importances = tree_classifier.importances(trees, table, self.is_real, stays.held_out, rng)
                progress(1, 1)

            self.trees.append(train)
        self.trees.append(self._train_by_group)

    def _train_by_group(self, progress: Progress) -> None:
        from timediff.evaluation.classifiers import tree_classifier
        from timediff.evaluation.inputs.stay_statistics import GROUPS

        assert self.table is not None
        stays = self.split("paper", 0)
        for number, group in enumerate(GROUPS):
            if columns := self.given.case.statistics.of_group(group):
                table = self.table[:, columns]
                trees = tree_classifier.trained(table, self.is_real, np.concatenate(stays.pools), 0)
                self.by_group[group] = trees.decision_function(table[stays.held_out])
            progress(number + 1, len(GROUPS))

    def train(self, progress: Progress) -> None:
        """As many at a time as there are cores; on an accelerator first the networks, one kind after the other."""
        from timediff.evaluation.classifiers.series_classifiers import in_parallel

        if self.given.device == "cpu":
            work = self.networks + self.trees
            in_parallel(lambda number, own: work[number](own), len(work), progress)
            return
        kinds = len(self.networks) + bool(self.trees)
        for number, train in enumerate(self.networks):
            train(part(progress, number, kinds))
        if self.trees:
            own = part(progress, len(self.networks), kinds)
            in_parallel(lambda number, one: self.trees[number](one), len(self.trees), own)

    def scores(self) -> list[Score]:
        seed, of_all = self.settings.seed, range(self.settings.repetitions)
        held_out = [self.split("paper", number).held_out for number in of_all]
        tested = {
            name: OnHeldOut(name, [logits[number] for number in of_all], held_out, self.is_real, seed)
            for name, logits in self.logits.items()
        }
        order = [name for name in CLASSIFIERS if name in tested]
        scores = [score for name in order for score in tested[name].scores(tails=self.table is not None)]
        if len(tested) > 1:
            scores.insert(0, worst(list(tested.values())))
        for group, logits in self.by_group.items():
            _, auc = OnHeldOut(group, [logits], held_out[:1], self.is_real, seed).scores()
            scores.append(replace(auc, what="group_auc", classifier=f"{TREES}: {group}"))
        return scores + self._betraying()

    def _betraying(self) -> list[Score]:
        """The statistics that the trees miss most when they are shuffled, real and synthetic side by side."""
        if self.table is None:
            return []
        scores = []
        for column in self._telling():
            statistic = self.given.case.statistics.statistics[column]
            real, synthetic = (self.table[kind, column] for kind in (self.is_real, ~self.is_real))
            shown = [("mean_statistic", real, synthetic)]
            if statistic.fraction:
                shown.append(("whole_stays", *(np.where(np.isnan(v), v, v == 1) for v in (real, synthetic))))
            n = min(int((~np.isnan(values)).sum()) for values in (real, synthetic))
            for what, value in zip(("importance", "auc_alone"), self.importances[column], strict=True):
                scores.append(Score("discriminative", what, value, TREES, statistic.words, n=n))
            for what, ours, theirs in shown:
                value, floor = (_mean_of_ten(values) for values in (theirs, ours))
                scores.append(Score("discriminative", what, value, TREES, statistic.words, n=n, floor=floor))
        return scores

    def _telling(self) -> list[int]:
        """The columns that the trees miss most and those that tell most by themselves."""
        orders = [sorted(self.importances, key=lambda column: -self.importances[column][i]) for i in (0, 1)]
        missed, alone = (order[: SHOWN // 2] for order in orders)
        missed = [column for column in missed if self.importances[column][0] > TELLING[0]]
        return list(dict.fromkeys([*missed, *(c for c in alone if self.importances[c][1] > TELLING[1])]))


def _mean_of_ten(values: Floats) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) >= MIN_AGGREGATE else float("nan")


def discriminative(
    real: npt.NDArray[np.float32],
    synthetic: npt.NDArray[np.float32],
    *,
    seed: int,
    repetitions: int,
    device: str = "cpu",
    architecture: Architecture = "paper",
    name: str | None = None,
    progress: Progress = silent,
) -> list[Score]:
    """|accuracy − 0.5| and AUC of one kind of network on stays it was not trained on; both arrays (N, L, C)."""
    name = name or architecture
    why = _too_few(len(real), len(synthetic)) or NOTHING_TO_SEE * (real.shape[2] == 0)
    if why:
        return [unavailable("discriminative", what, why, classifier=name) for what in ("score", "auc")]
    splits = [split(architecture, len(real), len(synthetic), seed, number) for number in range(repetitions)]
    is_real = np.repeat([True, False], [len(real), len(synthetic)])
    series = np.concatenate([real, synthetic])
    logits = network_logits(architecture, series, is_real, splits, seed=seed, device=device, progress=progress)
    return OnHeldOut(name, logits, [one.held_out for one in splits], is_real, seed).scores()


def network_logits(
    architecture: Architecture,
    series: npt.NDArray[np.float32],
    is_real: npt.NDArray[np.bool_],
    splits: "Sequence[Repetition]",
    *,
    seed: int,
    device: str,
    first: int = 0,
    progress: Progress = silent,
) -> list[Floats]:
    """What networks of one kind, one a split, say of their held-out stays."""
    from timediff.evaluation.classifiers.series_classifiers import cross_entropy, logit, train_and_measure

    return train_and_measure(
        recipe(architecture, series.shape[2]),
        series,
        is_real.astype(np.float32)[:, None, None],
        splits,
        loss=cross_entropy,
        measure=logit,
        seed=seed,
        device=device,
        first=first,
        progress=progress,
    )


NOTHING_TO_SEE = "there is no channel to see; at least one is needed."


def _too_few(real: int, synthetic: int) -> str:
    if min(real, synthetic) < FEWEST:
        return f"{real} real and {synthetic} synthetic stays; at least {FEWEST} of each are needed."
    return ""


def split(architecture: Architecture, real: int, synthetic: int, seed: int, repetition: int) -> "Repetition":
    """Equally many real and synthetic stays, each split at random; synthetic ones come after all real ones."""
    from timediff.evaluation.classifiers.series_classifiers import Repetition, split_stream

    rng = split_stream(seed, repetition)
    count = min(real, synthetic)
    training = int(TRAINING * count)
    validation = 0 if architecture == "paper" else int(VALIDATION * training)
    kinds = [rng.permutation(real)[:count], real + rng.permutation(synthetic)[:count]]
    return Repetition(
        pools=tuple(stays[validation:training] for stays in kinds),
        held_out=np.concatenate([stays[training:] for stays in kinds]),
        validation=np.concatenate([stays[:validation] for stays in kinds]) if validation else None,
    )


NUMBERS = {"score": 0.5, "auc": 1.0, "uncovered": 1.0, "implausible": 1.0}  # and the most that each can be


class OnHeldOut:
    """One classifier on its held-out stays, repetition by repetition, and on resamples of them."""

    def __init__(
        self,
        name: str,
        logits: Sequence[Floats],
        held_out: Sequence["Index"],
        is_real: npt.NDArray[np.bool_],
        seed: int,
    ) -> None:
        from timediff.evaluation.classifiers.series_classifiers import bootstrap_stream

        tested = [HeldOutLogits(values, is_real[stays]) for values, stays in zip(logits, held_out, strict=True)]
        rng = bootstrap_stream(seed)  # the same resamples for every classifier

        def resampled() -> Floats:
            # A stay that several repetitions held out is drawn for all of them: they are not independent.
            counts = resample(len(is_real), rng)
            several = [one.numbers(counts[stays]) for one, stays in zip(tested, held_out, strict=True)]
            return np.asarray(np.mean(several, axis=0), np.float64)

        self.name, self.stays = name, len(held_out[0])
        self.resampled = bootstrap(resampled, RESAMPLES)  # (RESAMPLES, NUMBERS)
        self.measured = np.array([one.numbers(np.ones(self.stays, np.int64)) for one in tested])

    def scores(self, tails: bool = False) -> list[Score]:
        """|accuracy − 0.5| and AUC and, where they are asked for, the tails."""
        scores = []
        for i, (what, most) in enumerate(NUMBERS.items() if tails else list(NUMBERS.items())[:2]):
            value, std = mean_and_std(self.measured[:, i])
            low, high = centred_interval(value, self.resampled[:, i], most)
            scores.append(
                Score("discriminative", what, value, classifier=self.name, n=self.stays, std=std, low=low, high=high)
            )
        return scores


def worst(panel: Sequence[OnHeldOut]) -> Score:
    """The greatest AUC of the panel; the interval holds for all of its classifiers at once."""
    values = np.array([one.measured[:, 1].mean() for one in panel])
    low, high = interval_of_greatest(values, np.stack([one.resampled[:, 1] for one in panel], axis=1))
    first = panel[int(values.argmax())]
    value, std = mean_and_std(first.measured[:, 1])
    note = f"the largest AUC of {len(panel)} classifiers is that of: {CLASSIFIERS.get(first.name, first.name)}"
    return Score(
        "discriminative",
        "auc",
        value,
        classifier="worst",
        n=first.stays,
        std=std,
        low=low,
        high=min(high, 1.0),
        note=note,
    )


class HeldOutLogits:
    """What a classifier says of held-out stays."""

    def __init__(self, logits: Floats, is_real: npt.NDArray[np.bool_]) -> None:
        self.right = (logits > 0) == is_real
        self.ranked = Ranked(logits, is_real)

    def score_and_auc(self, counts: Counts) -> tuple[float, float]:
        """|accuracy − 0.5| and the area under the ROC curve, each stay counted so many times."""
        return abs(float(counts @ self.right / counts.sum()) - 0.5), self.ranked.auc(counts)

    def numbers(self, counts: Counts) -> tuple[float, float, float, float]:
        """The NUMBERS."""
        return *self.score_and_auc(counts), *self.tails(counts)

    def tails(self, counts: Counts) -> tuple[float, float]:
        """Fractions of real and of synthetic stays beyond all but 5 % of the other kind."""
        weight, real = counts[self.ranked.order].astype(np.float64), self.ranked.positive
        above, below = np.cumsum(weight * real), np.cumsum(weight * ~real)
        if above[-1] == 0 or below[-1] == 0:
            return float("nan"), float("nan")
        above, below = above / above[-1], below / below[-1]
        most_synthetic = int(np.searchsorted(below, 1 - TAIL))  # up to here lie 95 % of the synthetic stays
        few_real = int(np.searchsorted(above, TAIL))  # and before here 5 % of the real ones
        return 1 - float(above[most_synthetic]), float(below[few_real])
