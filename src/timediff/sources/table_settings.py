"""The settings of any table: which column is what, and on which grid."""

from dataclasses import dataclass
from typing import Literal, cast

from timediff.data.schema import MOST_STEPS, Feature, Kind, Relation, Role, Schema, Scope, Split
from timediff.sources.grid import Rule, rule_problems, step_problems, step_seconds
from timediff.sources.setting_checks import MOST_HOURS, CheckedSettings, beyond, schema_problems
from timediff.sources.variables import Limits

TICKS = 1_000_000  # times are counted in microseconds: whole numbers, at which a step begins exactly
UNITS = {"h": 3600 * TICKS, "min": 60 * TICKS, "s": TICKS}


@dataclass(frozen=True)
class TableFeature(Limits):
    """A feature, where it stands in the table, and its plausible range."""

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

    @property
    def place(self) -> str:
        return self.from_ or self.name

    @property
    def feature(self) -> Feature:
        kind: Kind = "categorical" if self.role == "patient" else self.kind
        role = cast(Role | None, self.role)
        return Feature(self.name, kind, self.scope, role, self.unit, self.bounds, self.resolution, classes=self.classes)


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
    time_unit: Literal["timestamp", "h", "min", "s", "step"] = "timestamp"
    origin: str = "first"  # the first measurement; "zero"; or the column with the start of the stay
    rule: Rule = "last"
    hours: float | None = None  # the last measurement lies at least so long after the origin
    static: str | None = None  # a second file beside SOURCE with a row a stay
    ids: Literal["number", "text"] = "number"  # what identifies stays and patients
    missing: tuple[str, ...] = ()  # texts that mean "no value", besides an empty one
    separator: str = ","
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
                'origin = "zero" needs times counted from the start of a stay: set time_unit to h, min, s or step'
            )
        for feature in self.feature:
            found += rule_problems(f"feature {feature.name!r}", feature.rule)
        if len(self.separator) != 1:
            found.append(f"separator is {self.separator!r}; expected one character")
        elif ord(self.separator) > 127 or self.separator in '"\n\r\0':
            found.append(f"separator is {self.separator!r}; expected a character such as , or ;")
        found += step_problems(self.step) + beyond({"steps": self.steps}, 1, MOST_STEPS)
        found += beyond({"hours": self.hours}, 0, MOST_HOURS)
        return found or schema_problems(lambda: self.schema)
