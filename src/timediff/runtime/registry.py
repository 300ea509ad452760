"""Registries: parts by name, our own and those of other packages.

Another package adds a part by the decorator `REGISTRY.register("name")`, or by an entry point of the registry's group.
A decorator is seen once its module is imported: the environment variable TIMEDIFF_PLUGINS names modules to import
first, with commas between them; the current folder is searched last. "module:Class" also adds the class to the registry
of its kind. A name from a file is only ever looked up here, never imported.
"""

import difflib
import os
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, TypeVar

from timediff.errors import TimeDiffError

T = TypeVar("T")
PLUGINS = "TIMEDIFF_PLUGINS"


class Registry(Generic[T]):
    """`built_in` says where our own parts are, as "module:attribute"; each is imported when it is first asked for.

    `adopt` gives the name of a class that TIMEDIFF_PLUGINS names, if it is of this kind.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        built_in: Mapping[str, str] | None = None,
        adopt: Callable[[Any], str | None] = lambda part: None,
    ) -> None:
        self.kind, self.group, self._adopt = kind, group, adopt
        self._homes = dict(built_in or {})
        self._parts: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """A decorator that adds a part under this name."""

        def add(part: T) -> T:
            self.add(name, part)
            return part

        return add

    def add(self, name: str, part: T) -> None:
        known = self._parts.get(name)
        if name in self._homes or (known is not None and _home(known) != _home(part)):
            raise TimeDiffError(f"there is a {self.kind} {name!r} already: register yours under another name.")
        self._parts[name] = part  # a module that is imported again replaces its own

    def __call__(self, name: str) -> T:
        """The part of this name."""
        if name not in self._parts:
            self._find(name)
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self.names()

    def names(self) -> list[str]:
        """All names; nothing of ours is imported for it."""
        for part in _import_plugins():
            name = self._adopt(part)
            if name is not None and name not in self._parts:
                self.add(name, part)
        return list(dict.fromkeys([*self._homes, *self._parts, *_entry_points(self.group)]))

    def _find(self, name: str) -> None:
        if name in self._homes:
            module, _, attribute = self._homes[name].partition(":")
            self._parts[name] = getattr(import_module(module), attribute)
            return
        names = self.names()
        if name in self._parts:
            return
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}? The" if near else "the"
            raise TimeDiffError(f"there is no {self.kind} {name!r}; {hint} {self.kind}s are {', '.join(names)}.")
        found = _entry_points(self.group)[name]
        try:
            self._parts[name] = found.load()
        except Exception as error:  # whatever another package does when it is imported
            raise TimeDiffError(
                f"the {self.kind} {name!r} of the package {found.dist.name if found.dist else found.value} cannot be "
                f"loaded ({type(error).__name__}: {error})."
            ) from error


@cache
def _entry_points(group: str) -> dict[str, EntryPoint]:
    return {found.name: found for found in entry_points(group=group)}


def add_plugin(place: str) -> Any:
    """Imports "module:Class", also for processes that this one starts, and returns the class."""
    part = _imported(place, f"{place!r} names")
    places = _plugins()
    if place not in places:
        os.environ[PLUGINS] = ",".join([*places, place])
        _import_plugins.cache_clear()
    return part


def _plugins() -> list[str]:
    return [name.strip() for name in os.environ.get(PLUGINS, "").split(",") if name.strip()]


@cache
def _import_plugins() -> tuple[Any, ...]:
    """The classes that are named."""
    found = [_imported(place, f"{PLUGINS} names") for place in _plugins()]
    return tuple(part for part in found if part is not None)


def _imported(place: str, who: str) -> Any:
    module, _, attribute = place.partition(":")
    here = str(Path.cwd())
    if "" not in sys.path and here not in sys.path:
        sys.path.append(here)  # last, so that no file here is taken for a package
    try:
        found = import_module(module)
    except Exception as error:  # whatever the module does when it is imported
        why = error if isinstance(error, ImportError) else f"{type(error).__name__}: {error}"
        raise TimeDiffError(f"{who} the module {module!r}, which cannot be imported: {why}.") from error
    if attribute and not hasattr(found, attribute):
        raise TimeDiffError(f"{who} {attribute!r} of the module {module!r}, which has no {attribute!r}.")
    return getattr(found, attribute) if attribute else None


def _home(part: Any) -> tuple[Any, Any]:
    kind = part if hasattr(part, "__qualname__") else type(part)
    return kind.__module__, kind.__qualname__
