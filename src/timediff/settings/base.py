"""Settings of a generator: a frozen dataclass of tables ⇄ TOML."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import indent
from typing import TYPE_CHECKING, Any, ClassVar, Self

from timediff.errors import Problems
from timediff.settings import toml, typed
from timediff.settings.training import CodecSettings, ComputeSettings, TrainingSettings

if TYPE_CHECKING:
    from timediff.data.batch import Layout


@dataclass(frozen=True)
class GeneratorSettings:
    """What the settings of every generator can do; a generator adds its own tables or values."""

    renamed: ClassVar[Mapping[str, str]] = {}  # paths of earlier versions → those of today

    def __post_init__(self) -> None:
        if found := self.problems():
            raise Problems("settings", found)

    def __init_subclass__(cls, **given: Any) -> None:
        super().__init_subclass__(**given)
        if "__repr__" not in vars(cls):
            cls.__repr__ = GeneratorSettings.__repr__  # type: ignore[method-assign]  # before a dataclass writes its own

    def __repr__(self) -> str:
        """As the TOML file that it could be read from."""
        return f"{type(self).__name__}:\n{indent(self.to_toml().rstrip(), '  ')}"

    def _repr_html_(self) -> str:
        from timediff.report.notebook import facts_html

        return facts_html(type(self).__name__, typed.flat(self))

    def problems(self) -> list[str]:
        """What is out of range or does not go together."""
        return []

    def updated(self, table: Mapping[str, Any], where: str = "settings") -> Self:
        """These settings with those of a nested table (as from TOML) in their place."""
        return typed.update(self, table, where, self.renamed)

    def to_toml(self) -> str:
        return toml.dumps(typed.plain(self))

    def differences(self, other: "GeneratorSettings") -> dict[str, tuple[Any, Any]]:
        """Dotted paths whose values differ, with both values."""
        mine, theirs = typed.flat(self), typed.flat(other)
        return {path: (mine[path], theirs.get(path)) for path in mine if mine[path] != theirs.get(path)}


@dataclass(frozen=True)
class NeuralSettings(GeneratorSettings):
    """Of a generator that is a neural network."""

    recordings: ClassVar[bool] = False  # whether its discrete channels may be classes of how values are recorded

    training: TrainingSettings = field(default_factory=TrainingSettings)
    sampling: ComputeSettings = field(default_factory=ComputeSettings)
    codec: CodecSettings = field(default_factory=CodecSettings)

    def problems(self) -> list[str]:
        found = super().problems() + self.training.problems()
        if self.codec.recording and not self.recordings:
            found.append("codec.recording is true; this generator has masks alone: false")
        elif self.codec.recording and self.codec.scale != "quantile":
            found.append("codec.recording is true; it goes with codec.scale = 'quantile'")
        return found

    @property
    def intervals(self) -> bool:
        """Whether training stays are encoded with the intervals of their values."""
        return False

    def for_cohort(self, stays: int, layout: "Layout") -> Self:
        """With what a cohort of so many stays and these channels decides."""
        raise NotImplementedError
