"""Charts: a few synthetic stays as they would stand in a patient's chart, for the eye of a clinician."""

from collections.abc import Callable

import numpy as np

from timediff.data.arrays import Array
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature
from timediff.evaluation.figure_data import Charts

STAYS = 10
MOST_STEPS = 288  # a day of five minutes: more columns nobody reads
MOST_DECIMALS = 6


def charts(synthetic: Cohort, count: int = STAYS) -> Charts:
    """Stays that are evenly taken from the cohort. Only of synthetic stays: no real one is ever shown alone."""
    schema = synthetic.schema.generated()
    chosen = np.unique(np.linspace(0, len(synthetic) - 1, min(count, len(synthetic))).round().astype(int))
    steps = min(schema.steps, MOST_STEPS)
    about = {f.name: [_with_unit(f, text) for text in _texts(f, synthetic, chosen)] for f in schema.static}
    rows = [_texts(f, synthetic, chosen, steps) for f in schema.temporal]
    return Charts(
        schema.step,
        steps,
        schema.steps,
        [str(synthetic.stay_id[stay]) for stay in chosen],
        [{name: texts[place] for name, texts in about.items()} for place in range(len(chosen))],
        [f.name for f in schema.temporal],
        [f.unit for f in schema.temporal],
        [[texts[place * steps : (place + 1) * steps] for texts in rows] for place in range(len(chosen))],
    )


def _texts(feature: Feature, synthetic: Cohort, chosen: Array, steps: int = 1) -> list[str]:
    """The values of these stays, one stay after the other."""
    values = np.asarray(synthetic.values(feature.name), np.float64).reshape(len(synthetic), -1)
    write = writer(feature, values[~np.isnan(values)])
    return ["" if np.isnan(value) else write(value) for value in values[chosen, :steps].ravel().tolist()]


def writer(feature: Feature, known: Array) -> Callable[[float], str]:
    """How values are written in a chart: with the decimals of the resolution or, without one, those that they have."""
    if feature.discrete:
        return lambda value: str(feature.classes[int(value)])
    if feature.resolution is not None:
        text = f"{feature.resolution:.{MOST_DECIMALS}f}".rstrip("0")
        return lambda value: f"{value:.{len(text.partition('.')[2])}f}"
    for decimals in range(4):
        if np.allclose(known, np.round(known, decimals), rtol=1e-6, atol=0):
            return lambda value: f"{round(value, decimals):g}" if abs(value) < 1e4 else f"{value:.{decimals}f}"
    return lambda value: f"{value:.4g}"


def _with_unit(feature: Feature, text: str) -> str:
    return f"{text} {feature.unit}" if text and feature.unit else text
