"""Generators by name: what `--generator NAME` and `td.load` look up. Nothing is imported before it is asked for."""

from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from timediff.config import DEFAULT_PRESET, AnySettings, generator_of
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.progress import Say, unheard


class Entry(NamedTuple):
    """Where a generator and its settings are found, and the preset it has where none is given."""

    home: str
    settings: str
    preset: str


def _rival(name: str, kind: str) -> Entry:
    return Entry(f"timediff.generators.{name}:{kind}", f"timediff.generators.settings:{kind}Settings", name)


GENERATORS = {
    "timediff": Entry("timediff.generators.timediff:TimeDiff", "timediff.config:Settings", DEFAULT_PRESET),
    "timegan": _rival("timegan", "TimeGAN"),
    "rcgan": _rival("rcgan", "RCGAN"),
    "crnngan": _rival("crnngan", "CRNNGAN"),
    "tforcing": _rival("tforcing", "TForcing"),
    "pforcing": _rival("pforcing", "PForcing"),
}


def generator(name: str) -> type[Generator]:
    """The class of the generator `name`."""
    found: type[Generator] = _imported(entry(name).home)
    return found


def settings_type(name: str) -> type[AnySettings]:
    """The class of its settings."""
    found: type[AnySettings] = _imported(entry(name).settings)
    return found


def entry(name: str) -> Entry:
    if name not in GENERATORS:
        raise TimeDiffError(f"there is no generator {name!r}; the generators are {', '.join(GENERATORS)}.")
    return GENERATORS[name]


def chosen(generator: str | None, preset: str | None) -> tuple[str, str]:
    """Generator and preset, where one or both are not said."""
    if preset is None:
        name = generator or "timediff"
        return name, entry(name).preset
    owner = generator_of(preset)
    if generator not in (None, owner):
        entry(generator)
        raise TimeDiffError(
            f"the preset {preset!r} is for the generator {owner}, not for {generator}: leave out one of the two."
        )
    return owner, preset


def load(path: str | Path, say: Say = unheard) -> Generator:
    """The fitted generator of a run folder, whichever it is; `say` hears what is odd about the run."""
    from timediff.generators.run import Run

    return generator(Run.open(Path(path)).generator).load(path, say)


def _imported(home: str) -> Any:
    module, _, attribute = home.partition(":")
    return getattr(import_module(module), attribute)
