"""Predictive score: a network that has learnt from synthetic stays foretells the next step of real ones.

- scalar: the last channel from all others, as in TimeGAN (Yoon et al., 2019); channels lie in [0, 1].
- vector: all channels from all channels, as in GT-GAN (Jeon et al., 2022).
"""

from typing import Literal

import numpy as np
import numpy.typing as npt
from torch import Tensor

from timediff.metrics.judges import Recipe, Task, bootstrap_stream, judged
from timediff.metrics.record import Score, interval, repeated, unavailable
from timediff.progress import Progress, silent

Target = Literal["vector", "scalar"]
FEWEST = 50  # stays of either kind
ITERATIONS = 5000
RESAMPLES = 1000


def predictive(
    train_series: npt.NDArray[np.float32],
    test_series: npt.NDArray[np.float32],
    *,
    target: Target = "vector",
    seed: int,
    repetitions: int,
    device: str = "cpu",
    iterations: int = ITERATIONS,
    progress: Progress = silent,
) -> list[Score]:
    """Mean absolute error on `test_series` one step ahead, learnt from `train_series`; both (N, L, C)."""
    if why := _why_not(train_series, test_series, target):
        return [unavailable("predictive", "error", why, judge=target)]
    everything = np.concatenate([train_series, test_series])
    channels = everything.shape[2]
    seen = channels if target == "vector" else channels - 1
    wanted = 0 if target == "vector" else channels - 1
    train = np.arange(len(train_series))
    task = Task(pools=(train,), held_out=len(train) + np.arange(len(test_series)))
    error = _linear_error if target == "vector" else _sigmoid_error
    errors = judged(
        Recipe(max(channels // 2, 1), reads="every step", iterations=iterations),
        everything[:, :-1, :seen],
        everything[:, 1:, wanted:],
        [task] * repetitions,
        loss=error,
        measure=error,
        seed=seed,
        device=device,
        progress=progress,
    )
    value, spreads = repeated([float(stays.mean()) for stays in errors])
    by_stay = np.mean(errors, axis=0)
    rng = bootstrap_stream(seed)
    n = len(by_stay)
    low, high = interval(np.array([by_stay[rng.integers(n, size=n)].mean() for _ in range(RESAMPLES)]))
    return [Score("predictive", "error", value, judge=target, n=n, spreads=spreads, low=low, high=high)]


def _why_not(train: npt.NDArray[np.float32], test: npt.NDArray[np.float32], target: Target) -> str:
    if min(len(train), len(test)) < FEWEST:
        return f"{len(train)} stays to learn from and {len(test)} to foretell; at least {FEWEST} of each are needed."
    if train.shape[1] < 2:
        return "stays of 1 step; at least 2 are needed to foretell the next one."
    fewest = 1 if target == "vector" else 2
    if train.shape[2] < fewest:
        return f"{train.shape[2]} channels to judge by; a {target} target needs at least {fewest}."
    return ""


def _linear_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).abs()


def _sigmoid_error(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs.sigmoid() - targets).abs()
