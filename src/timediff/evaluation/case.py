"""What a metric is given: real stays, the cohort to measure, and how."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort
from timediff.data.splitting import apart
from timediff.errors import TimeDiffError
from timediff.evaluation.inputs.view import Scaling, View
from timediff.evaluation.settings import EvaluationSettings
from timediff.evaluation.statistics.neighbour_sets import FEWEST, Parts
from timediff.runtime.progress import Progress, silent
from timediff.runtime.seeding import stream

if TYPE_CHECKING:
    from timediff.data.stay_statistics import StayStatistics
    from timediff.evaluation.classifiers.label_classifiers import Trained


@dataclass(frozen=True)
class Case:
    """Training and held-out stays, and how they are looked at: the same for every metric and every cohort."""

    train: Cohort
    test: Cohort
    settings: EvaluationSettings

    @cached_property
    def view(self) -> View:
        return View.fit(self.train, self.settings.protocol)

    @cached_property
    def strict_view(self) -> View:
        """For what is measured alike in every protocol."""
        return self.view if self.settings.protocol == "strict" else View.fit(self.train, "strict")

    def scaled(self, scaling: Scaling) -> View:
        """The same view with another scaling."""
        return View.fit(self.train, self.settings.protocol, scaling)

    @cached_property
    def device(self) -> str:
        import torch

        if self.settings.device != "auto":
            return self.settings.device
        return "cuda" if torch.cuda.is_available() else "cpu"

    @cached_property
    def trained(self) -> "Trained":
        """Classifiers that were trained on real stays, kept for the next cohort."""
        from timediff.evaluation.classifiers.label_classifiers import Trained

        return Trained(self.train)

    @cached_property
    def statistics(self) -> "StayStatistics":
        """Statistics of single stays, for classifiers; what they look for is found in training stays."""
        from timediff.data.stay_statistics import StayStatistics

        return StayStatistics(self.train, self.settings.seed)

    @cached_property
    def test_table(self) -> Floats:
        """The statistics of held-out stays."""
        return self.statistics.table(self.test)

    @cached_property
    def apart(self) -> Parts | None:
        """Positions of two parts of the training stays that share no patient and no step of a series; None of few.

        The first has as many stays as are held out, or half of them; the second can then stand in for synthetic stays
        of which it is known that none was made from the first.
        """
        first = min(len(self.test), len(self.train) // 2)
        try:
            parts = apart(self.train, 1 - first / len(self.train), seed=self.settings.seed)
        except TimeDiffError:  # too few patients, or too short a series
            return None
        return parts if min(map(len, parts)) >= FEWEST else None

    def stand_in(self, count: int) -> Cohort:
        """Training stays in place of so many synthetic ones."""
        return self.some(self.train, count)

    def some(self, cohort: Cohort, count: int) -> Cohort:
        """At most so many stays, at random, in their order."""
        if len(cohort) <= count:
            return cohort
        order = stream("evaluation", self.settings.seed, 1).permutation(len(cohort))
        return cohort.take(np.sort(order[:count]))


@dataclass(frozen=True)
class Measurement:
    """One cohort to be measured by one metric."""

    case: Case
    cohort: Cohort  # synthetic, or training stays in place of it
    generator: str = "synthetic"  # its name
    floor: bool = False  # whether the cohort is of training stays, so that the floor is measured
    progress: Progress = silent

    @property
    def train(self) -> Cohort:
        return self.case.train

    @property
    def test(self) -> Cohort:
        return self.case.test

    @property
    def view(self) -> View:
        return self.case.view

    @property
    def settings(self) -> EvaluationSettings:
        return self.case.settings

    @property
    def device(self) -> str:
        return self.case.device
