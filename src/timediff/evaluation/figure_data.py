"""What figures show, as numbers: real stays as aggregates of at least ten, synthetic stays also one by one.

Only `timediff.report` draws. Numbers are short plain lists, so that what a results folder discloses can be read in it.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.describe import Distribution, distribution
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature
from timediff.evaluation.metrics.marginals import is_rare, levels, marginals, require_same_features
from timediff.runtime.parsing import Unreadable
from timediff.runtime.stored import restored

Numbers = list[float | None]  # None = missing, or of too few stays
SETS = ("train", "test", "synthetic")


@dataclass(frozen=True)
class Course:
    """Mean and SD over stays at each step, or the fraction of a class; a panel a class."""

    feature: str
    unit: str | None
    step: str
    steps: int
    classes: list[str]  # of the panels; empty = the values themselves, in one panel
    mean: dict[str, list[Numbers]]  # by "real" and "synthetic", then by panel and step
    low: dict[str, list[Numbers]]  # mean − SD; of classes nothing
    high: dict[str, list[Numbers]]

    def __post_init__(self) -> None:
        panels = max(1, len(self.classes))
        sides = [self.mean] if self.classes else [self.mean, self.low, self.high]
        fits = all(len(side.get(which, ())) == panels for side in sides for which in ("real", "synthetic"))
        _require(fits, "a course over time has a line a panel, real and synthetic")
        fits = all(1 <= len(line) <= self.steps for line in _lines(sides))
        _require(fits, "a course over time has no more numbers than steps")
        if not self.classes:
            bands = zip(_lines([self.low]), _lines([self.high]), strict=True)
            _require(all(len(low) == len(high) for low, high in bands), "a band has two edges of one length")


@dataclass(frozen=True)
class Histogram:
    """The values of a feature, real and synthetic on the same bins."""

    unit: str | None
    middles: Numbers  # of the bins; empty where too few real stays have a value
    width: float
    ends: Numbers  # of the first and the last bin
    bins: list[str]  # in words
    real: Numbers  # fraction of values
    synthetic: Numbers

    def __post_init__(self) -> None:
        _require_equal("a histogram", self.middles, self.bins, self.real, self.synthetic)
        _require(len(self.ends) == (2 if self.middles else 0), "a histogram has two ends")
        _require(self.width >= 0, "a histogram's bins have a width")


@dataclass(frozen=True)
class ClassFractions:
    """How frequent each class is that at least ten real stays have."""

    classes: list[str]
    real: Numbers
    synthetic: Numbers
    others: bool  # the last is of all other classes together

    def __post_init__(self) -> None:
        _require_equal("fractions of classes", [*self.classes, *[None] * self.others], self.real, self.synthetic)


@dataclass(frozen=True)
class SingleStays:
    """A few synthetic stays, one by one."""

    step: str
    steps: int
    stays: list[str]
    features: list[str]
    units: list[str | None]
    values: list[list[Numbers]]  # by feature, stay and step

    def __post_init__(self) -> None:
        _require_equal("single stays", self.features, self.units, self.values)
        _require(all(len(one) == len(self.stays) for one in self.values), "single stays have a line a feature each")
        lines = [line for lines in self.values for line in lines]
        _require(all(len(line) == max(1, self.steps) for line in lines), "single stays have a number a step")


@dataclass(frozen=True)
class MissingRates:
    features: list[str]
    real: Numbers
    synthetic: Numbers

    def __post_init__(self) -> None:
        _require_equal("missing rates", self.features, self.real, self.synthetic)


@dataclass(frozen=True)
class RateBars:
    """How frequent something is, by feature or relation; of one to nine real stays it is not told."""

    what: str  # in words
    rows: list[str]
    real: Numbers
    synthetic: Numbers

    def __post_init__(self) -> None:
        _require_equal("rates", self.rows, self.real, self.synthetic)


@dataclass(frozen=True)
class ExtremeValues:
    """The lowest and highest values of a feature; a quantile of a set is told where ten stays lie so far out."""

    unit: str | None
    fractions: list[float]  # of the values that do not exceed each quantile, in ascending order
    values: dict[str, Numbers]  # by set

    def __post_init__(self) -> None:
        _require(set(self.values) == set(SETS), f"quantiles are of {', '.join(SETS)}")
        _require_equal("quantiles", self.fractions, *self.values.values())
        _require(all(0 < one < 1 for one in self.fractions), "a quantile is of a fraction between 0 and 1")
        _require(self.fractions == sorted(self.fractions), "quantiles are in ascending order")


@dataclass(frozen=True)
class SurvivalCurves:
    """Which fraction is left after so many steps, real and synthetic; only where at least ten stays change it."""

    step: str
    fraction: str  # of what, in words
    steps: dict[str, list[int]]  # by "real" and "synthetic"
    values: dict[str, Numbers]

    def __post_init__(self) -> None:
        for which in ("real", "synthetic"):
            _require(which in self.steps and which in self.values, "survival curves are of real and synthetic stays")
            _require_equal("a survival curve", self.steps[which], self.values[which])


@dataclass(frozen=True)
class Charts:
    """A few synthetic stays as they would stand in a chart; a cell is a text, empty = not measured."""

    step: str
    steps: int  # shown
    of_steps: int  # of a stay
    stays: list[str]
    about: list[dict[str, str]]  # static values of each stay, by name
    features: list[str]
    units: list[str | None]
    cells: list[list[list[str]]]  # by stay, feature and step

    def __post_init__(self) -> None:
        _require_equal("charts", self.stays, self.about, self.cells)
        _require(1 <= self.steps <= self.of_steps, "charts show some of the steps of a stay")
        for rows in self.cells:
            _require_equal("a chart", self.features, self.units, rows)
        _require(all(len(row) == self.steps for rows in self.cells for row in rows), "a chart has a cell a step")


@dataclass(frozen=True)
class DensityMap:
    """Where the stays of one set lie on a map of all stays."""

    stays: str  # "train", "test" or "synthetic"
    x: Numbers  # middles of the bins
    y: Numbers
    x_ends: Numbers  # of the first and the last bin
    y_ends: Numbers
    fractions: list[Numbers]  # by x, then y; None = fewer than ten stays
    most: float | None  # what has the full colour, so that maps beside each other can be compared

    def __post_init__(self) -> None:
        _require(self.stays in SETS, f"a map is of {', '.join(SETS)}")
        _require_equal("a map", self.x, self.fractions)
        _require(all(len(column) == len(self.y) for column in self.fractions), "a map has as many numbers as bins")
        _require(len(self.x_ends) == len(self.y_ends) == 2, "a map has two ends in each direction")


@dataclass(frozen=True)
class Points:
    """Every stay a point on the map: for the eyes of those who may see single real stays."""

    x: Numbers
    y: Numbers
    stays: list[str]  # the set of each

    def __post_init__(self) -> None:
        _require_equal("points", self.x, self.y, self.stays)
        _require(set(self.stays) <= set(SETS), f"points are of {', '.join(SETS)}")


@dataclass(frozen=True)
class PlotlyFigure:
    """A figure that is drawn already, as Plotly's JSON: those of version 0.1.0, or of a metric of another package."""

    figure: dict[str, Any]

    def __post_init__(self) -> None:
        # Numbers that a page cannot hold are missing; what is no JSON at all is a mistake of whoever made the figure.
        plain = json.loads(json.dumps(self.figure), parse_constant=lambda _: None)
        object.__setattr__(self, "figure", plain)


Content = (
    Course
    | Histogram
    | ClassFractions
    | SingleStays
    | MissingRates
    | RateBars
    | ExtremeValues
    | SurvivalCurves
    | Charts
    | DensityMap
    | Points
    | PlotlyFigure
)
KINDS: dict[str, type[Content]] = {
    "course": Course,
    "histogram": Histogram,
    "classes": ClassFractions,
    "stays": SingleStays,
    "missing": MissingRates,
    "rates": RateBars,
    "quantiles": ExtremeValues,
    "survival": SurvivalCurves,
    "charts": Charts,
    "density": DensityMap,
    "points": Points,
    "plotly": PlotlyFigure,
}
NAMES = {kind: name for name, kind in KINDS.items()}


@dataclass(frozen=True)
class FigureData:
    """What one figure shows, and where it stands in the report."""

    name: str  # of its file
    section: str  # one of report.gallery.GALLERIES or "charts", or another heading
    title: str
    content: Content
    feature: str | None = None
    generator: str | None = None

    @property
    def single(self) -> bool:
        """Whether it shows stays one by one; nobody knows what a figure of version 0.1.0 among them shows."""
        return self.section == "stays" or isinstance(self.content, SingleStays | Charts)

    def to_json(self) -> dict[str, Any]:
        about = {name: value for name, value in vars(self).items() if name != "content"}
        return about | {"kind": NAMES[type(self.content)], "data": asdict(self.content)}

    @staticmethod
    def from_json(table: Any, where: str) -> "FigureData":
        if not isinstance(table, dict):
            raise Unreadable(f"{where} is not a figure.")
        kind, data = table.get("kind"), table.get("data")
        if "figure" in table:  # as version 0.1.0 wrote it
            kind, data = "plotly", {"figure": table["figure"]}
        if not isinstance(kind, str) or kind not in KINDS:
            raise Unreadable(f"{where} is not a figure: its kind is none of {', '.join(KINDS)}.")
        about = {name: value for name, value in table.items() if name not in ("kind", "data", "figure")}
        known = restored(AboutFigure, about, where)
        content: Content = restored(KINDS[kind], data, where)
        return FigureData(known.name, known.section, known.title, content, known.feature, known.generator)


@dataclass(frozen=True)
class AboutFigure:
    """What a figure's file says beside its numbers."""

    name: str
    section: str
    title: str
    feature: str | None
    generator: str | None


def named(generator: str, figures: Iterable[FigureData]) -> list[FigureData]:
    """Named for their files, which no generator's name can lead elsewhere."""
    short = hashlib.sha256(generator.encode()).hexdigest()[:8]
    return [replace(f, name=f"{f.name}-{short}-{i:03}", generator=generator) for i, f in enumerate(figures)]


def cohort_figures(real: Cohort, synthetic: Cohort, generator: str, *, single: bool = False) -> list[FigureData]:
    """What there is to see of a synthetic cohort beside real stays; `single` stays only where none is a copy."""
    return named(generator, _of_cohort(real, synthetic, single))


def _of_cohort(real: Cohort, synthetic: Cohort, single: bool) -> Iterator[FigureData]:
    generated = [feature for feature in real.schema.features if feature.generated]
    temporal = [feature for feature in generated if feature.scope == "temporal"]
    for feature in temporal:
        course = course_over_time(real, synthetic, feature.name)
        yield FigureData("trajectories", "trajectories", f"{feature.name} over time", course, feature.name)
    for feature in generated:
        overlay = distributions(distribution(real, feature, MIN_AGGREGATE), synthetic)
        yield FigureData("distributions", "distributions", feature.name, overlay, feature.name)
    if single and any(not feature.discrete for feature in temporal):
        yield FigureData("stays", "stays", "Single synthetic stays", single_stays(synthetic))
    yield FigureData("missingness", "missingness", "Fraction of missing values", missing_rates(real, synthetic))


def course_over_time(real: Cohort, synthetic: Cohort, feature: str) -> Course:
    """Of one temporal feature; a gap where fewer than ten stays are observed."""
    require_same_features(real.schema, synthetic.schema)
    described = real.schema[feature]
    panels = levels(described)
    mean: dict[str, list[Numbers]] = {"real": [], "synthetic": []}
    low: dict[str, list[Numbers]] = {"real": [], "synthetic": []}
    high: dict[str, list[Numbers]] = {"real": [], "synthetic": []}
    least, most = _possible(described, real.series[feature])
    for level in panels:
        for name, cohort in (("real", real), ("synthetic", synthetic)):
            values = cohort.series[feature]
            if level is not None:
                values = np.where(np.isnan(values), np.nan, values == level)
            middle, sd = _by_step(values)
            if name == "real" and level is not None and is_rare(real, described, level):
                middle = np.full_like(middle, np.nan)
            mean[name].append(plain(middle))
            if level is None:
                low[name].append(plain(np.maximum(middle - sd, least)))
                high[name].append(plain(np.minimum(middle + sd, most)))
    classes = [str(described.classes[level]) for level in panels if level is not None]
    steps = max(real.schema.steps, synthetic.schema.steps)
    return Course(feature, described.unit, real.schema.step, steps, classes, mean, low, high)


def _possible(feature: Feature, values: Floats) -> tuple[float, float]:
    """Beyond which no value can lie, so that no band does: the schema's bounds, or 0 for what is never negative."""
    if feature.bounds is not None:
        return feature.bounds
    return (0.0 if (values[~np.isnan(values)] >= 0).all() else -np.inf), np.inf


def _by_step(values: Floats) -> tuple[Floats, Floats]:
    """Mean and SD over stays at each step, (L,); NaN where fewer than ten stays are observed."""
    observed = ~np.isnan(values)  # (N, L)
    count = observed.sum(axis=0)
    divisor = np.where(count >= MIN_AGGREGATE, count, np.nan)
    mean = np.where(observed, values, 0).sum(axis=0) / divisor
    sd = np.sqrt(np.where(observed, (values - mean) ** 2, 0).sum(axis=0) / divisor)
    return mean, sd


def distributions(known: Distribution, synthetic: Cohort) -> Histogram | ClassFractions:
    """One feature, real as far as at least ten stays say it, and synthetic on the same bins or classes."""
    values = np.asarray(synthetic.values(known.feature.name), np.float64).ravel()
    observed = values[~np.isnan(values)]
    if known.feature.discrete:
        return _class_fractions(known, observed)
    if not known.shown:
        return Histogram(known.feature.unit, [], 0.0, [], [], [], [])
    counts, _ = np.histogram(observed, known.edges)
    fractions = counts / max(1, len(observed))
    return Histogram(
        known.feature.unit,
        plain((known.edges[:-1] + known.edges[1:]) / 2, digits=6),
        float(f"{known.edges[1] - known.edges[0]:.6g}"),
        plain(known.edges[[0, -1]], digits=6),
        bin_names(known),
        plain(known.heights),
        plain(fractions),
    )


def _class_fractions(known: Distribution, observed: Floats) -> ClassFractions:
    """Of the classes that at least ten real stays have, and of all others together where that may be shown."""
    shown = [observed == place for place, name in enumerate(known.feature.classes) if str(name) in known.class_rates]
    counts = [int(these.sum()) for these in shown]
    real, names = list(known.class_rates.values()), list(known.class_rates)
    others = known.rare is not None and not np.isnan(known.rare)
    if others and known.rare is not None:
        counts, real = [*counts, len(observed) - sum(counts)], [*real, known.rare]
    synthetic = np.array(counts, np.float64) / max(1, sum(counts))
    return ClassFractions(names, plain(np.array(real)), plain(synthetic), others)


def bin_names(known: Distribution) -> list[str]:
    """A bin is named by the values in it, not by the edges half-way between values."""
    low, high, inner = known.edges[:-1], known.edges[1:], (known.spacing or 0) / 2
    if known.spacing and (high - low)[0] < 1.5 * known.spacing:
        return [f"{a + inner:.4g}" for a in low]
    return [f"{a + inner:.4g} to {b - inner:.4g}" for a, b in zip(low, high, strict=True)]


def single_stays(synthetic: Cohort, features: Sequence[str] | None = None, count: int = 4) -> SingleStays:
    """A few synthetic stays, evenly taken from the cohort: continuous features, or those named."""
    schema = synthetic.schema
    names = [f.name for f in schema.temporal if not f.discrete] if features is None else list(features)
    chosen = np.unique(np.linspace(0, len(synthetic) - 1, min(count, len(synthetic))).round().astype(int))
    return SingleStays(
        schema.step,
        schema.steps,
        [str(synthetic.stay_id[stay]) for stay in chosen],
        names,
        [schema[name].unit for name in names],
        [[plain(synthetic.series[name][stay]) for stay in chosen] for name in names],
    )


def missing_rates(real: Cohort, synthetic: Cohort) -> MissingRates:
    """By feature, real beside synthetic."""
    records = {record.feature: record for record in reversed(marginals(real, synthetic))}
    names = [feature.name for feature in real.schema.features if feature.generated]
    shown = [records[name] for name in names]
    rates = [record.real_missing if record.real_stays >= MIN_AGGREGATE else np.nan for record in shown]
    return MissingRates(names, plain(np.array(rates)), plain(np.array([record.synthetic_missing for record in shown])))


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)


def _require_equal(what: str, *lists: Sized) -> None:
    _require(len(set(map(len, lists))) == 1, f"{what}: lists of different length")


def _lines(sides: Iterable[dict[str, list[Numbers]]]) -> list[Numbers]:
    return [line for side in sides for which in ("real", "synthetic") for line in side[which]]


def plain(values: Array, digits: int = 4) -> Numbers:
    """Four significant digits, None where missing."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in values.tolist()]
