"""Rows: what is compared. Each is a generator with a name and settings."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError, listed
from timediff.evaluation.evaluate import require_names
from timediff.generators.base import Generator
from timediff.generators.registry import GENERATORS, choose
from timediff.runtime.worker import sentence
from timediff.settings.base import GeneratorSettings
from timediff.settings.resolve import parse_assignment, presets, resolve

Given = Sequence[str] | Mapping[str, str | Generator]


@dataclass(frozen=True)
class Row:
    """One column of the report, whose trainings differ by seed alone."""

    name: str
    kind: type[Generator]
    settings: GeneratorSettings  # as given, without what a cohort decides

    @property
    def folder(self) -> str:
        """Its folder's name; no row's name can lead elsewhere, or to another row's where case is no difference."""
        if re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,59}", self.name):
            return self.name
        short = hashlib.sha256(self.name.encode()).hexdigest()[:8]
        plain = re.sub(r"[^a-z0-9]+", "-", self.name.lower())[:50].strip("-")
        return f"{plain or 'row'}.{short}"


@dataclass(frozen=True)
class Planned:
    """A row, as the training cohort makes it."""

    row: Row
    settings: GeneratorSettings
    sizes: Mapping[str, Any] = field(default_factory=dict)  # updates, parameters, …
    refused: str = ""  # why it cannot be fitted


def rows_of(generators: Given) -> list[Row]:
    """Of names of generators or presets, or of unfitted generators by name."""
    if isinstance(generators, str | Generator):
        raise TimeDiffError("generators are a list of names, or a mapping from names to generators or presets.")
    if not isinstance(generators, Mapping):
        if twice := sorted({name for name in generators if list(generators).count(name) > 1}):
            raise TimeDiffError(f"{listed(twice)} is given twice: give a mapping, with a name for each.")
        generators = {name: name for name in generators}
    return _named_well([_row(name, what) for name, what in generators.items()])


def _row(name: str, what: str | Generator) -> Row:
    if isinstance(what, str):
        owner, preset = choose(None, what) if what not in GENERATORS and what in presets() else choose(what, None)
        return Row(name, GENERATORS(owner), resolve(preset or GENERATORS(owner).Settings()))
    if not isinstance(what, Generator):
        raise TimeDiffError(
            f"{name}: expected the name of a generator or preset, or a generator that is not fitted, such as "
            'td.generator("timegan")(assignments={"training.steps": 100}).'
        )
    if what.name not in GENERATORS or GENERATORS(what.name) is not type(what):
        raise TimeDiffError(f"{name}: {type(what).__name__} is not registered as {what.name!r}; docs/extending.md.")
    return Row(name, type(what), what.given)


def parsed_rows(
    generators: Sequence[str], chosen: Sequence[str], configs: Sequence[str], assignments: Sequence[str]
) -> list[Row]:
    """Of the command line: [NAME=]GENERATOR, [NAME=]PRESET, [NAME=]FILE and [NAME:]KEY=VALUE."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for text in generators:
        name, generator = _split(text)
        if name in found:
            raise TimeDiffError(f"--generator {text}: there is a row {name!r} already; name this one, as NAME={name}.")
        found[name] = generator, None
    for text in chosen:
        name, start = _split(text)
        generator_, before = found.get(name, (None, None))
        if before is not None:
            raise TimeDiffError(f"--preset {text}: the row {name!r} has a preset already; give another NAME=.")
        found[name] = generator_, start
    if not found:
        raise TimeDiffError("there is nothing to compare: give --generator NAME, or --preset NAME, once a row.")
    files = [_split(text, named=False) for text in configs]
    changes = [_assignment(text) for text in assignments]
    for given, option in ((files, "--config"), (changes, "--set")):
        if strange := [name for name, _ in given if name and name not in found]:
            raise TimeDiffError(f"{option}: there is no row {strange[0]!r}; the rows are {', '.join(found)}.")
    rows = []
    for name, (generator_, preset) in found.items():
        owner, preset = choose(generator_, preset)
        settings = resolve(preset or GENERATORS(owner).Settings())
        try:
            for whose, file in files:
                settings = resolve(settings, file) if whose in ("", name) else settings
            mine = dict(one for whose, one in changes if whose in ("", name))
            settings = resolve(settings, assignments=mine)
        except TimeDiffError as error:
            raise TimeDiffError(f"{name}: {error}") from error
        rows.append(Row(name, GENERATORS(owner), settings))
    return _named_well(rows)


def _split(text: str, *, named: bool = True) -> tuple[str, str]:
    name, separator, rest = text.partition("=")
    return (name, rest) if separator else (text if named else "", text)


def _assignment(text: str) -> tuple[str, tuple[str, Any]]:
    key, separator, value = text.partition("=")
    name, _, path = key.rpartition(":")
    return name, parse_assignment(f"{path}{separator}{value}")


def _named_well(rows: list[Row]) -> list[Row]:
    if not rows:
        raise TimeDiffError("there is nothing to compare: give at least one generator.")
    require_names(row.name for row in rows)
    return rows


def planned(row: Row, train: Cohort) -> Planned:
    """What fitting would build; a generator that cannot be fitted to this cohort says why, and the others go on."""
    try:
        model = row.kind(settings=row.settings)
        sizes = model.plan(train)
    except Exception as error:  # whatever a generator of another package does
        return Planned(row, row.settings, refused=sentence(error))
    return Planned(row, model.settings, sizes)
