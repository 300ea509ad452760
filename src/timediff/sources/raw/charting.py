"""True values → chart rows as in MIMIC: several an hour, with rows that must not count, before, among and after."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from timediff.data.arrays import Array, Floats
from timediff.data.schema import Schema, Split
from timediff.sources import simulated
from timediff.sources.raw.csvgz import words_at
from timediff.sources.raw.items import VARIABLES, Item
from timediff.sources.raw.stays import STATIC, apart, near

STAYS = 2_000  # charted at a time

VALID, ARTEFACT, ERROR, TEXT, LOOSE = range(5)  # LOOSE = charted for the patient, but for no stay
FULL_HOUR = (0.75, 0.8)  # of the steps have a round at the full hour, and so many of its measurements are taken then
REMARKS = ("ERROR", "see nursing note", "unable, patient moving")


@dataclass(frozen=True)
class Rows:
    stay: Array  # position in what was charted
    variable: Array  # position among the variables; one past the last = an item that is not selected
    minute: Array  # from the origin
    value: Floats  # in the variable's unit
    kind: Array

    @staticmethod
    def join(parts: Sequence["Rows"]) -> "Rows":
        return Rows(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Rows)))

    def __getitem__(self, index: Array) -> "Rows":
        return Rows(*(getattr(self, field.name)[index] for field in fields(Rows)))


def schema(names: Collection[str], steps: int, test: float) -> Schema:
    units = simulated.schema()
    vitals = [replace(units[name], bounds=VARIABLES[name].bounds) for name in names]
    relations = tuple(one for one in units.relations if {one.high, one.low} <= set(names))
    return Schema((*vitals, *STATIC), steps, "1h", Split(test=test, stratify="died", group="patient"), relations)


class Chart:
    """Charts the values of some stays; `anchored` = the first valid measurement of a stay is its origin."""

    def __init__(self, schema: Schema, decoys: Sequence[int], early: Sequence[int], *, anchored: bool) -> None:
        names = [feature.name for feature in schema.temporal]
        self.low, self.high = np.array([VARIABLES[name].extremes for name in names]).T
        self.step = np.array([VARIABLES[name].step for name in names])
        self.typical = np.array([VARIABLES[name].typical for name in names])
        self.decoys, self.early, self.anchored = decoys, early, anchored

    def rows(self, rng: np.random.Generator, values: Floats, full: Array | None = None) -> Rows:
        """Rows whose last valid value in each step is that of `values` (S, V, L), in random order.

        `full` (S,) is the minute of a step at which the clock has a full hour: most is charted there.
        """
        last = self._last_minute(rng, values.shape, full)
        parts = [*self._true(rng, values, last), self._decoys(rng, values, last), *self._around(rng, values)]
        if self.anchored:
            parts.append(self._origins(rng, values, last))
        rows = Rows.join(parts)
        return rows[rng.permutation(len(rows.stay))]

    def _last_minute(self, rng: np.random.Generator, shape: tuple[int, ...], full: Array | None) -> Array:
        """The minute of the last measurement in each step, often at a full hour, or on the step's very border."""
        where = rng.random(shape)
        minute = rng.integers(0, 60, shape)
        minute = np.where(where < 0.2, 0, np.where(where < 0.25, 59, minute))
        if full is None:
            return minute
        stays, _, steps = shape
        together = rng.random((stays, 1, steps)) < FULL_HOUR[0]
        return np.where(together & (rng.random(shape) < FULL_HOUR[1]), full[:, None, None], minute)

    def _true(self, rng: np.random.Generator, values: Floats, last: Array) -> list[Rows]:
        stay, variable, step = np.nonzero(np.isfinite(values))
        true, minute = values[stay, variable, step], last[stay, variable, step]
        twice = rng.random(len(true)) < 0.1  # two items at the same minute, whose mean is the truth
        # Two values beside a third have it as their mean only up to rounding; so both are the third.
        differ = twice & (np.round(true, 1) == true)
        d = np.where(differ, apart(rng, true, self.low[variable], self.high[variable], self.step[variable]), 0)
        final = _rows(stay, variable, 60 * step + minute, np.round(true - d, 2))
        second = replace(final, value=np.round(true + d, 2))[twice]
        count = rng.choice(4, p=[0.5, 0.3, 0.15, 0.05], size=len(true)) * (minute > 0)
        of = np.repeat(np.arange(len(true)), count)
        before = (rng.random(len(of)) * minute[of]).astype(np.int64)
        earlier = _rows(stay[of], variable[of], 60 * step[of] + before, self._near(rng, variable[of], true[of]))
        return [final, second, earlier]

    def _decoys(self, rng: np.random.Generator, values: Floats, last: Array) -> Rows:
        """Not to be counted, and no earlier than the last valid row of their steps (or alone in them)."""
        stay, variable, step = np.nonzero(rng.random(values.shape) < 0.08)
        true, minute = values[stay, variable, step], last[stay, variable, step]
        minute = minute + (rng.random(len(stay)) * (60 - minute)).astype(np.int64)
        value = self._near(rng, variable, np.where(np.isnan(true), self.typical[variable], true))
        return _rows(stay, variable, 60 * step + minute, value, rng.choice(self.decoys, len(stay)))

    def _around(self, rng: np.random.Generator, values: Floats) -> list[Rows]:
        """Rows before the origin and beyond the horizon, and items that are not selected."""
        stays, variables, steps = values.shape
        stay, variable = np.nonzero(rng.random((stays, variables)) < 0.4)
        early = _rows(
            stay,
            variable,
            -rng.integers(1, 91, len(stay)),
            self._near(rng, variable, self.typical[variable]),
            rng.choice(self.early, len(stay)),
        )
        # Where any measurement makes the origin, a stay without an origin has none at all.
        possible: Array = np.isfinite(values).any(axis=(1, 2)) | np.full(stays, not self.anchored)
        stay, variable = np.nonzero((rng.random((stays, variables)) < 0.4) & possible[:, None])
        beyond = 60 * steps + rng.integers(0, 360, len(stay)) * (rng.random(len(stay)) < 0.7)
        late = _rows(stay, variable, beyond, self._near(rng, variable, self.typical[variable]))
        stay, step = np.nonzero(rng.random((stays, steps)) < 0.3)
        minute = 60 * step + rng.integers(-60, 60, len(stay))
        other = _rows(stay, np.full(len(stay), variables), minute, np.full(len(stay), np.nan))
        return [early, late, other]

    def _origins(self, rng: np.random.Generator, values: Floats, last: Array) -> Rows:
        """One measurement at minute 0 of each stay that has any in step 0."""
        seen = np.isfinite(values[:, :, 0])
        variable = np.argmax(seen * rng.random(seen.shape), axis=1)
        stay = np.arange(len(values))
        need = seen.any(axis=1) & (last[stay, variable, 0] > 0)
        stay, variable = stay[need], variable[need]
        return _rows(stay, variable, np.zeros_like(stay), self._near(rng, variable, values[stay, variable, 0]))

    def _near(self, rng: np.random.Generator, variable: Array, value: Floats) -> Floats:
        return near(rng, value, self.low[variable], self.high[variable], self.step[variable])


def _rows(stay: Array, variable: Array, minute: Array, value: Floats, kind: Array | int = VALID) -> Rows:
    return Rows(stay, variable, minute, value, np.broadcast_to(kind, stay.shape))


def to_full_hour(origin: Array) -> Array:
    """Minutes from each origin, in seconds since 1970, to the next full hour of the clock."""
    return -(origin // 60) % 60


class Catalogue:
    """Which items measure what, in each source; turns rows into what stands in the table."""

    def __init__(
        self, sources: Sequence[Sequence[Item]], names: Collection[str], left_out: Collection[int] = ()
    ) -> None:
        self.items = [item for source in sources for item in source]
        rank = {name: v for v, name in enumerate(names)}
        self.other = len(rank)
        members: dict[tuple[int, int, int], list[int]] = {}
        for position, (s, item) in enumerate((s, item) for s, source in enumerate(sources) for item in source):
            v = self.other if item.id in left_out else rank.get(item.variable or "", self.other)
            for line in (0, 1) if item.line is None else (int(item.line),):
                members.setdefault((s, line, v), []).append(position)
        self.count = np.zeros((len(sources), 2, self.other + 1), np.int64)
        self.choices = np.zeros((*self.count.shape, max(map(len, members.values()))), np.int64)
        for place, positions in members.items():
            self.count[place] = len(positions)
            self.choices[place][: len(positions)] = positions
        self.id = np.array([item.id for item in self.items])
        self.fahrenheit = np.array([item.fahrenheit for item in self.items])
        self.artefacts = np.array([item.artefacts for item in self.items])
        self.number = np.array([VARIABLES[i.variable].typical if i.variable else i.number for i in self.items])

    def columns(self, rng: np.random.Generator, rows: Rows, source: Array, line: Array) -> dict[str, Any]:
        """itemid, value, valuenum and valueuom of each row; `source` and `line` (S, L) are those of the stays."""
        size = len(rows.stay)
        step = np.clip(rows.minute // 60, 0, line.shape[1] - 1)
        place = source[rows.stay], line[rows.stay, step].astype(np.int64), rows.variable
        pick = (rng.random(size) * self.count[place]).astype(np.int64)
        item = self.choices[(*place, pick)]
        number = np.where(rows.variable == self.other, self.number[item], rows.value)
        number = np.where(self.fahrenheit[item], np.round(number * 1.8 + 32, 1), number)
        number = np.where(rows.kind == ARTEFACT, self.artefacts[item, rng.integers(4, size=size)], number)
        valuenum = pa.array(np.where(rows.kind == TEXT, np.nan, number), from_pandas=True)

        words = [*REMARKS, *(item.text for item in self.items)]
        remark = np.where(rows.kind == TEXT, rng.integers(len(REMARKS), size=size), len(REMARKS) + item)
        text = words_at(words, remark)  # null where an item has no text of its own: its number is written out
        return {
            "itemid": pa.array(self.id[item]),
            "value": pc.coalesce(text, pc.cast(valuenum, pa.string())),
            "valuenum": valuenum,
            "valueuom": words_at([item.unit for item in self.items], item),
        }
