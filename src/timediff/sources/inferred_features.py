"""Which column is what, and on which grid: guesses from names and values, each of which can be given instead."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ibis

from timediff.errors import Problems, TimeDiffError, listed
from timediff.sources.column_names import (
    LENGTH,
    ORIGIN,
    OUTCOME,
    PATIENT,
    STAY,
    TIME,
    UNIT,
    VALUE,
    VARIABLE,
    first_named,
    short,
    unit_of_name,
)
from timediff.sources.column_profiles import (
    CHUNK,
    profile,
    profiles,
    profiles_by,
)
from timediff.sources.inferred_grid import grid_of
from timediff.sources.inferred_kinds import Column, Kinds, named_feature
from timediff.sources.table_inputs import Opened
from timediff.sources.table_joining import nearest
from timediff.sources.table_reading import as_number
from timediff.sources.table_settings import LAST, Join, TableFeature, TableSettings

MOST_VARIABLES = 2_000


class Guesses:
    """The tables by name, that of SOURCE under ""; what was chosen is not guessed."""

    def __init__(
        self,
        opened: Mapping[str, Opened],
        series: Sequence[str],
        joined: Sequence[str],
        label_file: str | None,
        label: str | None,
        form: TableSettings,
        chosen: Mapping[str, Any],
    ) -> None:
        self.opened, self.series, self.joined, self.form, self.chosen = opened, series, joined, form, chosen
        self.label_file, self.label = label_file, label
        self.notes: list[str] = []
        self.main = opened[""]
        self.stay = self._role("stay", STAY, "whose row it is")
        self.time = self._role("time", TIME, "when")
        self.files = [*joined, *([label_file] if label_file is not None else [])]
        self.variable = self._optional("variable", VARIABLE)
        self.value = self._optional("value", VALUE)
        if self.variable is None or self.value is None or self.value == self.variable:
            self.variable = self.value = None
        self.patient = self._patient()
        self.joins = {name: self._join(name) for name in self.files}

    # Roles

    def _role(self, role: str, names: Sequence[str], what: str) -> str:
        columns: list[str] = list(self.main.table.columns)
        if (given := self.chosen.get(role)) is not None:
            if given not in columns:
                raise Problems(self.main.name, [f"there is no column {given!r}; {nearest(given, columns)}"])
            return str(given)
        if (found := first_named(columns, names)) is not None:
            return found
        if role == "time":
            table = self.main.table
            known = profiles(table, {c: table[c] for c in columns}, self.main.durations)
            times = [name for name, one in known.items() if one.kind in ("moment", "duration")]
            times = times or [c for c in columns if short(c).endswith("time") or unit_of_name(c) not in (None, "step")]
            if len(times) == 1:
                return times[0]
        said = f"no column seems to say {what}; {nearest('', columns)}: name it with --{role} ({role}= in Python)"
        raise Problems(self.main.name, [said])

    def _optional(self, role: str, names: Sequence[str]) -> str | None:
        columns = [c for c in self.main.table.columns if c not in (self.stay, self.time)]
        given = self.chosen.get(role)
        if given is not None and given not in columns:
            raise Problems(self.main.name, [f"there is no column {given!r}; {nearest(given, columns)}"])
        return given if given is not None else first_named(columns, names)

    def _patient(self) -> str | None:
        every = [c for name in ("", *self.joined) for c in self.opened[name].table.columns if c != self.stay]
        if (given := self.chosen.get("patient")) is not None:
            if given not in every:
                raise Problems(self.main.name, [f"there is no column {given!r}; {nearest(given, every)}"])
            return str(given)
        return first_named(every, PATIENT)

    def _join(self, name: str) -> Join:
        columns = self.opened[name].table.columns
        if self.stay in columns:
            return Join(name)
        for to in filter(None, (self.stay, self.patient)):
            if same := [c for c in columns if short(c) == short(to)]:
                return Join(name, same[0], None if same[0] == to else to)
        if (found := first_named(columns, STAY)) is None:
            raise Problems(name, [f"no column seems to say whose row it is; rename one to {self.stay!r}"])
        self.notes.append(f"{name}: column {found!r} is taken for the stay ({self.stay!r} in {self.main.name})")
        return Join(name, found, self.stay)

    # Columns

    def settings(self) -> tuple[TableSettings, list[str]]:
        columns = [*self._measured(), *self._beside()]
        self.form = replace(self.form, **self._writing(columns))
        label = self._label_column(columns)
        time_unit, date_order = self._time(columns)
        ends = [c for c in columns if c.scope == "static" and short(c.place) in LENGTH and c is not label]
        starts = [c for c in columns if c.scope == "static" and short(c.place) in ORIGIN and time_unit == "timestamp"]
        end, start = (next((c for c in some if c.profile.kind != "text"), None) for some in (ends, starts))
        kinds, entries = Kinds(self.form, self.value, self.notes), list[TableFeature]()
        for column in columns:
            if column not in (end, start) and column.place != self.patient and (entry := kinds.feature(column, label)):
                entries.append(entry)
        if self.patient is not None:
            entries.append(TableFeature(*named_feature(self.patient), scope="static", role="patient"))
        given: dict[str, Any] = {
            "layout": "wide" if self.variable is None else "long", "stay": self.stay, "time": self.time,
            "variable": self.variable, "value": self.value, "time_unit": time_unit, "date_order": date_order,
            "unit_column": self._unit_column(), "series": tuple(self.series), "ids": self._ids(),
            "origin": start.place if start else "first" if time_unit == "timestamp" else "zero",
            **self._length(end, time_unit), "feature": tuple(self._unique(entries)),
        }  # fmt: skip
        plain = tuple(name for name, join in self.joins.items() if join.on is None)
        given["static"] = plain[0] if len(plain) == 1 else plain or None
        given["join"] = tuple(join for join in self.joins.values() if join.on is not None)
        if not any(entry.scope == "temporal" for entry in entries):
            raise Problems(self.main.name, ["no column has measurements: expected numbers or classes over time"])
        if label is None:
            self._note_outcome(entries)
        step, steps, notes = grid_of(self.main, replace(self.form, **given), self.chosen)
        return replace(self.form, **given, step=step, steps=steps), [*self.notes, *notes]

    def _length(self, end: Column | None, time_unit: str) -> dict[str, Any]:
        if end is None:
            self.notes.append('no column says when a stay ends, so it ends with its last measurement: length = "last"')
            return {"length": LAST}
        if end.profile.kind in ("moment", "duration"):
            unit = "timestamp" if end.profile.kind == "moment" else "duration"
        else:
            unit = unit_of_name(end.place) or ("h" if time_unit in ("timestamp", "duration") else time_unit)
        self.notes.append(f"a stay ends as column {end.place!r} says ({unit})")
        return {"length": end.place, **({} if unit == time_unit else {"length_unit": unit})}

    def _measured(self) -> Iterator[Column]:
        """What the main table and its like have, but for whose row it is and when."""
        for name in ("", *self.series):
            opened = self.opened[name]
            taken = {self.stay, self.time}
            if self.variable is not None and self.value is not None:
                taken |= {self.variable, self.value, self._unit_column() or self.value}
                yield from self._variables(opened)
            columns = [c for c in opened.table.columns if c not in taken and not c.startswith("__index_level")]
            units = {f"{short(c)}{ending}": c for c in columns for ending in ("unit", "units", "uom")}
            of_units = {c: units[short(c)] for c in columns if short(c) in units and units[short(c)] != c}
            by_measure = {measure: column for column, measure in of_units.items()}
            measures = [column for column in columns if column not in of_units]
            known = profiles(opened.table, {c: opened.table[c] for c in measures}, opened.durations)
            static = set(measures) if self.variable is not None else self._static(opened, measures)
            for column in measures:
                scope = "static" if column in static else "temporal"
                unit_column = by_measure.get(column)
                yield Column(column, scope, opened.table, opened.table[column], known[column], None, unit_column)

    def _variables(self, opened: Opened) -> Iterator[Column]:
        table, raw = opened.table, opened.table[str(self.value)]
        names = table[str(self.variable)].cast("string").strip()
        found = profiles_by(table, names, raw)
        if len(found) > MOST_VARIABLES:
            raise TimeDiffError(
                f"{opened.name}: column {self.variable!r} has {len(found):,} different variables; expected at most "
                f"{MOST_VARIABLES:,}. Name the column with --variable."
            )
        once = self._said_once(table, names)
        for name, known in found.items():
            rows = table.filter(names == name)
            yield Column(
                name,
                "static" if name in once else "temporal",
                rows,
                rows[str(self.value)],
                known,
                None,
                self._unit_column(),
            )

    def _said_once(self, table: Any, names: Any) -> set[str]:
        """Variables that each stay has at most once, and only at its first time: what is known on admission."""
        raw = table[self.time]
        known = profile(table, self.time, raw)
        at = as_number(raw) if known.kind == "number" else raw
        rows = table.select(stay=table[self.stay], name=names, at=at, there=table[str(self.value)])
        rows = rows.filter(rows["there"].notnull(), rows["at"].notnull())
        rows = rows.mutate(late=rows["at"] > rows["at"].min().over(ibis.window(group_by="stay")))
        each = rows.group_by(["name", "stay"]).agg(times=rows["there"].count(), late=rows["late"].any())
        found = each.group_by("name").agg(most=each["times"].max(), late=each["late"].any()).to_pyarrow().to_pylist()
        some_are_later = any(row["late"] for row in found)
        return {str(row["name"]) for row in found if some_are_later and row["most"] == 1 and not row["late"]}

    def _unit_column(self) -> str | None:
        return None if self.variable is None else first_named(self.main.table.columns, UNIT)

    def _static(self, opened: Opened, names: Sequence[str]) -> set[str]:
        """Columns with one value in all rows of a stay, of stays with several rows."""
        table, found = opened.table, set[str]()
        for start in range(0, len(names), CHUNK):
            some = dict(enumerate(names[start : start + CHUNK]))
            counts = {f"there_{i}": table[name].count() for i, name in some.items()}
            kinds = {f"kinds_{i}": table[name].nunique() for i, name in some.items()}
            stays = table.group_by(self.stay).agg(rows=lambda t: t.count(), **counts, **kinds)
            varies = {
                f"varies_{i}": (
                    (stays[f"kinds_{i}"] > 1) | ((stays[f"there_{i}"] > 0) & (stays[f"there_{i}"] < stays["rows"]))
                ).sum()
                for i in some
            }
            row = stays.agg(several=(stays["rows"] > 1).sum(), **varies).to_pyarrow().to_pylist()[0]
            found |= {name for i, name in some.items() if row["several"] and not row[f"varies_{i}"]}
        return found

    def _beside(self) -> Iterator[Column]:
        for name in self.files:
            opened, keys = self.opened[name], {self.stay, self.joins[name].on}
            wanted = [c for c in opened.table.columns if c not in keys and not c.startswith("__index_level")]
            if name == self.label_file:  # what else it says may be decided by the outcome too
                wanted = [column for column in wanted if column == self.label]
            known = profiles(opened.table, {c: opened.table[c] for c in wanted}, opened.durations)
            for column in wanted:
                yield Column(column, "static", opened.table, opened.table[column], known[column])

    # How values are written

    def _writing(self, columns: Sequence[Column]) -> dict[str, Any]:
        profiles = [column.profile for column in columns]
        nothing = sorted({text for known in profiles for text in known.nothing})
        found: dict[str, Any] = {"missing": tuple(nothing)}
        commas, points = (sum(getattr(p, key) for p in profiles if p.kind == "number") for key in ("commas", "points"))
        grouped = sum(p.grouped for p in profiles if p.kind == "number")
        if commas and commas >= points:
            found["decimal"] = ","
            if grouped:
                found["thousands"] = "."
                self.notes.append('numbers such as 1.234 are taken for thousands: thousands = "."')
        return found

    def _time(self, columns: Sequence[Column]) -> tuple[str, str]:
        known = profile(self.main.table, self.time, self.main.table[self.time], self.time in self.main.durations)
        dates = [known, *(column.profile for column in columns if column.profile.kind == "moment")]
        unit = {"moment": "timestamp", "duration": "duration"}.get(known.kind, unit_of_name(self.time) or "h")
        if known.kind == "number" and self.chosen.get("time_unit") is None:
            self.notes.append(f"column {self.time!r} has numbers, taken for {unit} since the start of the stay")
        unit = self.chosen.get("time_unit") or unit
        if self.chosen.get("date_order") is not None:
            return unit, self.chosen["date_order"]
        day, month = sum(p.day_first for p in dates), sum(p.month_first for p in dates)
        if day and month:
            what = "dates are written with the day first in some rows and with the month first in others"
            raise Problems(self.main.name, [what])
        year_last = any(p.year_last for p in dates)
        if year_last and not day and not month and not any(p.dotted_dates for p in dates):
            raise Problems(
                self.main.name,
                ["dates begin with day or month, and none says which; give --date-order dmy or --date-order mdy"],
            )
        return unit, "ymd" if not year_last else "mdy" if month else "dmy"

    def _ids(self) -> str:
        ids = [(self.main, self.stay)]
        ids += [(self.opened[name], join.on or self.stay) for name, join in self.joins.items() if not join.to]
        if self.patient is not None:
            ids += [(o, self.patient) for o in self.opened.values() if self.patient in o.table.columns][:1]
        for opened, column in ids:
            raw = opened.table[column]
            text = raw.cast("string").strip().nullif("")
            number = as_number(raw)
            strange = (text.notnull() & (number.isnull() | (number != number.round()))).sum()
            padded = text.re_search(r"^0\d").sum() if raw.type().is_string() else ibis.literal(0)
            row = opened.table.agg(strange=strange, padded=padded).to_pyarrow().to_pylist()[0]
            if row["strange"] or row["padded"]:
                return "text"
        return "number"

    # Features

    def _label_column(self, columns: Sequence[Column]) -> Column | None:
        if self.label is None:
            return None
        found = [column for column in columns if column.place == self.label and column.scope == "static"]
        if not found:
            known = [column.place for column in columns if column.scope == "static"]
            temporal = any(column.place == self.label for column in columns)
            why = "changes within a stay" if temporal else f"is no column of a table; {nearest(self.label, known)}"
            raise TimeDiffError(f"the label {self.label!r} {why}: expected one value a stay.")
        return found[0]

    def _unique(self, entries: Sequence[TableFeature]) -> Iterator[TableFeature]:
        seen: set[str] = set()
        for entry in entries:
            name, i = entry.name, 2
            while name in seen:
                name, i = f"{entry.name}_{i}", i + 1
            seen.add(name)
            yield entry if name == entry.name else replace(entry, name=name, from_=entry.place)

    def _note_outcome(self, entries: Sequence[TableFeature]) -> None:
        likely = [e.place for e in entries if e.scope == "static" and e.feature.discrete and short(e.place) in OUTCOME]
        if likely:
            self.notes.append(f"no label is given; {listed(likely)} may be one: --label {likely[0]}")
