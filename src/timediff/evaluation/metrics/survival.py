"""Survival curves: how long it takes to the event that the label is about, and how long gaps in charting last.

Time to event is estimated as Kaplan and Meier do (1958). A stay without an event, or with one after its last step, is
censored at its end.
"""

from functools import partial

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.privacy_limits import MIN_AGGREGATE
from timediff.data.schema import Feature
from timediff.evaluation.figure_data import FigureData, SurvivalCurves, plain
from timediff.evaluation.metrics import differences
from timediff.evaluation.score import Score, unavailable
from timediff.evaluation.statistics.resampling import Observations, Resampled

distance = partial(differences.distance, "clinical")


class Times:
    """When each stay left the risk of its event, and whether by the event, (N,)."""

    def __init__(self, cohort: Cohort, feature: Feature) -> None:
        time: Floats = np.asarray(cohort.values(feature.name), np.float64)
        end = cohort.lengths.astype(np.float64)
        self.event = time <= end  # NaN is not
        self.exit = np.where(self.event, np.maximum(time, 0.0), end)


def kaplan_meier(events: Floats, leaving: Floats) -> Floats:
    """The fraction without the event after each time, (R, T), of how many have it then and how many left before.

    `leaving` (R, T + 1) counts stays by the first time at which they are not at risk any more; its last column is of
    those that are at risk to the end.
    """
    whole = leaving.sum(axis=1, keepdims=True)
    at_risk = whole - np.cumsum(leaving, axis=1)[:, :-1]
    hazard = np.divide(events, at_risk, out=np.zeros_like(events), where=at_risk > 0)
    out: Floats = np.cumprod(1 - hazard, axis=1)
    return out


def score(feature: Feature, real: Resampled, synthetic: Resampled) -> Score:
    """The largest difference of the two curves, at the times of events, or at 512 quantiles of them."""
    ours, theirs = (Times(one.cohort, feature) for one in (real, synthetic))
    times = np.concatenate([one.exit[one.event] for one in (ours, theirs)])
    if len(times) == 0:
        return unavailable("clinical", "event_curve", "no stay of either cohort has the event")
    points = differences.quantiles(times)
    gap = np.abs(_curve(real, ours, points) - _curve(synthetic, theirs, points))
    n = min(len(real.cohort), len(synthetic.cohort))
    return distance("event_curve", gap.max(axis=1), n, feature=None)


def _curve(resampled: Resampled, known: Times, points: Floats) -> Floats:
    """The curve after each point, (1 + bootstrap, points); a time between two points counts as the later one."""
    events = resampled.tally(np.flatnonzero(known.event), np.searchsorted(points, known.exit[known.event]), len(points))
    # Whoever has the event is at risk at its time, and so is whoever leaves at that very time without it.
    at, after = (np.searchsorted(points, known.exit, side=side) for side in ("left", "right"))
    gone = np.where(known.event, at + 1, after)
    leaving = resampled.tally(np.arange(len(gone)), gone, len(points) + 1)
    return kaplan_meier(events, leaving)


def event_figure(feature: Feature, real: Cohort, synthetic: Cohort) -> FigureData:
    """Both curves at the end of steps."""
    curves = []
    for cohort in (real, synthetic):
        known, steps = Times(cohort, feature), cohort.schema.steps
        stay = np.flatnonzero(known.event)
        step = np.maximum(np.ceil(known.exit), 1).astype(np.int64)  # an event shows at the end of its step
        events = np.bincount(step[stay], minlength=steps + 1)[None].astype(np.float64)
        leaving = np.bincount(step + 1, minlength=steps + 2)[None].astype(np.float64)
        remain = len(cohort) - np.cumsum(leaving[0])[:-1]
        shown = where_enough(stay, step[stay], remain)
        curves.append((shown, kaplan_meier(events, leaving)[0][shown]))
    content = _curves(real.schema.step, "without the event", curves)
    return FigureData("events", "events", f"{feature.name}: time to event", content, feature.name)


def gap_figure(feature: Feature, step: str, r: Observations, s: Observations) -> FigureData | None:
    """Of the gaps in charting, the fraction that lasts longer; None where nothing is missing in either cohort."""
    curves = []
    for known in (r, s):
        stay, length = runs(known.missing)
        stays, steps = known.missing.shape
        longest = np.zeros(stays, np.int64)
        np.maximum.at(longest, stay, length)
        remain = stays - np.cumsum(np.bincount(longest, minlength=steps + 1))  # stays with a longer gap
        shown = where_enough(stay, length, remain)
        counts = np.bincount(length, minlength=steps + 1)
        curves.append((shown, 1 - np.cumsum(counts)[shown] / max(1, len(length))))
    if not any(shown for shown, _ in curves):
        return None
    content = _curves(step, "of gaps are longer", curves)
    return FigureData("gaps", "gaps", f"{feature.name}: lengths of gaps", content, feature.name)


def _curves(step: str, fraction: str, curves: list[tuple[list[int], Floats]]) -> SurvivalCurves:
    steps, fractions = {}, {}
    for name, (shown, values) in zip(("real", "synthetic"), curves, strict=True):
        steps[name], fractions[name] = shown, plain(values)
    return SurvivalCurves(step, fraction, steps, fractions)


def runs(marked: Array) -> tuple[Array, Array]:
    """Runs of marked steps, stay after stay: whose each is, and how long."""
    edges = np.diff(marked.astype(np.int8), axis=1, prepend=0, append=0)
    stay, start = np.nonzero(edges == 1)
    _, end = np.nonzero(edges == -1)
    return stay, end - start


def where_enough(stay: Array, time: Array, remain: Array) -> list[int]:
    """Times from 0 on at which a curve may be shown: at least ten stays change it between two of them, and ten remain.

    `stay[i]` changes the curve at `time[i]` > 0; `remain[t]` stays may still do so at t.
    """
    if remain[0] < MIN_AGGREGATE:
        return []
    shown, since = [0], set[int]()
    order = np.argsort(time, kind="stable")
    times, first = np.unique(time[order], return_index=True)
    for t, stays in zip(times.tolist(), np.split(stay[order], first[1:]), strict=False):
        since.update(stays.tolist())
        if remain[t] < MIN_AGGREGATE:
            break
        if len(since) >= MIN_AGGREGATE:
            shown.append(t)
            since.clear()
    return shown
