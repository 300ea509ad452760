"""What every generator is: `fit(cohort) -> self`, `sample(n) -> Cohort`, `save`, `load`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Self

from timediff.cohort import Cohort, concatenate
from timediff.errors import TimeDiffError
from timediff.progress import Progress, silent
from timediff.schema import Schema


class Generator(ABC):
    name: ClassVar[str]

    @abstractmethod
    def fit(self, cohort: Cohort, *, seed: int | None = None, progress: Progress = silent) -> Self:
        """Learns from the cohort; the same seed gives the same weights."""

    @abstractmethod
    def stream(
        self,
        n: int,
        *,
        seed: int = 0,
        skip: int = 0,
        length: int | None = None,
        progress: Progress = silent,
        **options: Any,
    ) -> Iterator[Cohort]:
        """Synthetic stays `skip` … n − 1 in consecutive parts, each computed when it is asked for."""

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Writes a run folder that `load` reads."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | Path) -> Self:
        """A fitted generator from a run folder."""

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The schema of what it generates."""

    def sample(
        self, n: int, *, seed: int = 0, length: int | None = None, progress: Progress = silent, **options: Any
    ) -> Cohort:
        """`n` synthetic stays; the same seed gives the same stays."""
        if n < 1:
            raise TimeDiffError(f"{n} stays to sample; expected at least 1.")
        return concatenate(list(self.stream(n, seed=seed, length=length, progress=progress, **options)))
