"""What a source is: raw data of one kind, turned into a cohort by settings that a user can edit."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Generic, TypeVar

from timediff.errors import TimeDiffError
from timediff.runtime.parsing import parse_toml, read_toml
from timediff.runtime.progress import Progress, silent
from timediff.settings import toml, typed
from timediff.sources.addresses import is_address, public
from timediff.sources.extraction import Extraction

S = TypeVar("S")


class Source(ABC, Generic[S]):
    """A kind of raw data that `timediff extract NAME SOURCE OUT` reads.

    A source of another package:

        @SOURCES.register("rows")
        class Rows(Source[RowsSettings]):
            settings = RowsSettings

            def extract(self, source: str, settings: RowsSettings, progress: Progress = silent) -> Extraction: ...
    """

    settings: type[S]  # a frozen dataclass
    defaults: str = ""  # its settings as TOML, with comments for who edits them; none: those of the dataclass
    published: str | None = None  # what of them the paper's authors did otherwise, as TOML; None: the paper has it not

    @abstractmethod
    def extract(self, source: str, settings: S, progress: Progress = silent) -> Extraction:
        """The cohort in SOURCE (a folder, a file, a URL), and how many stays each rule dropped."""

    def resolve(
        self,
        config: str | Path | None = None,
        changes: Mapping[str, object] | None = None,
        *,
        as_published: bool = False,
    ) -> S:
        """The source's own settings, those of the paper's authors, or those of a file; then single ones by name."""
        if as_published and config is not None:
            raise TimeDiffError("a file of settings and as_published are both whole settings: give one of them.")
        where = str(config or f"{type(self).__name__} settings")
        table = parse_toml(self.defaults, where) if config is None else read_toml(Path(config))
        if as_published:
            if self.published is None:
                raise TimeDiffError("the paper does not use this source: leave out as_published.")
            table |= parse_toml(self.published, where)
        return typed.build(self.settings, {**table, **(changes or {})}, where)

    def default_toml(self, *, as_published: bool = False) -> str:
        """What --print-config shows."""
        if as_published:
            return self.to_toml(self.resolve(as_published=True))
        return self.defaults or self.to_toml(self.resolve())

    def to_toml(self, settings: S) -> str:
        """Settings as they lie beside the cohort."""
        return toml.dumps(typed.plain(settings))


def local(source: str) -> Path:
    """SOURCE as a path, for what is read from files alone."""
    if is_address(source):
        shown = public(source) if "://" in source else "an address"
        raise TimeDiffError(f"{shown} is no file: this source is read from files; give a folder or a file.")
    return Path(source)


def bundled(name: str) -> str:
    """The text of settings/NAME.toml, for our own sources."""
    return (resources.files("timediff.sources") / "settings" / f"{name}.toml").read_text()
