"""Classifiers on stays that they were not trained on: accuracy, AUC, tails, with intervals; the worst of several."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Floats, Units
from timediff.evaluation.score import Score, mean_and_std
from timediff.evaluation.statistics.auc import Ranked
from timediff.evaluation.statistics.bootstrap import (
    Counts,
    bootstrap,
    centred_interval,
    interval_of_greatest,
    resample,
)

if TYPE_CHECKING:
    from timediff.evaluation.classifiers.series_classifiers import Index

RESAMPLES = 300
TAIL = 0.05
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
        units: Units | None = None,
    ) -> None:
        from timediff.evaluation.classifiers.series_classifiers import bootstrap_stream

        tested = [HeldOutLogits(values, is_real[stays]) for values, stays in zip(logits, held_out, strict=True)]
        rng = bootstrap_stream(seed)  # the same resamples for every classifier

        def resampled() -> Floats:
            # A stay that several repetitions held out is drawn for all of them: they are not independent.
            counts = resample(len(is_real) if units is None else units, rng)
            several = [one.numbers(counts[stays]) for one, stays in zip(tested, held_out, strict=True)]
            return np.asarray(np.mean(several, axis=0), np.float64)

        self.name, self.stays = name, len(held_out[0])
        self.resampled = bootstrap(resampled, RESAMPLES)  # (RESAMPLES, NUMBERS)
        self.measured = np.array([one.numbers(np.ones(len(one.right), np.int64)) for one in tested])

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


def worst(panel: Sequence[OnHeldOut], words: Mapping[str, str]) -> Score:
    """The greatest AUC of the panel; the interval holds for all of its classifiers at once."""
    values = np.array([one.measured[:, 1].mean() for one in panel])
    low, high = interval_of_greatest(values, np.stack([one.resampled[:, 1] for one in panel], axis=1))
    first = panel[int(values.argmax())]
    value, std = mean_and_std(first.measured[:, 1])
    note = f"the largest AUC of {len(panel)} classifiers is that of: {words.get(first.name, first.name)}"
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
