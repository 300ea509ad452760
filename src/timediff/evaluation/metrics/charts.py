"""Charts: a few synthetic stays as they would stand in a patient's chart, for the eye of a clinician."""

import numpy as np

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
    return Charts(
        schema.step,
        steps,
        schema.steps,
        [str(synthetic.stay_id[stay]) for stay in chosen],
        [{f.name: _with_unit(f, written(f, synthetic.static[f.name][stay])) for f in schema.static} for stay in chosen],
        [f.name for f in schema.temporal],
        [f.unit for f in schema.temporal],
        [
            [[written(f, value) for value in synthetic.series[f.name][stay][:steps]] for f in schema.temporal]
            for stay in chosen
        ],
    )


def written(feature: Feature, value: float) -> str:
    """A value as a chart has it: with the decimals of its resolution, or four significant digits; "" = missing."""
    if np.isnan(value):
        return ""
    if feature.discrete:
        return str(feature.classes[int(value)])
    if feature.resolution is None:
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:.0f}"
    text = f"{feature.resolution:.{MOST_DECIMALS}f}".rstrip("0")
    return f"{value:.{len(text.partition('.')[2])}f}"


def _with_unit(feature: Feature, text: str) -> str:
    return f"{text} {feature.unit}" if text and feature.unit else text
