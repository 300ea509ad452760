"""Sources by name: what `timediff extract NAME` looks up."""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import Any

from timediff import typed
from timediff.config import parse_file
from timediff.errors import TimeDiffError
from timediff.sources.extraction import Extraction

SOURCES = {
    "mimic3": "timediff.sources.mimic:MIMIC3",
    "mimic4": "timediff.sources.mimic:MIMIC4",
    "eicu": "timediff.sources.eicu:EICU",
    "physionet2012": "timediff.sources.physionet2012:PHYSIONET2012",
    "physionet2019": "timediff.sources.physionet2019:PHYSIONET2019",
    "stocks": "timediff.sources.timegan:STOCKS",
    "energy": "timediff.sources.timegan:ENERGY",
    "meds": "timediff.sources.meds:MEDS",
    "table": "timediff.sources.table:TABLE",
}


@dataclass(frozen=True)
class Source:
    """A kind of raw data: its settings' class, and SOURCE with settings → a cohort and what was dropped."""

    settings: type
    extract: Callable[..., Extraction]  # (SOURCE, settings, progress)


def source(name: str) -> Source:
    if name not in SOURCES:
        raise TimeDiffError(f"there is no source {name!r}; the sources are {', '.join(SOURCES)}.")
    module, _, attribute = SOURCES[name].partition(":")
    found: Source = getattr(import_module(module), attribute)
    return found


def default_settings(name: str) -> str:
    """The TOML text of a source's own settings, comments and all: what --print-config shows."""
    return (resources.files("timediff.sources") / "settings" / f"{name}.toml").read_text()


def resolve(name: str, config: str | Path | None = None, changes: dict[str, Any] | None = None) -> Any:
    """A source's settings: its own or those of a file, then single ones by name."""
    table = tomllib.loads(default_settings(name)) if config is None else parse_file(Path(config))
    return typed.build(source(name).settings, {**table, **(changes or {})}, str(config or f"{name} settings"))
