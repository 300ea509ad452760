"""Settings of an evaluation as they are given in Python, where a metric may be a function of one's own."""

import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any

from timediff.errors import TimeDiffError
from timediff.evaluation.registry import HOMES, METRICS, Meaning, Metric, metric
from timediff.evaluation.score import Score
from timediff.evaluation.settings import EvaluationSettings

if TYPE_CHECKING:
    from timediff.evaluation.case import Measurement
    from timediff.evaluation.figure_data import FigureData

Asked = str | Metric | Callable[..., Any]  # a name, or what the decorator `metric` makes, or a plain function


def requested(
    settings: EvaluationSettings | None = None,
    *,
    quick: bool = False,
    metrics: Iterable[Asked] = (),
    **changes: Any,
) -> EvaluationSettings:
    """The settings with these changes; `metrics` are measured beside ours, `only` in place of them."""
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in changes.items()}
    for key in ("only", "skip"):
        if key in given:
            one = given[key]
            given[key] = tuple(map(name_of, [one] if isinstance(one, str) or callable(one) else one))
    found = settings or EvaluationSettings()
    if quick:
        short = EvaluationSettings.quick()
        skip = () if given.get("only", found.only) else short.skip
        found = replace(found, repetitions=short.repetitions, skip=(*found.skip, *skip))
    try:
        found = replace(found, **given)
    except TypeError as error:
        known = ", ".join(EvaluationSettings.__dataclass_fields__)
        raise TimeDiffError(f"{error}: the settings of an evaluation are quick, metrics, {known}.") from None
    more = [name for name in map(name_of, metrics) if name not in found.only]
    return replace(found, only=(*(found.only or HOMES), *more)) if more else found


def name_of(asked: Asked) -> str:
    """The name of a metric, which is registered if it was not."""
    if isinstance(asked, str):
        return asked
    if isinstance(asked, Metric):
        if asked.name not in METRICS or METRICS(asked.name) is not asked:
            METRICS.add(asked.name, asked)
        return asked.name
    name = getattr(asked, "__name__", "")
    if not callable(asked) or not name.isidentifier():
        raise TimeDiffError(
            f"a metric is of type {type(asked).__name__}; expected the name of one, or a function with a name "
            "(def, not lambda) of a measurement."
        )
    return _made(name, asked).name


def _made(name: str, function: Callable[..., Any]) -> Metric:
    """A metric of a function that returns one number, or scores."""

    @wraps(function)
    def measure(measurement: "Measurement") -> "Sequence[Score | FigureData]":
        value = function(measurement)
        if isinstance(value, numbers.Real):
            return [Score(name, "value", float(value), n=len(measurement.cohort))]
        if isinstance(value, list | tuple):
            return value
        raise TimeDiffError(f"the metric {name!r} returned {type(value).__name__}; expected a number or scores.")

    title = name.replace("_", " ")
    return metric(name, "looks real", title=title, numbers={"value": Meaning(title)}, floored=True)(measure)
