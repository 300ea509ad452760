"""A simulated ICU: vital signs, missingness, age, sex and in-hospital death, all driven by one latent severity.

Nothing here is a patient, so the demo, the tests and the benchmarks can go anywhere. The numbers are chosen to look
like an adult ICU (means, standard deviations, autocorrelation, charting gaps); they are fitted to no data set.

The patients are smooth, their charts are not, as in real data: `simulated_charting.py` measures pressures by an
arterial line or a cuff, prefers some digits, charts values again, and leaves gaps in what is measured together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort, concatenate, table_writer
from timediff.data.schema import Feature, Relation, Schema, Split
from timediff.errors import TimeDiffError
from timediff.runtime import seeding
from timediff.runtime.files import new_folder
from timediff.runtime.progress import Progress, silent
from timediff.runtime.seeding import require_seed
from timediff.runtime.sizes import VALUES_IN_A_BYTE, require_disk, require_memory
from timediff.sources.simulated_charting import charts, line_in_place


@dataclass(frozen=True)
class Vital:
    feature: Feature
    mean: float
    between: float  # standard deviation of a stay's own level
    within: float  # standard deviation of the fluctuation about that level
    severity: float  # shift for one standard deviation of severity
    shared: float  # correlation with the fluctuation common to all vital signs


def _vital(name: str, unit: str, low: float, high: float, resolution: float, *numbers: float) -> Vital:
    return Vital(Feature(name, "continuous", unit=unit, bounds=(low, high), resolution=resolution), *numbers)


VITALS = (
    _vital("heart_rate", "bpm", 20, 250, 1, 85, 11, 7, 7.0, 0.6),
    _vital("sbp", "mmHg", 30, 280, 1, 122, 13, 10, -7.0, 0.5),
    _vital("dbp", "mmHg", 10, 200, 1, 63, 8, 6, -4.0, 0.4),
    # What a line shows beside the mean that follows from the two above. Thirds are kept in hundredths: 76.67.
    _vital("mbp", "mmHg", 15, 230, 0.01, -0.5, 2.5, 1.5, 0.0, 0.0),
    _vital("resp_rate", "breaths/min", 4, 65, 1, 18, 3, 3, 2.2, 0.4),
    _vital("temperature", "°C", 31, 42, 0.1, 36.9, 0.35, 0.25, 0.12, 0.3),
    _vital("spo2", "%", 60, 100, 1, 97.6, 1.2, 1.2, -1.1, -0.3),
)
PRESSURES = (Relation("sbp", "mbp"), Relation("mbp", "dbp"), Relation("sbp", "dbp"))
PERSISTENCE = 0.9  # of severity and of the fluctuations, from one hour to the next
DEATH_INTERCEPT = -3.6  # about 13 % die
BLOCK = 10_000  # stays simulated at a time


def schema(steps: int = 48, step: str = "1h") -> Schema:
    static = (
        Feature("age", "continuous", "static", unit="years", bounds=(16, 91), resolution=1),
        Feature("sex", "binary", "static", classes=("F", "M")),
        Feature("died", "binary", "static", role="label"),
    )
    features = (*(vital.feature for vital in VITALS), *static)
    return Schema(features, steps, step, Split(test=0.25, stratify="died"), PRESSURES)


def simulate(stays: int, *, steps: int = 48, seed: int = 0, steps_per_hour: int = 1) -> Cohort:
    """`stays` simulated ICU stays on an hourly grid (or `steps_per_hour` points an hour).

    The sicker a patient, the likelier an arterial line is in place, the more is charted, and the likelier is death. A
    line shows whole pressures nearly every hour. A cuff measures less often, its pressures end in 0 more often, and
    its mean pressure is exactly (SBP + 2 DBP) / 3 with two decimals. Some stays change from the one to the other. Even
    respiratory rates and half degrees are preferred, values are charted again, and what is measured together is
    missing together.
    """
    return simulate_with_lines(stays, steps=steps, seed=seed, steps_per_hour=steps_per_hour)[0]


def simulate_with_lines(stays: int, *, steps: int = 48, seed: int = 0, steps_per_hour: int = 1) -> tuple[Cohort, Array]:
    """The same stays, and what no record says: at which steps an arterial line was in place, (N, L)."""
    if stays < 1:
        raise TimeDiffError(f"{stays} stays to simulate; expected at least 1.")
    _require_memory(stays, steps)
    blocks = list(_blocks(stays, steps=steps, seed=seed, steps_per_hour=steps_per_hour))
    return concatenate([cohort for cohort, _ in blocks]), np.concatenate([line for _, line in blocks])


def simulate_to(path: str | Path, stays: int, *, steps: int = 48, seed: int = 0, progress: Progress = silent) -> None:
    """Writes the same stays as a cohort folder, in bounded memory."""
    if stays < 1 or steps < 1:
        raise TimeDiffError(f"{stays} stays of {steps} steps to simulate; expected at least 1 of each.")
    require_seed(seed)
    _require_memory(min(stays, BLOCK), steps)
    require_disk(stays * steps * len(VITALS) // VALUES_IN_A_BYTE, Path(path), f"{stays:,} stays of {steps:,} steps")
    wanted = schema(steps)  # which says how many steps there may be
    with new_folder(Path(path)) as folder, table_writer(folder, wanted) as append:
        done = 0
        for cohort, _ in _blocks(stays, steps=steps, seed=seed):
            append(*cohort.tables())
            done += len(cohort)
            progress(done, stays)


def _require_memory(stays: int, steps: int) -> None:
    made_of = 6  # severity and fluctuations, which are as large as a vital sign
    require_memory(8 * stays * steps * (len(VITALS) + made_of), f"{stays:,} simulated stays of {steps:,} steps at once")


def _blocks(stays: int, *, steps: int, seed: int, steps_per_hour: int = 1) -> Iterator[tuple[Cohort, Array]]:
    """The stays in blocks, each from its own stream of random numbers, and where a line was in place."""
    for block, start in enumerate(range(0, stays, BLOCK)):
        rng = seeding.stream("simulation", seed, steps, steps_per_hour, block)
        yield _block(rng, start + 1, min(BLOCK, stays - start), steps, steps_per_hour)


def _block(
    rng: np.random.Generator, first_id: int, stays: int, steps: int, steps_per_hour: int
) -> tuple[Cohort, Array]:
    keep = PERSISTENCE ** (1 / steps_per_hour)
    age = np.clip(np.round(rng.normal(64, 16, stays)), 16, 91)
    sex = (rng.random(stays) < 0.56).astype(np.float64)
    trend = rng.normal(0, 0.5, (stays, 1)) * np.linspace(-0.5, 0.5, steps)  # some recover, some worsen
    level = rng.normal(0, 0.8, (stays, 1)) + 0.01 * (age[:, None] - 64)
    severity = level + trend + 0.35 * _autoregression(rng, stays, steps, keep)  # (N, L)

    true = _patients(rng, severity, keep)
    line = line_in_place(rng, severity.mean(axis=1), steps)
    series = charts(rng, true, line, severity, lambda: _autoregression(rng, stays, steps, keep**4))

    last = severity[:, -(steps // 4 or 1) :].mean(axis=1)
    risk = 1.5 * severity.mean(axis=1) + 1.5 * last + 0.04 * (age - 64)
    died = rng.logistic(size=stays) < risk + DEATH_INTERCEPT
    static: dict[str, Array] = {"age": age, "sex": sex, "died": died.astype(np.float64)}
    step = "1h" if steps_per_hour == 1 else f"{60 // steps_per_hour}min"
    return Cohort(schema(steps, step), np.arange(first_id, first_id + stays), series, static), line


def _patients(rng: np.random.Generator, severity: Floats, keep: float) -> dict[str, Floats]:
    """The vital signs themselves, (N, L) by name, before anybody measures them."""
    stays, steps = severity.shape
    common = _autoregression(rng, stays, steps, keep)
    true: dict[str, Floats] = {}
    for vital in VITALS:
        slow, fast = _autoregression(rng, stays, steps, keep), rng.standard_normal((stays, steps))
        own = np.sqrt(0.7) * slow + np.sqrt(0.3) * fast
        fluctuation = vital.shared * common + np.sqrt(1 - vital.shared**2) * own
        base = vital.mean + vital.between * rng.normal(size=(stays, 1))
        if vital.feature.name == "mbp":
            base = base + true["dbp"] + (true["sbp"] - true["dbp"]) / 3
        values = base + vital.severity * severity + vital.within * fluctuation
        if vital.feature.name == "spo2":  # saturation bends below its ceiling
            values = 100 - np.log1p(np.exp(1.2 * (100 - values))) / 1.2
        assert vital.feature.bounds is not None
        true[vital.feature.name] = np.clip(values, *vital.feature.bounds)
        if vital.feature.name == "dbp":  # a pressure wave is at least 10 mmHg high, whatever the noise says
            true["sbp"] = np.maximum(true["sbp"], true["dbp"] + 10)
    return true


def _autoregression(rng: np.random.Generator, stays: int, steps: int, keep: float) -> Floats:
    """A stationary first-order autoregression of unit variance, (N, L)."""
    shocks = rng.standard_normal((steps, stays))
    shocks[1:] *= np.sqrt(1 - keep**2)
    for step in range(1, steps):
        shocks[step] += keep * shocks[step - 1]
    return shocks.T
