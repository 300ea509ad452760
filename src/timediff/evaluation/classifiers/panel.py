"""The panel: classifiers of different kinds that are trained and tested on the same real and synthetic stays."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.units import blocks, periods, resampling_units, side_by_side
from timediff.evaluation.case import Measurement
from timediff.evaluation.classifiers.discriminators import Architecture, network_logits, split, split_by_period
from timediff.evaluation.classifiers.held_out import OnHeldOut, worst
from timediff.evaluation.score import Score
from timediff.runtime.progress import Progress, part
from timediff.runtime.seeding import stream

if TYPE_CHECKING:
    from timediff.evaluation.classifiers.series_classifiers import Repetition

TREES = "trees"
SHOWN = 12  # statistics that betray a cohort
TELLING = 0.002, 0.55  # of a statistic that is shown: AUC that is lost without it, or that it has by itself
IMPORTANCE = 53  # a part of the evaluation stream


class Panel:
    """Classifiers of different kinds that are trained and tested on the same stays: real ones first, then synthetic."""

    def __init__(self, given: Measurement, real: Cohort, synthetic: Cohort, words: Mapping[str, str]) -> None:
        self.given, self.settings, self.words = given, given.settings, words
        self.units = resampling_units(real), resampling_units(synthetic)
        self.blocks = blocks(real), blocks(synthetic)  # none is both trained and tested on
        self.periods = periods(real, synthetic)
        self.is_real = np.repeat([True, False], [len(real), len(synthetic)])
        self.networks: list[Callable[[Progress], None]] = []  # each trains one or some of them
        self.trees: list[Callable[[Progress], None]] = []
        self.logits: dict[str, dict[int, Floats]] = {}  # by classifier and repetition, of held-out stays
        self.by_group: dict[str, Floats] = {}  # of trees that see one group of statistics
        self.importances: dict[int, tuple[float, float]] = {}  # AUC lost without a column, and by it alone
        self.table: Floats | None = None

    def split(self, architecture: Architecture, repetition: int) -> "Repetition":
        """The same held-out stays for every classifier."""
        if self.periods:
            return split_by_period(architecture, *self.periods, self.settings.seed, repetition)
        return split(architecture, *self.blocks, self.settings.seed, repetition)

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
                trees = tree_classifier.Trees(table, self.is_real, np.concatenate(stays.pools), number)
                self.logits[TREES][number] = trees.logits(table[stays.held_out])
                if number == 0 and not self.given.floor:
                    rng = stream("evaluation", self.settings.seed, IMPORTANCE)
                    self.importances = tree_classifier.importances(trees, table, self.is_real, stays.held_out, rng)
                progress(1, 1)

            self.trees.append(train)
        self.trees.append(self._train_by_group)

    def _train_by_group(self, progress: Progress) -> None:
        from timediff.data.stay_statistics import GROUPS
        from timediff.evaluation.classifiers import tree_classifier

        assert self.table is not None
        stays = self.split("paper", 0)
        for number, group in enumerate(GROUPS):
            if columns := self.given.case.statistics.of_group(group):
                table = self.table[:, columns]
                trees = tree_classifier.Trees(table, self.is_real, np.concatenate(stays.pools), 0)
                self.by_group[group] = trees.logits(table[stays.held_out])
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
        units = side_by_side(*self.units)
        held_out = [self.split("paper", number).held_out for number in of_all]
        tested = {
            name: OnHeldOut(name, [logits[number] for number in of_all], held_out, self.is_real, seed, units)
            for name, logits in self.logits.items()
        }
        order = [name for name in self.words if name in tested]
        scores = [score for name in order for score in tested[name].scores(tails=self.table is not None)]
        if len(tested) > 1:
            scores.insert(0, worst(list(tested.values()), self.words))
        for group, logits in self.by_group.items():
            _, auc = OnHeldOut(group, [logits], held_out[:1], self.is_real, seed, units).scores()
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
