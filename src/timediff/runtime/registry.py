"""Registries: parts by name, our own and those of other packages.

Another package adds a part by the decorator `REGISTRY.register("name")`, or by an entry point of the registry's group.
A decorator is seen once its module is imported: the environment variable TIMEDIFF_PLUGINS names modules to import
first, with commas between them. A name from a file is only ever looked up here, never imported.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Generic, TypeVar

from timediff.errors import TimeDiffError

T = TypeVar("T")
PLUGINS = "TIMEDIFF_PLUGINS"


class Registry(Generic[T]):
    """`built_in` says where our own parts are, as "module:attribute"; each is imported when it is first asked for."""

    def __init__(self, kind: str, group: str, built_in: Mapping[str, str] | None = None) -> None:
        self.kind, self.group = kind, group
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
        _import_plugins()
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


@cache
def _import_plugins() -> None:
    for module in filter(None, (name.strip() for name in os.environ.get(PLUGINS, "").split(","))):
        try:
            import_module(module)
        except ImportError as error:
            raise TimeDiffError(f"{PLUGINS} names the module {module!r}, which cannot be imported: {error}.") from error


def _home(part: Any) -> tuple[Any, Any]:
    kind = part if hasattr(part, "__qualname__") else type(part)
    return kind.__module__, kind.__qualname__
