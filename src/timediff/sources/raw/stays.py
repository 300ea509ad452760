"""Who lies in a simulated database: stays, admissions and patients, with stays that each rule of extraction drops."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.sources.simulated import simulate_with_lines

SHORT, YOUNG, UNMEASURED, NO_OUTCOME = "too short", "too young", "no measurement", "no outcome"
HOUR, DAY = 3600, 86400
YEAR = 365.2425 * DAY
STATIC = (
    Feature("patient", "categorical", "static", role="patient"),
    Feature("died", "binary", "static", role="label"),
)
EXTREME = 0.002  # fraction of measurements that are odd but within the limits, so that a wrong limit shows


@dataclass(frozen=True)
class Stays:
    """All M stays in the tables, in no order. Times are seconds since 1970; age is in years."""

    rule: Array  # what drops the stay; "" = nothing
    stay_id: Array
    patient: Array  # 0, 1, …; as admission, a number within this simulation
    admission: Array
    intime: Array
    outtime: Array
    age: Floats
    sex: Array
    died: Array
    values: Floats  # (M, V, L), NaN = not measured
    line: Array  # (M, L), whether an arterial line measures the pressures

    def __len__(self) -> int:
        return len(self.rule)

    def earliest(self, group: Array) -> Array:
        """The position of each patient's (or admission's) first stay."""
        order = np.lexsort((self.intime, group))
        return order[np.searchsorted(group[order], np.arange(group.max() + 1))]

    def latest(self, group: Array) -> Array:
        """The position of each patient's (or admission's) last stay."""
        order = np.lexsort((self.intime, group))
        return order[np.searchsorted(group[order], np.arange(group.max() + 1), side="right") - 1]

    def hospital(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """When each admission began and ended, and whether in death."""
        first, last = self.earliest(self.admission), self.latest(self.admission)
        died = self.died[last]
        admitted = self.intime[first] - rng.integers(0, 12 * HOUR, len(first))
        left = self.outtime[last] + np.where(died, 0, rng.integers(0, 20 * DAY, len(last)))
        return admitted, left, died

    def truth(self, schema: Schema, patient_id: Array) -> Cohort:
        """The stays that no rule drops, by stay_id."""
        kept = np.flatnonzero(self.rule == "")
        kept = kept[np.argsort(self.stay_id[kept])]
        series = {f.name: self.values[kept, v].copy() for v, f in enumerate(schema.temporal)}
        static = {"patient": patient_id[self.patient[kept]], "died": self.died[kept].astype(np.float64)}
        return Cohort(schema, self.stay_id[kept], series, static)


def plan(
    rng: np.random.Generator,
    wanted: int,
    rules: Sequence[str],
    hours: int,
    extremes: dict[str, tuple[float, float]],
    *,
    steps: int,
    steps_per_hour: int = 1,
    line_only: Collection[str] = (),  # vital signs that nothing but an arterial line measures
    within: int,  # something is measured in the first so many steps, unless a lack of it is what drops the stay
    seed: int,
    first_id: int,
) -> Stays:
    """`wanted` stays of at least `hours`, and about a tenth more for `rules` to drop; the vital signs of `extremes`."""
    each = max(1, round(wanted / 10 / len(rules)))
    total = wanted + each * len(rules)
    rule = rng.permutation(np.repeat(np.array(["", *rules]), [wanted] + [each] * len(rules)))
    base, line = simulate_with_lines(total, steps=steps, steps_per_hour=steps_per_hour, seed=seed)
    for name in line_only:
        base.series[name][~line] = np.nan
    values = np.stack([_with_extremes(rng, base.series[name], *ends) for name, ends in extremes.items()], axis=1)
    bare = ~np.isfinite(values[:, :, :within]).any(axis=(1, 2))
    values[bare, 0, 0] = 80
    values[rule == UNMEASURED] = np.nan

    length = np.where(
        rule == SHORT, rng.integers(2 * HOUR, hours * HOUR, total), hours * HOUR + rng.exponential(2 * DAY, total)
    ).astype(np.int64)
    length[np.argmax(rule == "")] = hours * HOUR  # just long enough
    length[np.argmax(rule == SHORT)] = hours * HOUR - 1
    age = base.static["age"] + rng.uniform(0.1, 0.9, total)
    age[rule == YOUNG] = rng.uniform(0, 15.7, total)[rule == YOUNG]

    begin, end = np.array(["2101-01-01", "2190-01-01"], "datetime64[s]").astype(np.int64)
    intime = rng.integers(begin, end, total)
    exact = rng.random(total)  # some are admitted on the full minute, some on the full hour
    intime -= np.where(exact < 0.2, intime % HOUR, np.where(exact < 0.5, intime % 60, 0))
    stays = Stays(
        rule=rule,
        stay_id=numbers(rng, first_id, total),
        patient=np.arange(total),
        admission=np.arange(total),
        intime=intime,
        outtime=intime + length,
        age=age,
        sex=base.static["sex"].astype(np.int64),
        died=base.static["died"].astype(bool),
        values=values,
        line=line,
    )
    return _returning(rng, stays)


def numbers(rng: np.random.Generator, first: int, size: int) -> Array:
    """Distinct identifiers from `first` on, with gaps and in no order."""
    return first + rng.permutation(3 * size)[:size]


def near(rng: np.random.Generator, value: Floats, low: Array, high: Array, resolution: Array | float) -> Floats:
    """Another value close by: never the same, always between `low` and `high`."""
    step = rng.integers(1, 9, value.shape) * rng.choice([-1, 1], value.shape) * resolution
    outside = (value + step < low) | (value + step > high)
    other: Floats = np.round(value + np.where(outside, -step, step), 1)
    return other


def apart(rng: np.random.Generator, value: Floats, low: Array, high: Array, resolution: Array | float) -> Floats:
    """d ≥ 0 such that value − d and value + d are both between `low` and `high`."""
    room = np.minimum(value - low, high - value)
    d: Floats = np.maximum(np.minimum(rng.integers(1, 6, value.shape) * resolution, room), 0)
    return d


def _with_extremes(rng: np.random.Generator, values: Floats, low: float, high: float) -> Floats:
    odd = np.isfinite(values) & (rng.random(values.shape) < EXTREME)
    return np.where(odd, np.where(rng.random(values.shape) < 0.5, low, high), values)


def _returning(rng: np.random.Generator, stays: Stays) -> Stays:
    """Some patients come back: to the ICU in the same admission, or in a later one. Nobody does who has died."""
    able = np.flatnonzero(~np.isin(stays.rule, [YOUNG, NO_OUTCOME]))
    alive = rng.permutation(able[~stays.died[able]])
    pairs = max(1, len(stays) // 30)
    again = _pairs(alive[:pairs], alive[pairs : 2 * pairs])
    free = rng.permutation(np.setdiff1d(able, again))
    first = free[~stays.died[free]][: 3 * pairs]
    later = _pairs(first, np.setdiff1d(free, first)[: 3 * pairs])

    patient, admission, intime = stays.patient.copy(), stays.admission.copy(), stays.intime.copy()
    admission[again[1]] = admission[again[0]]
    for (before, after), days in ((again, (1, 5)), (later, (40, 900))):
        patient[after] = patient[before]
        gap = rng.integers(days[0] * DAY, days[1] * DAY, len(after))
        intime[after] = stays.outtime[before] + gap - (stays.outtime[before] + gap - stays.intime[after]) % 60
    return replace(
        stays,
        patient=np.unique(patient, return_inverse=True)[1],
        admission=np.unique(admission, return_inverse=True)[1],
        intime=intime,
        outtime=intime + (stays.outtime - stays.intime),
    )


def _pairs(before: Array, after: Array) -> Array:
    size = min(len(before), len(after))
    return np.stack([before[:size], after[:size]])
