"""Discriminative score: can a classifier that was trained on both tell real stays from synthetic ones?

- paper: the classifier of TimeGAN (Yoon et al., 2019): a GRU of half as many units as channels, |accuracy − 0.5|.
- strong: a two-layer GRU of 64 units whose head reads the mean and the last of its states and how rough each channel
  is; it stops when the loss on validation stays no longer falls.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Floats
from timediff.evaluation.case import Measurement
from timediff.evaluation.inputs.view import View
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, mean_and_std, unavailable
from timediff.evaluation.statistics.auc import Ranked
from timediff.evaluation.statistics.bootstrap import Counts, Units, bootstrap, centred_interval, resample
from timediff.evaluation.statistics.units import resampling_units, side_by_side
from timediff.runtime.progress import Progress, part, silent

if TYPE_CHECKING:
    from timediff.evaluation.classifiers.gru_classifiers import Index, Recipe, Repetition

Architecture = Literal["paper", "strong"]
FEWEST = 50  # stays of either kind
TRAINING, VALIDATION = 0.8, 0.15  # fraction of all stays, and of the training stays
RESAMPLES = 300


@metric(
    "discriminative",
    "looks real",
    title="Telling real from synthetic",
    sentence="A neural network (the classifier) is trained to tell synthetic stays from real ones and is then tested "
    "on stays that it has not met. If it can only guess, the synthetic stays look real to it.",
    numbers={
        "score": Meaning(
            "discriminative score",
            "How far the classifier's accuracy lies from guessing, |accuracy − 0.5|.",
            "0; 0.5 is worst",
        ),
        "auc": Meaning(
            "classifier's AUC",
            "How often the classifier finds the synthetic one of a pair of one real and one synthetic stay.",
            "0.5; 1 is worst",
        ),
    },
    classifiers={
        "paper": "the paper's GRU",
        "strong": "two-layer GRU",
        "strong, masks alone": "two-layer GRU that sees only what is missing",
    },
    floored=True,
    cost=Cost(0, 24),
)
def measure(given: Measurement) -> list[Score]:
    from timediff.evaluation.classifiers.gru_classifiers import in_parallel

    settings, view, real, cohort = given.settings, given.view, given.test, given.cohort
    classifiers: list[tuple[Architecture, str, View]] = [("paper", "paper", view)]
    if settings.protocol == "paper":  # TimeGAN's classifier sees what the generator was trained on
        real, cohort = given.train, given.test if given.floor else cohort
        cohort = cohort if given.most is None else given.case.some(cohort, given.most)
    else:
        classifiers.append(("strong", "strong", view))
        if view.masks.channels:
            classifiers.append(("strong", "strong, masks alone", view.masks))

    def scored(number: int, progress: Progress) -> list[Score]:
        architecture, name, seen = classifiers[number]
        return discriminative(
            seen.series(real),
            seen.series(cohort),
            architecture=architecture,
            name=name,
            units=side_by_side(resampling_units(real), resampling_units(cohort)),
            seed=settings.seed,
            repetitions=settings.repetitions,
            device=given.device,
            progress=progress,
        )

    count = len(classifiers)
    if settings.repetitions == 1 and given.device == "cpu":  # more of them share the cores by themselves
        found = in_parallel(scored, count, given.progress)
    else:
        found = [scored(number, part(given.progress, number, count)) for number in range(count)]
    return [score for scores in found for score in scores]


def recipe(architecture: Architecture, channels: int) -> "Recipe":
    from timediff.evaluation.classifiers.gru_classifiers import Recipe

    if architecture == "paper":
        return Recipe(max(channels // 2, 1))
    # So patient because a weak signal, a few mask bits in a thousand flipped, takes hundreds of iterations to show.
    return Recipe(64, layers=2, reads="summary", batch=64, rate=3e-3, patience=25)


def discriminative(
    real: npt.NDArray[np.float32],
    synthetic: npt.NDArray[np.float32],
    *,
    seed: int,
    repetitions: int,
    device: str = "cpu",
    architecture: Architecture = "paper",
    name: str | None = None,
    units: Units | None = None,
    progress: Progress = silent,
) -> list[Score]:
    """|accuracy − 0.5| and AUC of classifiers on stays they were not trained on; both arrays (N, L, C)."""
    from timediff.evaluation.classifiers.gru_classifiers import cross_entropy, logit, train_and_measure

    name = name or architecture
    if why := _why_not(real, synthetic):
        return [unavailable("discriminative", what, why, classifier=name) for what in ("score", "auc")]
    several = [split(architecture, len(real), len(synthetic), seed, number) for number in range(repetitions)]
    is_real = np.repeat([1.0, 0.0], [len(real), len(synthetic)])
    logits = train_and_measure(
        recipe(architecture, real.shape[2]),
        np.concatenate([real, synthetic]),
        is_real.astype(np.float32)[:, None, None],
        several,
        loss=cross_entropy,
        measure=logit,
        seed=seed,
        device=device,
        progress=progress,
    )
    return _scores(name, logits, [one.held_out for one in several], is_real > 0.5, seed, units)


def _why_not(real: npt.NDArray[np.float32], synthetic: npt.NDArray[np.float32]) -> str:
    if real.shape[2] == 0:
        return "there is no channel to see; at least one is needed."
    if min(len(real), len(synthetic)) < FEWEST:
        return f"{len(real)} real and {len(synthetic)} synthetic stays; at least {FEWEST} of each are needed."
    return ""


def split(architecture: Architecture, real: int, synthetic: int, seed: int, repetition: int) -> "Repetition":
    """Equally many real and synthetic stays, each split at random; synthetic ones come after all real ones."""
    from timediff.evaluation.classifiers.gru_classifiers import Repetition, split_stream

    rng = split_stream(seed, repetition)
    count = min(real, synthetic)
    training = int(TRAINING * count)
    validation = int(VALIDATION * training) if architecture == "strong" else 0
    kinds = [rng.permutation(real)[:count], real + rng.permutation(synthetic)[:count]]
    return Repetition(
        pools=tuple(stays[validation:training] for stays in kinds),
        held_out=np.concatenate([stays[training:] for stays in kinds]),
        validation=np.concatenate([stays[:validation] for stays in kinds]) if validation else None,
    )


def _scores(
    name: str,
    logits: Sequence[Floats],
    held_out: Sequence["Index"],
    is_real: npt.NDArray[np.bool_],
    seed: int,
    units: Units | None,
) -> list[Score]:
    from timediff.evaluation.classifiers.gru_classifiers import bootstrap_stream

    tested = [HeldOutLogits(values, is_real[stays]) for values, stays in zip(logits, held_out, strict=True)]
    rng = bootstrap_stream(seed)

    def resampled() -> Floats:
        # A stay that several repetitions held out is drawn for all of them: they are not independent.
        counts = resample(len(is_real) if units is None else units, rng)
        both = [one.score_and_auc(counts[stays]) for one, stays in zip(tested, held_out, strict=True)]
        return np.asarray(np.mean(both, axis=0), np.float64)

    statistics = bootstrap(resampled, RESAMPLES)
    stays = len(held_out[0])
    measured = np.array([one.score_and_auc(np.ones(stays, np.int64)) for one in tested])
    scores = []
    for i, (what, most) in enumerate((("score", 0.5), ("auc", 1.0))):
        value, std = mean_and_std(measured[:, i])
        low, high = centred_interval(value, statistics[:, i], most)
        scores.append(Score("discriminative", what, value, classifier=name, n=stays, std=std, low=low, high=high))
    return scores


class HeldOutLogits:
    """What a classifier says of held-out stays."""

    def __init__(self, logits: Floats, is_real: npt.NDArray[np.bool_]) -> None:
        self.right = (logits > 0) == is_real
        self.ranked = Ranked(logits, is_real)

    def score_and_auc(self, counts: Counts) -> tuple[float, float]:
        """|accuracy − 0.5| and the area under the ROC curve, each stay counted so many times."""
        return abs(float(counts @ self.right / counts.sum()) - 0.5), self.ranked.auc(counts)
