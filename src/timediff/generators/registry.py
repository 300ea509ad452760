"""Generators by name: what `--generator NAME` and `td.load` look up."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from timediff.errors import TimeDiffError
from timediff.generators.base import Generator

GENERATORS = {"timediff": "timediff.generators.timediff:TimeDiff"}


def generator(name: str) -> Any:
    """The class of the generator `name`."""
    if name not in GENERATORS:
        raise TimeDiffError(f"there is no generator {name!r}; the generators are {', '.join(GENERATORS)}.")
    module, _, attribute = GENERATORS[name].partition(":")
    return getattr(import_module(module), attribute)


def load(path: str | Path, say: Callable[[str], None] = lambda line: None) -> Generator:
    """The fitted generator of a run folder, whichever it is; `say` hears what is odd about the run."""
    from timediff.generators.run import Run

    name = Run.open(Path(path)).provenance.get("generator", "")
    loaded: Generator = generator(name).load(path, say)
    return loaded
