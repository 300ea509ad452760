"""Generators by name: what `--generator NAME` and `td.load` look up."""

from importlib import import_module
from pathlib import Path

from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.progress import Say, unheard

GENERATORS = {"timediff": "timediff.generators.timediff:TimeDiff"}


def generator(name: str) -> type[Generator]:
    """The class of the generator `name`."""
    if name not in GENERATORS:
        raise TimeDiffError(f"there is no generator {name!r}; the generators are {', '.join(GENERATORS)}.")
    module, _, attribute = GENERATORS[name].partition(":")
    found: type[Generator] = getattr(import_module(module), attribute)
    return found


def load(path: str | Path, say: Say = unheard) -> Generator:
    """The fitted generator of a run folder, whichever it is; `say` hears what is odd about the run."""
    from timediff.generators.run import Run

    name = Run.open(Path(path)).provenance.get("generator", "")
    return generator(name).load(path, say)
