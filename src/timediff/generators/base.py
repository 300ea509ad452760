"""What every generator is: `fit(cohort) -> self`, `sample(n) -> Cohort`, `save`, `load`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from timediff.cohort import Cohort, concatenate
from timediff.config import AnySettings
from timediff.errors import TimeDiffError
from timediff.progress import Progress, Say, silent, unheard
from timediff.schema import Schema


class Generator(ABC):
    name: ClassVar[str]
    settings: AnySettings  # what a cohort decides is in them once `plan` or `fit` has seen it

    @abstractmethod
    def __init__(
        self, preset: str | None = None, *, settings: Any = None, assignments: Mapping[str, Any] | None = None
    ) -> None:
        """One that has learnt nothing yet. `settings` go before the preset, which is its own if not given; single ones
        of the preset's are `assignments` by dotted path."""

    @abstractmethod
    def plan(self, cohort: Cohort) -> dict[str, Any]:
        """What `fit` would build for this cohort; it checks the cohort and trains nothing."""

    @abstractmethod
    def fit(
        self,
        cohort: Cohort,
        *,
        seed: int | None = None,
        run: str | Path | None = None,
        resume: bool = False,
        progress: Progress = silent,
        say: Say = unheard,
    ) -> Self:
        """Learns from the cohort; the same seed gives the same weights. Writes or continues the run folder."""

    @abstractmethod
    def stream(
        self,
        n: int,
        *,
        seed: int = 0,
        skip: int = 0,
        length: int | None = None,
        progress: Progress = silent,
        say: Say = unheard,
        **options: Any,
    ) -> Iterator[Cohort]:
        """Synthetic stays `skip` (a multiple of 500) … n − 1 in consecutive parts, each computed when asked for."""

    @abstractmethod
    def save(self, path: str | Path) -> None:
        """Writes a run folder that `load` reads."""

    @classmethod
    @abstractmethod
    def load(cls, path: str | Path, say: Say = unheard) -> Self:
        """A fitted generator from a run folder; `say` hears what is odd about the run."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """A hash of what was learnt: two generators with the same one give the same stays."""

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
