"""A registry finds parts by name: ours lazily, and those of other packages by decorator, module or entry point."""

import sys
import types
from importlib.metadata import EntryPoint

import pytest

from timediff.errors import TimeDiffError
from timediff.runtime import registry
from timediff.runtime.registry import Registry


@pytest.fixture
def shapes() -> Registry[type]:
    return Registry("shape", "timediff.test_shapes", {"circle": "fractions:Fraction", "absent": "no_such_module:X"})


def test_ours_are_imported_when_they_are_asked_for(shapes: Registry[type]) -> None:
    from fractions import Fraction

    assert shapes.names() == ["circle", "absent"]  # which could not be imported
    assert shapes("circle") is Fraction
    assert "circle" in shapes
    assert "square" not in shapes


def test_a_decorator_adds_one(shapes: Registry[type]) -> None:
    @shapes.register("square")
    class Square:
        pass

    assert shapes("square") is Square
    assert shapes.names() == ["circle", "absent", "square"]


def test_a_name_is_taken_once(shapes: Registry[type]) -> None:
    shapes.add("square", int)
    shapes.add("square", int)  # its module was imported again
    for name in ("square", "circle"):
        with pytest.raises(TimeDiffError, match="already"):
            shapes.add(name, str)


def test_an_unknown_name_is_answered_with_the_nearest(shapes: Registry[type]) -> None:
    with pytest.raises(TimeDiffError, match="no shape 'circel'; did you mean circle\\? The shapes are circle, absent"):
        shapes("circel")


@pytest.fixture
def fresh_caches(monkeypatch: pytest.MonkeyPatch):
    for cached in (registry._import_plugins, registry._entry_points):
        cached.cache_clear()
    yield
    for cached in (registry._import_plugins, registry._entry_points):
        cached.cache_clear()


@pytest.mark.usefixtures("fresh_caches")
def test_modules_that_the_environment_names_are_imported_first(
    shapes: Registry[type], monkeypatch: pytest.MonkeyPatch
) -> None:
    finder = types.SimpleNamespace(find_spec=lambda name, *_: shapes.add("hexagon", list) if name == "mine" else None)
    monkeypatch.setitem(sys.modules, "mine", None)
    monkeypatch.setenv("TIMEDIFF_PLUGINS", "mine")
    with pytest.raises(TimeDiffError, match="TIMEDIFF_PLUGINS names the module 'mine', which cannot be imported"):
        shapes("hexagon")
    monkeypatch.delitem(sys.modules, "mine")
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    with pytest.raises(TimeDiffError, match="cannot be imported"):  # it registers, and is no module
        shapes.names()
    assert shapes("hexagon") is list


@pytest.mark.usefixtures("fresh_caches")
def test_entry_points_are_loaded_when_they_are_asked_for(
    shapes: Registry[type], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [
        EntryPoint("star", "decimal:Decimal", "timediff.test_shapes"),
        EntryPoint("broken", "no_such_module:Y", "timediff.test_shapes"),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: found if group == "timediff.test_shapes" else [])
    from decimal import Decimal

    assert shapes.names()[-2:] == ["star", "broken"]
    assert shapes("star") is Decimal
    with pytest.raises(TimeDiffError, match="shape 'broken' of the package no_such_module:Y cannot be loaded"):
        shapes("broken")
