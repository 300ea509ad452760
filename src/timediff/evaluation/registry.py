"""Metrics by name, our own and those of other packages.

A metric is one function with the decorator `metric`, which says all that the evaluation, the terminal and the report
need to know of it. Ours are in `metrics/`, one file each, and are listed in HOMES so that a name costs no import.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from timediff.runtime.registry import Registry

if TYPE_CHECKING:
    from timediff.evaluation.case import Measurement
    from timediff.evaluation.figure_data import FigureData
    from timediff.evaluation.score import Score

Question = Literal["looks real", "useful", "private"]
Measure = Callable[["Measurement"], Sequence["Score | FigureData"]]

HOMES = {
    name: f"timediff.evaluation.metrics.{name}:measure"
    for name in (
        "copies",
        "near_copies",
        "nnaa",
        "mir",
        "discriminative",
        "fidelity",
        "clinical",
        "predictive",
        "tstr",
        "tsrtr",
        "subgroups",
        "embeddings",
    )
}  # in the order in which they are measured and shown


class Cost(NamedTuple):
    """About how many seconds it takes for 5,000 stays of the MIMIC-III shape on two cores.

    For the time that is left only the proportions matter.
    """

    once: float = 1.0
    each: float = 0.0  # repetition


ONE_SECOND = Cost()


@dataclass(frozen=True)
class Meaning:
    """What a number says, in words for someone who has never seen it."""

    title: str
    sentence: str = ""
    good: str = ""  # the value that a perfect generator has; empty where the number is a yardstick for others
    in_terminal: bool = True
    whole: bool = False  # a count
    worst: bool = False  # of several cohorts of one generator the worst counts, and not their mean
    # Of an attack, which then counts for the privacy verdict: its value without a leak. Not of averages over distances.
    no_leak: float | None = None


@dataclass(frozen=True)
class Metric:
    """A function that measures, and what must be known of it."""

    name: str  # of `--only`, and of its scores
    question: Question
    measure: Measure = field(repr=False)
    title: str = ""
    sentence: str = ""  # what it does, below the title in the report
    numbers: Mapping[str, Meaning] = field(default_factory=dict, repr=False)  # by `Score.what`
    classifiers: Mapping[str, str] = field(default_factory=dict, repr=False)  # in words, by `Score.classifier`
    floored: bool = False  # real stays in place of the synthetic ones give its floor; without, it brings its own
    cost: Cost = ONE_SECOND
    quick: bool = True  # measured with `--quick`
    mark_beyond: float | None = None  # a number of a feature is marked if it is so much worse than its floor
    headline: str = ""  # in the terminal: only the numbers of classifiers whose name begins with this

    def __post_init__(self) -> None:
        # The registry asks a part where it was defined; for a metric that is its function's place.
        for name in ("__module__", "__qualname__"):
            object.__setattr__(self, name, getattr(self.measure, name))

    def meaning(self, what: str) -> Meaning:
        """What one of its numbers says; a number that it has not described keeps its own name."""
        return self.numbers.get(what) or Meaning(what.replace("_", " "))


METRICS: Registry[Metric] = Registry("metric", "timediff.metrics", HOMES)


def metric(
    name: str,
    question: Question,
    *,
    title: str = "",
    sentence: str = "",
    numbers: Mapping[str, Meaning] | None = None,
    classifiers: Mapping[str, str] | None = None,
    floored: bool = False,
    cost: Cost = ONE_SECOND,
    quick: bool = True,
    mark_beyond: float | None = None,
    headline: str = "",
) -> Callable[[Measure], Metric]:
    """A decorator that makes a metric of the function that measures, and registers it."""

    def made(measure: Measure) -> Metric:
        found = Metric(
            name=name,
            question=question,
            measure=measure,
            title=title or name.replace("_", " "),
            sentence=sentence,
            numbers=numbers or {},
            classifiers=classifiers or {},
            floored=floored,
            cost=cost,
            quick=quick,
            mark_beyond=mark_beyond,
            headline=headline,
        )
        if HOMES.get(name) != f"{measure.__module__}:measure":  # ours are found by their place
            METRICS.add(name, found)
        return found

    return made
