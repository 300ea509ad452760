"""Schema: what the columns of a cohort mean. Everything asks it; nothing goes by position or by a data set's name."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from timediff.errors import Problems, listed
from timediff.runtime.parsing import parse_toml
from timediff.settings import toml

Kind = Literal["continuous", "binary", "categorical"]
Scope = Literal["temporal", "static"]
Role = Literal["label", "patient", "order", "event_time"]
SplitBy = Literal["random", "time", "blocks"]

FORMAT = 1
MOST_STEPS = 1_000_000
RESERVED = ("stay_id", "step", "length")
KINDS = {"patient": "categorical", "order": "continuous", "event_time": "continuous"}  # of a role, unless it is said


@dataclass(frozen=True)
class Feature:
    name: str
    kind: Kind
    scope: Scope = "temporal"
    role: Role | None = None
    unit: str | None = None
    bounds: tuple[float, float] | None = None  # no value lies outside, real or synthetic
    resolution: float | None = None  # values are multiples of it: 1 for heart rate, 0.1 for temperature
    classes: tuple[str, ...] | tuple[int, ...] = ()  # a binary feature's are 0 and 1 unless named
    step_names: tuple[str, ...] = ()  # what each step stands for, where steps are no times: a code each

    def __post_init__(self) -> None:
        if self.kind == "binary" and not self.classes:
            object.__setattr__(self, "classes", (0, 1))
        if self.bounds is not None:  # the same schema has the same text, however its numbers were typed
            object.__setattr__(self, "bounds", (float(self.bounds[0]), float(self.bounds[1])))
        if self.resolution is not None:
            object.__setattr__(self, "resolution", float(self.resolution))

    @property
    def discrete(self) -> bool:
        return self.kind != "continuous"

    @property
    def generated(self) -> bool:
        """Patient and order only arrange stays; they are never generated."""
        return self.role not in ("patient", "order")

    @property
    def stratifies(self) -> bool:
        return self.discrete and self.generated and self.scope == "static"

    def problems(self) -> list[str]:
        def wrong(what: str) -> str:
            return f"feature {self.name!r}: {what}"

        found = []
        if self.name in RESERVED or not self.name:
            found.append(wrong(f"the names {', '.join(RESERVED)} are taken; call it something else"))
        for attribute, allowed in (
            ("kind", ("continuous", "binary", "categorical")),
            ("scope", ("temporal", "static")),
            ("role", (None, "label", "patient", "order", "event_time")),
        ):
            value = getattr(self, attribute)
            if value not in allowed:
                choice = ", ".join(a for a in allowed if a)
                found.append(wrong(f"{attribute} is {value!r}; expected one of {choice}"))
        if self.role and self.scope != "static":
            found.append(wrong(f"the {self.role} belongs to a whole stay: set scope = 'static'"))
        if self.role == "label" and not self.discrete:
            found.append(wrong("a label is binary or categorical"))
        if self.role == "order" and self.discrete:
            found.append(wrong("an order is a number: set kind = 'continuous'"))
        if self.role == "event_time" and self.discrete:
            found.append(wrong("an event_time is a number of steps: set kind = 'continuous'"))
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            found.append(wrong(f"bounds {list(self.bounds)} must be [lower, upper] with lower < upper"))
        if self.resolution is not None and not 0 < self.resolution < math.inf:
            found.append(wrong(f"resolution {self.resolution} must be a positive number"))
        elif self.bounds is not None and self.resolution is not None:
            low, high = multiples(self.bounds, self.resolution)
            if low > high:
                found.append(wrong(f"no multiple of its resolution {self.resolution:g} lies within its bounds"))
        if self.discrete and (self.bounds or self.resolution):
            found.append(wrong("bounds and resolution are for continuous features"))
        if self.kind == "continuous" and self.classes:
            found.append(wrong("a continuous feature has no classes"))
        if self.kind == "binary" and len(self.classes) != 2:
            found.append(wrong(f"a binary feature has two classes, not {len(self.classes)}"))
        if self.kind == "categorical" and self.generated and len(self.classes) < 2:
            found.append(wrong("a categorical feature needs a list of at least two classes"))
        if not (all(isinstance(c, str) for c in self.classes) or all(type(c) is int for c in self.classes)):
            found.append(wrong("classes are all text or all whole numbers"))
        elif len(set(self.classes)) < len(self.classes):
            found.append(wrong("a class is named twice"))
        if self.step_names and self.scope != "temporal":
            found.append(wrong("step_names are for temporal features"))
        if not all(isinstance(name, str) for name in self.step_names):
            found.append(wrong("step_names are texts"))
        elif len(set(self.step_names)) < len(self.step_names):
            found.append(wrong("a step is named twice"))
        if self.unit is not None and not isinstance(self.unit, str):
            found.append(wrong(f"unit is {self.unit!r}; expected a text"))
        return found

    @staticmethod
    def parse(entry: Mapping[str, Any]) -> "Feature | list[str]":
        """A feature from its TOML table, or what is wrong with the table."""
        name = entry.get("name")
        if not isinstance(name, str):
            return [f"a feature without a name, with the keys {listed(list(entry))}"]
        known = {field.name for field in fields(Feature)}
        found = [f"feature {name!r}: unknown key {key!r}" for key in entry if key not in known]
        values = {key: value for key, value in entry.items() if key in known}
        values.setdefault("kind", KINDS.get(str(entry.get("role"))))
        bounds, resolution, classes = (values.get(key) for key in ("bounds", "resolution", "classes"))
        if isinstance(steps := values.get("step_names"), list):
            values["step_names"] = tuple(steps)
        elif steps is not None:
            found.append(f"feature {name!r}: step_names must be a list")
        if bounds is not None:
            if not (isinstance(bounds, list) and len(bounds) == 2 and all(map(_number, bounds))):
                found.append(f"feature {name!r}: bounds must be two numbers, such as [0, 300]")
            else:
                values["bounds"] = tuple(bounds)
        if resolution is not None and not (_number(resolution) and abs(resolution) >= 1e-300):
            found.append(f"feature {name!r}: resolution must be a positive number")
        if classes is not None and not isinstance(classes, list):
            found.append(f"feature {name!r}: classes must be a list")
        elif classes is not None:
            values["classes"] = tuple(classes)
        if found:
            return found
        feature = Feature(**values)
        return feature.problems() or feature


@dataclass(frozen=True)
class Relation:
    """At every step at which both were measured, `high` is at least `low`: systolic and mean pressure."""

    high: str
    low: str

    def __str__(self) -> str:
        return f"{self.high} ≥ {self.low}"

    def problems(self, known: Mapping[str, Feature]) -> list[str]:
        """What is wrong with it among these features."""

        def wrong(what: str) -> str:
            return f"relation {str(self)!r}: {what}"

        if absent := [name for name in (self.high, self.low) if name not in known]:
            return [wrong(f"there is no feature {name!r}") for name in dict.fromkeys(absent)]
        if self.high == self.low:
            return [wrong("a feature is compared with itself; name two features")]
        high, low = known[self.high], known[self.low]
        found = [
            wrong(f"{one.name!r} is {one.kind}; only continuous features can be compared")
            for one in (high, low)
            if one.discrete
        ]
        found += [
            wrong(f"{one.name!r} is the {one.role}, which is no measurement")
            for one in (high, low)
            if one.role is not None and not one.discrete
        ]
        if high.scope != low.scope:
            found.append(wrong("one is temporal and the other static; compare two of one scope"))
        return found

    @staticmethod
    def parse(entry: Mapping[str, Any]) -> "Relation | list[str]":
        """A relation from its TOML table, or what is wrong with the table."""
        names = [field.name for field in fields(Relation)]
        found = [f"[[relation]]: unknown key {key!r}; expected high and low" for key in entry if key not in names]
        found += [
            f"[[relation]]: {name} must be the name of a feature, as in {name} = {example!r}"
            for name, example in (("high", "SBP"), ("low", "MAP"))
            if not isinstance(entry.get(name), str)
        ]
        return found or Relation(entry["high"], entry["low"])


@dataclass(frozen=True)
class Split:
    """What `timediff split` does unless arguments say otherwise."""

    test: float = 0.25
    stratify: str | None = None  # a static discrete feature; the label when there is one
    group: str | None = None  # stays with the same value stay together; the patient when there is one
    by: SplitBy = "random"


@dataclass(frozen=True)
class Schema:
    features: tuple[Feature, ...]
    steps: int
    step: str = "1h"
    split: Split = Split()
    relations: tuple[Relation, ...] = ()  # what holds between features; a generator does not see them

    def __post_init__(self) -> None:
        if found := self._problems():
            raise Problems("schema", found)

    def __getitem__(self, name: str) -> Feature:
        for feature in self.features:
            if feature.name == name:
                return feature
        raise KeyError(name)

    def __contains__(self, name: str) -> bool:
        return any(feature.name == name for feature in self.features)

    @property
    def temporal(self) -> tuple[Feature, ...]:
        return tuple(feature for feature in self.features if feature.scope == "temporal")

    @property
    def static(self) -> tuple[Feature, ...]:
        return tuple(feature for feature in self.features if feature.scope == "static")

    @property
    def label(self) -> Feature | None:
        return self._with_role("label")

    @property
    def patient(self) -> Feature | None:
        return self._with_role("patient")

    @property
    def order(self) -> Feature | None:
        return self._with_role("order")

    @property
    def event_time(self) -> Feature | None:
        return self._with_role("event_time")

    @property
    def outcomes(self) -> tuple[Feature, ...]:
        """What is known only at the end of a stay: the label, and when it came."""
        return tuple(feature for feature in self.features if feature.role in ("label", "event_time"))

    def _with_role(self, role: Role) -> Feature | None:
        return next((feature for feature in self.features if feature.role == role), None)

    def generated(self) -> "Schema":
        """The schema of a synthetic cohort: without patient and order, and without a split that needs them."""
        features = tuple(feature for feature in self.features if feature.generated)
        split = Split(test=self.split.test, stratify=self.split.stratify)
        return Schema(features, self.steps, self.step, split, self.relations)

    def _problems(self) -> list[str]:
        found = [problem for feature in self.features for problem in feature.problems()]
        names = [feature.name for feature in self.features]
        found += [f"feature {name!r} is listed twice" for name in sorted({n for n in names if names.count(n) > 1})]
        for role in ("label", "patient", "order", "event_time"):
            holders = [feature.name for feature in self.features if feature.role == role]
            if len(holders) > 1:
                found.append(f"only one feature can be the {role}, not {len(holders)}: {', '.join(holders)}")
        known = {feature.name: feature for feature in self.features}
        found += [problem for relation in self.relations for problem in relation.problems(known)]
        twice = {relation for relation in self.relations if self.relations.count(relation) > 1}
        found += [f"relation '{relation}' is listed twice" for relation in sorted(twice, key=str)]
        if not self.temporal:
            found.append("no temporal feature: a stay needs at least one series")
        if not 1 <= self.steps <= MOST_STEPS:
            found.append(f"grid.steps is {self.steps}; expected a whole number from 1 to {MOST_STEPS:,}")
        if not re.fullmatch(r"[0-9.]*\s*[A-Za-z]+", self.step):
            found.append(f"grid.step is {self.step!r}; expected a duration such as '1h', '5min' or '1d'")
        if not 0 < self.split.test < 1:
            found.append(f"split.test is {self.split.test}; expected a fraction between 0 and 1")
        if self.split.by not in (ways := get_args(SplitBy)):
            found.append(f"split.by is {self.split.by!r}; expected one of {', '.join(ways)}")
        elif self.split.by != "random" and self.order is None:
            found.append(f"split.by is {self.split.by!r}, which needs a feature with role = 'order'")
        for key in ("stratify", "group"):
            column = getattr(self.split, key)
            if column is not None and column not in {feature.name for feature in self.static}:
                found.append(f"split.{key} names {column!r}, which is not a static feature")
            elif key == "stratify" and column is not None and not self[column].stratifies:
                found.append(f"split.stratify names {column!r}; expected a binary or categorical feature")
        return found

    def to_toml(self) -> str:
        def entry(feature: Feature) -> dict[str, Any]:
            values = {field.name: getattr(feature, field.name) for field in fields(Feature)}
            if feature.classes == () or (feature.kind == "binary" and feature.classes == (0, 1)):
                values["classes"] = None
            values["step_names"] = feature.step_names or None
            return values

        table = {
            "format": FORMAT,
            "grid": {"step": self.step, "steps": self.steps},
            "split": {field.name: getattr(self.split, field.name) for field in fields(Split)},
            "feature": [entry(feature) for feature in self.features],
        }
        if self.relations:
            table["relation"] = [{"high": relation.high, "low": relation.low} for relation in self.relations]
        return toml.dumps(table)

    @staticmethod
    def from_toml(text: str, where: str = "schema.toml") -> "Schema":
        table = parse_toml(text, where)
        if type(version := table.get("format")) is int and version > FORMAT:
            raise Problems(where, [f"written in format {version} by a newer TimeDiff; this one reads {FORMAT}"])
        found = (
            [] if version == FORMAT and version is not True else [f"format is {version!r}; expected format = {FORMAT}"]
        )
        found += [
            f"unknown key {key!r}" for key in table if key not in ("format", "grid", "split", "feature", "relation")
        ]
        grid, split, entries = table.get("grid", {}), table.get("split", {}), table.get("feature", [])
        stated = table.get("relation", [])
        if not isinstance(grid, dict) or type(grid.get("steps")) is not int or not isinstance(grid.get("step"), str):
            found.append('the table [grid] must say step = "1h" (a duration) and steps = 48 (a whole number)')
        if not isinstance(split, dict):
            found.append("[split] must be a table")
            split = {}
        types = {"test": (int, float), "stratify": (str,), "group": (str,), "by": (str,)}
        for key, value in split.items():
            if key not in types:
                found.append(f"unknown key split.{key}")
            elif not isinstance(value, types[key]) or isinstance(value, bool):
                found.append(f"split.{key} is {value!r}; expected {'a number' if key == 'test' else 'a text'}")
        if not (isinstance(entries, list) and entries and all(isinstance(e, dict) for e in entries)):
            found.append("no feature is listed: add one [[feature]] table a column")
            entries = []
        if not (isinstance(stated, list) and all(isinstance(e, dict) for e in stated)):
            found.append('a relation is a table: [[relation]] with high = "SBP" and low = "MAP"')
            stated = []
        parsed = [Feature.parse(entry) for entry in entries]
        related = [Relation.parse(entry) for entry in stated]
        found += [problem for result in (*parsed, *related) if isinstance(result, list) for problem in result]
        if found:
            raise Problems(where, found)
        try:
            features = tuple(feature for feature in parsed if isinstance(feature, Feature))
            relations = tuple(relation for relation in related if isinstance(relation, Relation))
            return Schema(features, grid["steps"], grid["step"], Split(**split), relations)
        except Problems as error:
            raise Problems(where, error.problems) from error


def multiples(bounds: tuple[float, float], resolution: float) -> tuple[float, float]:
    """The lowest and highest n with n · resolution inside the bounds."""
    if max(map(abs, bounds)) / resolution > 1e15:  # so fine that a double cannot tell: any value will do
        return bounds[0] / resolution, bounds[1] / resolution
    # The tolerance keeps a bound that is itself a multiple, such as 42 / 0.1 = 419.99999999999994.
    return math.ceil(bounds[0] / resolution - 1e-9), math.floor(bounds[1] / resolution + 1e-9)


def _number(value: object) -> bool:
    """A finite number that a double can hold, neither a flag nor beyond 1e300."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
