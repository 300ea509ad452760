"""Discriminative score: can a network that has learnt from both tell real stays from synthetic ones?

- paper: the judge of TimeGAN (Yoon et al., 2019): a GRU of half as many units as channels, |accuracy − 0.5|.
- strong: a two-layer GRU of 64 units whose head reads the mean and the last of its states and how rough each channel
  is; it stops when the loss on stays it does not learn from no longer falls.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from timediff.metrics.judges import Index, Recipe, Task, bootstrap_stream, judged, split_stream
from timediff.metrics.record import Score, interval, repeated, unavailable
from timediff.progress import Progress, silent
from timediff.tables import Floats

Judge = Literal["paper", "strong"]
FEWEST = 50  # stays of either kind
TRAINING, VALIDATION = 0.8, 0.15  # share of all stays, and of the training stays
RESAMPLES = 300


def recipe(judge: Judge, channels: int) -> Recipe:
    if judge == "paper":
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
    judge: Judge = "paper",
    name: str | None = None,
    progress: Progress = silent,
) -> list[Score]:
    """|accuracy − 0.5| and AUC of judges on stays they have not learnt from; both arrays (N, L, C)."""
    name = name or judge
    if why := _why_not(real, synthetic):
        return [unavailable("discriminative", what, why, judge=name) for what in ("score", "auc")]
    tasks = [_task(judge, len(real), len(synthetic), seed, repetition) for repetition in range(repetitions)]
    is_real = np.repeat([1.0, 0.0], [len(real), len(synthetic)])
    logits = judged(
        recipe(judge, real.shape[2]),
        np.concatenate([real, synthetic]),
        is_real.astype(np.float32)[:, None, None],
        tasks,
        loss=_cross_entropy,
        measure=_logit,
        seed=seed,
        device=device,
        progress=progress,
    )
    held_out = [task.held_out for task in tasks]
    return _scores(name, logits, held_out, is_real, seed)


def _why_not(real: npt.NDArray[np.float32], synthetic: npt.NDArray[np.float32]) -> str:
    if real.shape[2] == 0:
        return "there is no channel to judge by; at least one is needed."
    if min(len(real), len(synthetic)) < FEWEST:
        return f"{len(real)} real and {len(synthetic)} synthetic stays; at least {FEWEST} of each are needed."
    return ""


def _task(judge: Judge, real: int, synthetic: int, seed: int, repetition: int) -> Task:
    """Equally many real and synthetic stays, each split at random; synthetic ones come after all real ones."""
    rng = split_stream(seed, repetition)
    count = min(real, synthetic)
    training = int(TRAINING * count)
    validation = int(VALIDATION * training) if judge == "strong" else 0
    drawn = [rng.permutation(real)[:count], real + rng.permutation(synthetic)[:count]]
    return Task(
        pools=tuple(stays[validation:training] for stays in drawn),
        held_out=np.concatenate([stays[training:] for stays in drawn]),
        validation=np.concatenate([stays[:validation] for stays in drawn]) if validation else None,
    )


def _cross_entropy(outputs: Tensor, targets: Tensor) -> Tensor:
    return binary_cross_entropy_with_logits(outputs, targets, reduction="none")


def _logit(outputs: Tensor, targets: Tensor) -> Tensor:
    return outputs


def _scores(name: str, logits: Sequence[Floats], held_out: Sequence[Index], is_real: Floats, seed: int) -> list[Score]:
    ranked = [Ranked(values, is_real[stays]) for values, stays in zip(logits, held_out, strict=True)]
    rng = bootstrap_stream(seed)
    draws: list[tuple[float, float]] = []
    for _ in range(RESAMPLES):
        # A stay that several repetitions held out is drawn for all of them: they are not independent.
        weights = np.bincount(rng.integers(len(is_real), size=len(is_real)), minlength=len(is_real))
        both = [judge.score_and_auc(weights[stays]) for judge, stays in zip(ranked, held_out, strict=True)]
        draws.append((float(np.mean([b[0] for b in both])), float(np.mean([b[1] for b in both]))))
    once = np.ones(len(held_out[0]), np.int64)
    measured = np.array([judge.score_and_auc(once) for judge in ranked])
    scores = []
    for i, (what, most) in enumerate((("score", 0.5), ("auc", 1.0))):
        value, spreads = repeated(list(measured[:, i]))
        drawn = np.array(draws)[:, i]
        # Resampling adds noise, and noise adds to |accuracy − 0.5|: uncentred, the interval can miss its own value.
        low, high = interval(np.clip(drawn - drawn.mean() + value, 0.0, most))
        scores.append(
            Score("discriminative", what, value, judge=name, n=len(once), spreads=spreads, low=low, high=high)
        )
    return scores


class Ranked:
    """Held-out stays in order of their logits, so that each resample costs no more than a few sums."""

    def __init__(self, logits: Floats, is_real: Floats) -> None:
        self.order = np.argsort(logits, kind="stable")
        ordered = logits[self.order]
        self.is_real = is_real[self.order]
        self.right = (ordered > 0) == (self.is_real > 0.5)
        self.ties = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))  # where each value begins

    def score_and_auc(self, weights: Index) -> tuple[float, float]:
        """|accuracy − 0.5| and the area under the ROC curve, each stay counted `weights` times."""
        w = weights[self.order].astype(np.float64)
        real = np.add.reduceat(w * self.is_real, self.ties)
        synthetic = np.add.reduceat(w * (1 - self.is_real), self.ties)
        below = np.cumsum(synthetic) - synthetic / 2  # a tie counts as half
        pairs = real.sum() * synthetic.sum()
        auc = float(real @ below / pairs) if pairs > 0 else np.nan
        return abs(float(w @ self.right / w.sum()) - 0.5), auc
