"""The settings of any table: which column is what, how it is written, and on which grid."""

from dataclasses import dataclass
from typing import Literal, cast

from timediff.data.schema import MOST_STEPS, Feature, Kind, Relation, Role, Schema, Scope, Split
from timediff.sources.grid import Rule, rule_problems, step_problems, step_seconds
from timediff.sources.setting_checks import MOST_HOURS, CheckedSettings, beyond, schema_problems
from timediff.sources.units import conversion, known_units
from timediff.sources.variables import Limits

TICKS = 1_000_000  # times are counted in microseconds: whole numbers, at which a step begins exactly
UNITS = {"d": 86400 * TICKS, "h": 3600 * TICKS, "min": 60 * TICKS, "s": TICKS}
TimeUnit = Literal["timestamp", "duration", "d", "h", "min", "s", "step"]
GRID, LAST = "grid", "last"  # lengths that are no column


@dataclass(frozen=True)
class TableFeature(Limits):
    """A feature, where it stands in the table, how it is written there, and its plausible range."""

    name: str
    from_: str | None = None  # its column in a wide table, its variable in a long one; the name unless given
    kind: Kind = "continuous"
    scope: Scope = "temporal"
    role: str | None = None  # label, patient, order or event_time: the schema says so when it is none of them
    unit: str | None = None
    bounds: tuple[float, float] | None = None
    resolution: float | None = None
    classes: tuple[str, ...] | tuple[int, ...] = ()
    rule: str | None = None  # of this feature, where it is not the table's
    spellings: dict[str, tuple[str, ...]] | None = None  # what else means a class: F = ["f", "Female"]
    recorded: str | None = None  # the unit that its values are written in, where that is not `unit`
    unit_column: str | None = None  # the column that says the unit of each value
    substance: str | None = None  # between mmol/L and mg/dL; found in the name unless given
    file: str | None = None  # where several joined files have its column

    @property
    def place(self) -> str:
        return self.from_ or self.name

    @property
    def feature(self) -> Feature:
        kind: Kind = "categorical" if self.role == "patient" else self.kind
        role = cast(Role | None, self.role)
        return Feature(self.name, kind, self.scope, role, self.unit, self.bounds, self.resolution, classes=self.classes)

    def problems(self) -> list[str]:
        """What is wrong with how it is written; the schema says what is wrong with the rest."""
        what, found = f"feature {self.name!r}", rule_problems(f"feature {self.name!r}", self.rule)
        if self.spellings is not None:
            names = [str(name) for name in self.feature.classes]
            found += [
                f"{what}: spellings of {name!r}, which is none of its classes"
                for name in self.spellings
                if name not in names
            ]
            every = [spelling for spellings in self.spellings.values() for spelling in spellings]
            found += [f"{what}: a spelling is listed twice"] if len(set(every)) < len(every) else []
        if (self.recorded or self.unit_column) and self.kind != "continuous":
            found.append(f"{what}: recorded and unit_column are for continuous features")
        elif self.recorded and self.unit is None:
            found.append(f"{what}: recorded is {self.recorded!r}; say in unit what it shall be brought to")
        elif self.recorded and self.unit and conversion(self.recorded, self.unit, self.known_substance) is None:
            choice = ", ".join(known_units(self.unit, self.known_substance)) or "none that is known"
            found.append(f"{what}: recorded is {self.recorded!r}; what can be brought to {self.unit!r}: {choice}")
        return found

    @property
    def known_substance(self) -> str:
        return self.substance or self.name


@dataclass(frozen=True)
class Join:
    """A file with a row a stay, or a row a patient, beside SOURCE."""

    file: str
    on: str | None = None  # its column that identifies a row; `stay` unless given
    to: str | None = None  # the column of SOURCE, or of a file before it, that has the same; `on` unless given


@dataclass(frozen=True)
class TableSettings(CheckedSettings):
    layout: Literal["long", "wide"]
    stay: str  # the column that says whose row it is
    time: str  # the column that says when
    step: str  # of the grid, such as "1h" or "30min"
    steps: int
    feature: tuple[TableFeature, ...]
    variable: str | None = None  # long: the column that says what was measured
    value: str | None = None  # long: the column with its value
    unit_column: str | None = None  # long: the column with the unit of the value
    time_unit: TimeUnit = "timestamp"
    date_order: Literal["ymd", "dmy", "mdy"] = "ymd"  # of dates that do not begin with the year
    origin: str = "first"  # the first measurement; "zero"; or the column with the start of the stay
    length: str = GRID  # each stay has all steps; "last": it ends with its last measurement; or the column that says it
    length_unit: TimeUnit | None = None  # of that column: a moment, or a duration from the origin; time_unit
    rule: Rule = "last"
    hours: float | None = None  # the last measurement lies at least so long after the origin
    cut: bool = False  # measurements after the last step are left out on purpose, and not lost
    unparsed: Literal["refuse", "missing"] = "refuse"  # values that are not what a column should hold
    series: tuple[str, ...] = ()  # more files like SOURCE, with more rows or more columns
    static: str | tuple[str, ...] | None = None  # files with a row a stay
    join: tuple[Join, ...] = ()  # files with a row a stay or a patient that call it something else
    ids: Literal["number", "text"] = "number"  # what identifies stays and patients
    missing: tuple[str, ...] = ()  # texts that mean "no value", besides an empty one
    separator: str | None = None  # a comma; a tab in .tsv and .tab
    decimal: Literal[".", ","] = "."
    thousands: str = ""  # between groups of three digits
    encoding: str = "utf-8"
    sheet: str | None = None  # of an Excel file; its first
    test: float = 0.25
    relation: tuple[Relation, ...] = ()  # what holds between features, such as systolic ≥ mean pressure

    @property
    def schema(self) -> Schema:
        features = tuple(entry.feature for entry in self.feature)
        by_role = {str(feature.role): feature.name for feature in features}
        split = Split(self.test, by_role.get("label"), by_role.get("patient"))
        return Schema(features, self.steps, self.step, split, self.relation)

    @property
    def width(self) -> int:
        return step_seconds(self.step) * TICKS

    @property
    def joins(self) -> tuple[Join, ...]:
        """All files with a row a stay or a patient, in the order they are joined."""
        static = (self.static,) if isinstance(self.static, str) else self.static or ()
        return (*(Join(file) for file in static), *self.join)

    @property
    def files(self) -> tuple[str, ...]:
        """What lies beside SOURCE."""
        return tuple(dict.fromkeys((*self.series, *(join.file for join in self.joins))))

    def problems(self) -> list[str]:
        found = []
        if self.layout == "long":
            found += [
                f'layout is "long", which needs {key} = "the column with {what}"'
                for key, what in (("variable", "what was measured"), ("value", "its value"))
                if getattr(self, key) is None
            ]
        if self.origin == "zero" and self.time_unit == "timestamp":
            found.append(
                'origin = "zero" needs times counted from the start of a stay: set time_unit to h, min, s or step, or '
                "to d or duration"
            )
        for feature in self.feature:
            found += feature.problems()
        found += [f"{file!r} is listed twice" for file in self.files if self._listed(file) > 1]
        found += self._text_problems() + step_problems(self.step) + beyond({"steps": self.steps}, 1, MOST_STEPS)
        found += beyond({"hours": self.hours}, 0, MOST_HOURS)
        return found or schema_problems(lambda: self.schema)

    def _listed(self, file: str) -> int:
        return (*self.series, *(join.file for join in self.joins)).count(file)

    def _text_problems(self) -> list[str]:
        found = []
        if self.separator is not None:
            if len(self.separator) != 1:
                found.append(f"separator is {self.separator!r}; expected one character")
            elif ord(self.separator) > 127 or self.separator in '"\n\r\0':
                found.append(f"separator is {self.separator!r}; expected a character such as , or ;")
        if self.thousands not in ("", ".", ",", " ", "'", "\u00a0", "\u202f", "’") or self.thousands == self.decimal:
            found.append(f"thousands is {self.thousands!r}; expected a character such as . or ' that is not decimal")
        try:
            "1".encode(self.encoding)
        except (LookupError, ValueError):
            found.append(f"encoding is {self.encoding[:40]!r}; expected one such as utf-8, latin-1, cp1252 or utf-16")
        return found
