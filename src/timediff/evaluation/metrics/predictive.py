"""Predictive score: a network that was trained on synthetic stays predicts the next step of real ones.

- scalar: the last channel from all others, as in TimeGAN (Yoon et al., 2019); channels lie in [0, 1].
- vector: all channels from all channels, as in GT-GAN (Jeon et al., 2022).
"""

from typing import Literal

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Floats, Units
from timediff.data.units import resampling_units
from timediff.evaluation.case import Measurement
from timediff.evaluation.inputs.view import windows
from timediff.evaluation.registry import Cost, Meaning, metric
from timediff.evaluation.score import Score, mean_and_std, unavailable
from timediff.evaluation.statistics.bootstrap import bootstrap, interval, resample
from timediff.runtime.progress import Progress, silent

Target = Literal["vector", "scalar"]
FEWEST = 50  # stays of either kind
ITERATIONS = 5000  # TimeGAN's
RESAMPLES = 1000


@metric(
    "predictive",
    "useful",
    title="Forecasting the next step",
    sentence="A neural network is trained on synthetic stays to forecast the next step, and is tested on real stays.",
    numbers={
        "error": Meaning(
            "forecast error",
            "Mean absolute error of the forecast on real stays.",
            "as low as after training on real stays",
        )
    },
    classifiers={"scalar": "last feature", "vector": "all features"},
    floored=True,
    cost=Cost(0, 17),
)
def measure(given: Measurement) -> list[Score]:
    settings, test, cohort = given.settings, given.test, given.cohort
    if settings.protocol == "paper":  # as the authors' code: as many to train on as to predict
        count = min(len(test), len(cohort))
        test, cohort = given.case.some(test, count), given.case.some(cohort, count)
    scalar = settings.protocol == "paper" and windows(test.schema)  # TimeGAN's, for values scaled to [0, 1]
    real, synthetic = given.view.unlabelled.compared(test, cohort)
    return predictive(
        synthetic,
        real,
        units=resampling_units(test),
        seed=settings.seed,
        repetitions=settings.repetitions,
        target="scalar" if scalar else "vector",
        device=given.device,
        progress=given.progress,
    )


def predictive(
    train_series: npt.NDArray[np.float32],
    test_series: npt.NDArray[np.float32],
    *,
    target: Target = "vector",
    units: Units | None = None,
    seed: int,
    repetitions: int,
    device: str = "cpu",
    iterations: int = ITERATIONS,
    progress: Progress = silent,
) -> list[Score]:
    """Mean absolute error on `test_series` one step ahead, after training on `train_series`; both (N, L, C).

    `units` say which test stays are drawn together in a resample; without, each is drawn by itself.
    """
    from timediff.evaluation.classifiers import series_classifiers as classifiers
    from timediff.evaluation.classifiers.parallel_networks import Recipe

    if why := _why_not(train_series, test_series, target):
        return [unavailable("predictive", "error", why, classifier=target)]
    everything = np.concatenate([train_series, test_series])
    channels = everything.shape[2]
    seen = channels if target == "vector" else channels - 1
    wanted = 0 if target == "vector" else channels - 1
    train = np.arange(len(train_series))
    stays = classifiers.Repetition(pools=(train,), held_out=len(train) + np.arange(len(test_series)))
    error = classifiers.absolute_error if target == "vector" else classifiers.sigmoid_absolute_error
    errors = classifiers.train_and_measure(
        Recipe(max(channels // 2, 1), reads="every step", iterations=iterations),
        everything[:, :-1, :seen],
        everything[:, 1:, wanted:],
        [stays] * repetitions,
        loss=error,
        measure=error,
        seed=seed,
        device=device,
        progress=progress,
    )
    value, std = mean_and_std([float(by_stay.mean()) for by_stay in errors])
    by_stay = np.mean(errors, axis=0)
    rng, n = classifiers.bootstrap_stream(seed), len(by_stay)

    def resampled() -> Floats:
        counts = resample(n if units is None else units, rng)
        return np.asarray(counts @ by_stay / counts.sum())

    low, high = interval(bootstrap(resampled, RESAMPLES))
    return [Score("predictive", "error", value, classifier=target, n=n, std=std, low=low, high=high)]


def _why_not(train: npt.NDArray[np.float32], test: npt.NDArray[np.float32], target: Target) -> str:
    if min(len(train), len(test)) < FEWEST:
        return f"{len(train)} training stays and {len(test)} to predict; at least {FEWEST} of each are needed."
    if train.shape[1] < 2:
        return "stays of 1 step; at least 2 are needed to predict the next one."
    fewest = 1 if target == "vector" else 2
    if train.shape[2] < fewest:
        return f"{train.shape[2]} channels to see; a {target} target needs at least {fewest}."
    return ""
