"""What an export is: a way to write a cohort for other tools, a part of its stays at a time."""

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

from timediff.data.parts import Parts
from timediff.data.provenance import NAME
from timediff.errors import TimeDiffError
from timediff.runtime.progress import Progress


class Export(ABC):
    suffix: ClassVar[str | None] = None  # of the single file that it writes; None = a folder

    def check(self, parts: Parts) -> None:
        """Says what cannot be exported, before anything is written."""
        if len(parts) == 0:
            raise TimeDiffError("the cohort is empty: there is no stay to export.")

    @abstractmethod
    def write(self, parts: Parts, out: Path, progress: Progress) -> None:
        """Writes the file `out`, or into the folder `out`, which is there and empty."""


def write_schema(parts: Parts, folder: Path) -> None:
    """What the columns mean, and where a synthetic cohort is from."""
    (folder / "schema.toml").write_text(parts.schema.to_toml(), encoding="utf-8")
    if parts.provenance is not None:
        (folder / NAME).write_text(parts.provenance.to_json(), encoding="utf-8")
