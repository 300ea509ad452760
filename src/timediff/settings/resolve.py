"""Presets and files of settings, and single settings by dotted path."""

import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from timediff.errors import TimeDiffError
from timediff.runtime.parsing import Unreadable, parse_toml, read_toml

if TYPE_CHECKING:
    from timediff.settings.base import GeneratorSettings

DEFAULT_PRESET = "fast"


def resolve(
    preset: "str | GeneratorSettings" = DEFAULT_PRESET,
    config: str | Path | None = None,
    assignments: Mapping[str, Any] | None = None,
) -> Any:
    """A preset (or settings to start from), then a TOML file, then single settings by dotted path.

    They are of the type that the preset's generator has.
    """
    settings = preset_settings(preset) if isinstance(preset, str) else preset
    if config is not None:
        settings = settings.updated(parse_file(Path(config)), str(config))
    return settings.updated(_nested(assignments or {}), "settings")


def preset_settings(name: str) -> "GeneratorSettings":
    from timediff.generators.registry import GENERATORS

    table = _preset(name)
    settings = GENERATORS(str(table.pop("generator", "timediff"))).Settings()
    return settings.updated(table, f"preset {name}")


def presets() -> list[str]:
    folder = resources.files("timediff.settings") / "presets"
    return sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))


def generator_of(preset: str) -> str:
    """The generator that a preset is for: the one that it names, or TimeDiff."""
    return str(_preset(preset).get("generator", "timediff"))


def parse_assignment(text: str) -> tuple[str, Any]:
    """`key=value` of the command line; the value is TOML, and a bare word is a text."""
    path, equals, value = text.partition("=")
    if not equals or not path.strip():
        raise TimeDiffError(f"--set {text}: expected key=value, such as training.steps=5000.")
    try:
        return path.strip(), parse_toml(f"value = {value}", f"--set {path.strip()}")["value"]
    except Unreadable:
        if value.strip().lstrip("+-").isdigit():  # no word, but a number beyond all limits
            raise
        return path.strip(), value.strip()


def parse_file(path: Path) -> dict[str, Any]:
    return read_toml(path)


def _nested(assignments: Mapping[str, Any]) -> dict[str, Any]:
    """{"training.lr": 1} → {"training": {"lr": 1}}."""
    nested: dict[str, Any] = {}
    for path, value in assignments.items():
        *tables, key = path.split(".")
        table = nested
        for name in tables:
            inner = table.setdefault(name, {})
            if not isinstance(inner, dict):
                raise TimeDiffError(f"{name} was given a value and a setting of its own ({path}): give one of them.")
            table = inner
        table[key] = value
    return nested


def _preset(name: str) -> dict[str, Any]:
    if name not in presets():
        raise TimeDiffError(f"there is no preset {name!r}; the presets are {', '.join(presets())}.")
    return tomllib.loads((resources.files("timediff.settings") / "presets" / f"{name}.toml").read_text())
