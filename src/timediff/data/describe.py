"""What a cohort holds, a record a feature: the paper's table of data set statistics for your data."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.lattices import on_lattice
from timediff.data.privacy_limits import HIDDEN
from timediff.data.schema import Feature
from timediff.runtime.parsing import Unreadable, read_json
from timediff.runtime.stored import value_of

BINS = (30, 20, 12, 8, 5)  # fewer where too few stays would leave gaps
GAPS = 0.02  # of the values may be in bins of too few stays
TAIL = 0.01  # beyond these quantiles a histogram ends
LATTICES = (1.0, 0.5, 0.1, 0.05, 0.01, 0.005, 0.001)  # on which values may lie, the coarsest first
MOST = 0.6  # of the values lie on their lattice; of halves, half are whole numbers by chance
POINTS = 10  # of a lattice, at least, within a histogram


@dataclass(frozen=True)
class Description:
    feature: Feature
    missing: float  # rate among the steps of every stay, or among stays
    low: float
    mean: float
    sd: float
    high: float
    class_rates: dict[str, float]  # among what was observed


def describe(cohort: Cohort) -> list[Description]:
    """One record a generated feature, in the schema's order."""
    records = []
    for feature in cohort.schema.features:
        if feature.generated:
            values = cohort.values(feature.name)
            records.append(_described(feature, values[cohort.step_mask] if feature.scope == "temporal" else values))
    return records


def missing_rate(cohort: Cohort) -> float:
    """The fraction of temporal values that were not measured."""
    inside = cohort.step_mask
    return float(np.mean([np.isnan(cohort.series[f.name][inside]).mean() for f in cohort.schema.temporal]))


def _described(feature: Feature, values: Array) -> Description:
    observed = values[~np.isnan(values)]
    missing = 1 - len(observed) / len(values)
    if len(observed) == 0:
        return Description(feature, missing, np.nan, np.nan, np.nan, np.nan, {})
    class_rates = {str(name): float((observed == i).mean()) for i, name in enumerate(feature.classes)}
    with np.errstate(over="ignore", invalid="ignore"):  # of values near the largest there are
        low, mean, sd, high = (float(f(observed)) for f in (np.min, np.mean, np.std, np.max))
    return Description(feature, missing, low, mean, sd, high, class_rates)


@dataclass(frozen=True)
class Extracted:
    """What extraction.json says of where a cohort came from."""

    found: int
    dropped: dict[str, int]  # by rule, in the order they were applied
    kept: int
    facts: dict[str, str]  # engine, versions, hashes
    measurements: int = 0  # found, where a source counts them
    lost: dict[str, int] = field(default_factory=dict)  # of them, by reason

    def losses(self) -> list[str]:
        """A line a reason for which measurements were lost."""
        return [f"{count:,} of {self.measurements:,} measurements {reason}" for reason, count in self.lost.items()]

    def rows(self) -> list[tuple[str, str]]:
        """The way from all stays to those of the cohort, a line a rule."""
        dropped = [(rule, f"−{count:,}" if count else "0") for rule, count in self.dropped.items()]
        return [("found", f"{self.found:,}"), *dropped, ("kept", f"{self.kept:,}")]


def read_extraction(folder: Path) -> Extracted | None:
    """What the cohort folder's extraction.json says; None without one."""
    path = folder / "extraction.json"
    if not path.is_file():
        return None
    table = read_json(path)
    if not isinstance(table, dict):
        raise Unreadable(f"{path} is not what an extraction writes: expected a table.")
    counts = {"stays_found": int, "stays_dropped": dict[str, int], "stays": int}
    found, dropped, kept = (value_of(kind, table.get(key), str(path), key) for key, kind in counts.items())
    no_facts = {*counts, "format", "features", "measurements", "notes"}
    facts = {key: str(value) for key, value in table.items() if key not in no_facts}
    measured = table.get("measurements", {"found": 0, "lost": {}})
    if not isinstance(measured, dict):
        raise Unreadable(f"{path} is not what an extraction writes: measurements is no table.")
    lost = value_of(dict[str, int], measured.get("lost"), str(path), "measurements.lost")
    return Extracted(found, dropped, kept, facts, value_of(int, measured.get("found"), str(path), "found"), lost)


def statistics(cohort: Cohort, fewest: int = 0) -> dict[str, str]:
    """The paper's table of data set statistics, one row; no rate that fewer than `fewest` stays decide."""
    enough = len(cohort) >= fewest
    steps = f"{cohort.schema.steps}" if cohort.length is None else f"up to {cohort.schema.steps}"
    row = {
        "sample size": f"{len(cohort):,}",
        "temporal features": f"{len(cohort.schema.temporal)}",
        "steps": f"{steps} of {cohort.schema.step}",
        "missing": f"{missing_rate(cohort):.1%}" if enough else HIDDEN,
    }
    label = cohort.schema.label
    if label is not None:
        rates = distribution(cohort, label, fewest).class_rates
        texts = [f"{name}: {rate:.1%}" for name, rate in rates.items()]
        if label.kind == "binary":  # the rate of the second class says it all
            texts = [f"{rate:.1%}" for name, rate in rates.items() if name == str(label.classes[1])]
        row[f"label {label.name}"] = ", ".join(texts) or (HIDDEN if fewest else "–")
    return row


@dataclass(frozen=True)
class Distribution:
    """One feature as aggregates of at least `fewest` stays: what may be shown of real data."""

    feature: Feature
    stays: int  # with at least one value
    missing: float  # NaN where too few stays have a value
    mean: float = np.nan
    sd: float = np.nan
    low: float = np.nan  # 1st percentile, or further in where it would be the value of too few stays
    high: float = np.nan
    edges: Floats = field(default_factory=lambda: np.empty(0))  # of the bins, (B + 1,); empty = nothing to draw
    heights: Floats = field(default_factory=lambda: np.empty(0))  # rates of the bins, (B,); NaN = from too few stays
    spacing: float | None = None  # of neighbouring values, where all of them lie on a lattice
    class_rates: dict[str, float] = field(default_factory=dict)  # of the classes that enough stays have
    # Empty also where only one class could be shown, which would then seem to be all there is.
    rare: float | None = None  # rate of all other classes together; NaN where even together too few stays have them

    @property
    def shown(self) -> bool:
        return bool(self.class_rates) or len(self.edges) > 0

    @property
    def undrawn(self) -> float:
        """Fraction of the observed values that no bin shows."""
        return max(0.0, 1 - float(np.nansum(self.heights)))


def distribution(cohort: Cohort, feature: Feature, fewest: int) -> Distribution:
    """What at least `fewest` stays say of one feature."""
    values = cohort.values(feature.name).astype(np.float64).reshape(len(cohort), -1)  # (N, L) or (N, 1)
    inside = cohort.step_mask if feature.scope == "temporal" else np.ones(values.shape, dtype=bool)
    there = inside & ~np.isnan(values)
    stays = int(there.any(axis=1).sum())
    observed = values[there]
    # That nobody has a value is nobody's secret; that a few have one is theirs.
    missing = 1 - len(observed) / int(inside.sum()) if (stays >= fewest or stays == 0) and inside.any() else np.nan
    if stays < max(fewest, 1):
        return Distribution(feature, stays, missing)
    known = Distribution(feature, stays, missing, float(observed.mean()), float(observed.std()))
    if feature.discrete:
        class_rates, rare = _classes(feature, np.where(there, values, np.nan), fewest)
        return replace(known, class_rates=class_rates, rare=rare)
    low, high = (float(np.quantile(observed, q, method="inverted_cdf")) for q in (TAIL, 1 - TAIL))
    low = max(low, float(np.sort(np.where(there, values, np.inf).min(axis=1))[fewest - 1]))
    high = min(high, float(np.sort(np.where(there, values, -np.inf).max(axis=1))[-fewest]))
    if low > high:
        return known
    step, whole = _lattice(observed, low, high, feature.resolution)
    for bins in BINS:
        edges = _edges(low, high, step, bins)
        heights = _heights(values, there, edges, fewest)
        if np.nansum(heights) >= ((observed >= edges[0]) & (observed <= edges[-1])).mean() - GAPS:
            break
    return replace(known, low=low, high=high, edges=edges, heights=heights, spacing=step if whole else None)


def missing_by_step(cohort: Cohort, feature: Feature, fewest: int) -> Floats:
    """Missing rate at each step among the stays that reach it, (L,); NaN where fewer than `fewest` do."""
    reached = cohort.step_mask
    absent = reached & np.isnan(cohort.series[feature.name])
    having = int((reached & ~absent).any(axis=1).sum())
    count = reached.sum(axis=0)
    shown = (count >= fewest) & (having >= fewest or having == 0)
    return np.asarray(absent.sum(axis=0) / np.where(shown, count, np.nan))


def _classes(feature: Feature, values: Floats, fewest: int) -> tuple[dict[str, float], float | None]:
    """Rates of the classes that at least `fewest` stays have, and of the rest together."""
    counts = np.array([(values == i).sum() for i in range(len(feature.classes))])
    common = np.array([(values == i).any(axis=1).sum() >= fewest for i in range(len(feature.classes))])
    others = int(np.isin(values, np.flatnonzero(~common)).any(axis=1).sum())
    counted = counts.sum() if others >= fewest else counts[common].sum()
    class_rates = {str(feature.classes[i]): float(counts[i] / counted) for i in np.flatnonzero(common)}
    if common.all():
        return class_rates, None
    if len(class_rates) == 1 and 0 < others < fewest:
        return {}, np.nan
    return class_rates, float(counts[~common].sum() / counted) if others >= fewest else np.nan


def _lattice(observed: Floats, low: float, high: float, resolution: float | None) -> tuple[float | None, bool]:
    """The coarsest lattice on which most values lie, if any, and whether all of them do.

    The most frequent value is left out: a zero lies on every lattice.
    """
    distinct, counts = np.unique(observed, return_counts=True)
    others = counts.copy()
    others[counts.argmax()] = 0
    finest = resolution or LATTICES[0]  # is taken however few points it has here
    for step in dict.fromkeys((*(step for step in LATTICES if step >= (resolution or 0)), finest)):
        on = on_lattice(distinct, step)
        if (on.all() or others[on].sum() > MOST * others.sum()) and ((high - low) / step >= POINTS or step == finest):
            return step, bool(on.all())
    return None, False


def _edges(low: float, high: float, step: float | None, bins: int) -> Floats:
    """At most so many bins; those of values on a lattice have edges half-way between its points.

    Each has equally many points, or the bins would show a comb.
    """
    if step is None:
        return np.linspace(low, high, bins + 1) if high > low else np.array([low - 0.5, low + 0.5])
    first, last = (int(np.floor(end / step + 0.5)) for end in (low, high))
    points = last - first + 1
    width = -(-points // bins)
    return np.asarray(step * (first - 0.5 + width * np.arange(-(-points // width) + 1)))


def _heights(values: Floats, there: Array, edges: Floats, fewest: int) -> Floats:
    bins = len(edges) - 1
    place = np.searchsorted(edges, values, side="right") - 1
    place[values == edges[-1]] = bins - 1  # the last bin is closed
    within = there & (place >= 0) & (place < bins)
    seen = np.zeros((len(values), bins), dtype=bool)
    seen[np.nonzero(within)[0], place[within]] = True
    counts = np.bincount(place[within], minlength=bins)
    return np.where(seen.sum(axis=0) >= fewest, counts / there.sum(), np.nan)
