"""What every generator is: `fit(cohort) -> self`, `sample(n) -> Cohort`, `save`, `load`."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from timediff import __version__
from timediff.data.arrays import Floats
from timediff.data.cohort import Cohort, concatenate
from timediff.data.provenance import HASH, CohortProvenance
from timediff.data.schema import Schema
from timediff.errors import TimeDiffError
from timediff.runtime.progress import Progress, Say, silent, unheard
from timediff.runtime.watching import Watching, watched
from timediff.settings.base import GeneratorSettings
from timediff.settings.resolve import resolve

if TYPE_CHECKING:
    from timediff.generators.run import Run


class Generator(ABC):
    name: ClassVar[str]
    Settings: ClassVar[type[GeneratorSettings]]
    preset: ClassVar[str | None] = None  # its own, where none is given; None = the defaults of its settings
    signed_losses: ClassVar[tuple[str, ...]] = ()  # of `stay_losses` those that may be negative: −log of a density

    def __init__(
        self,
        preset: str | None = None,
        *,
        settings: GeneratorSettings | None = None,
        assignments: Mapping[str, Any] | None = None,
    ) -> None:
        """Not fitted yet. `settings` go before the preset; single ones of the preset's are `assignments` by path."""
        given = settings or resolve(preset or self.preset or self.Settings(), assignments=assignments)
        if not isinstance(given, self.Settings):
            what = "these settings are" if settings else f"the preset {preset!r} is"
            raise TimeDiffError(f"{what} for another generator than {self.name}: leave it out, or choose another.")
        self._set(given)

    def _set(self, settings: Any) -> None:
        self.settings = self._given = settings

    @property
    def given(self) -> GeneratorSettings:
        """Its settings as it was given them; in `settings` is what a cohort decides, too."""
        found: GeneratorSettings = self._given
        return found

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
        allow_edited: bool = False,
        progress: Watching = None,
        say: Say = unheard,
    ) -> Self:
        """Trains on the cohort; the same seed gives the same weights. Writes or continues the run folder.

        A bar is shown in a terminal or notebook; `progress` may also be True, False, a tqdm class or bar, or a function
        of (done, total).
        """

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
    def from_run(cls, run: "Run", say: Say = unheard) -> Self:
        """A fitted generator from an open run folder; `say` hears what is odd about the run."""

    @classmethod
    def load(cls, path: str | Path, say: Say = unheard, *, allow_edited: bool = False) -> Self:
        """A fitted generator from a run folder."""
        from timediff.generators.run import Run

        return cls.from_run(Run.open(Path(path), allow_edited=allow_edited, say=say), say)

    @property
    @abstractmethod
    def identity(self) -> str:
        """A hash of the trained state: two generators with the same one give the same stays."""

    @property
    def trained_on(self) -> str | None:
        """The hash of the cohort that it was fitted to; None where that is not known."""
        return None

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The schema of what it generates."""

    def facts(self) -> dict[str, str]:
        """What it is and what it was fitted to, without any stay's value."""
        found = {"generator": self.name}
        try:
            schema = self.schema
        except TimeDiffError:
            return found | {"state": "not fitted yet"}
        made = [(scope, len(many)) for scope, many in (("temporal", schema.temporal), ("static", schema.static))]
        features = ", ".join(f"{count:,} {scope}" for scope, count in made)
        return found | {
            "state": "fitted",
            "trained on": (self.trained_on or "a cohort that is not known")[:HASH],
            "generates": f"stays of {schema.steps:,} steps of {schema.step}; features: {features}",
            "run": self.identity[:HASH],
        }

    def __repr__(self) -> str:
        return "\n  ".join([f"{type(self).__name__}:", *(f"{name}: {value}" for name, value in self.facts().items())])

    def _repr_html_(self) -> str:
        from timediff.report.notebook import facts_html

        return facts_html(type(self).__name__, self.facts())

    @property
    def history(self) -> list[dict[str, float]]:
        """Losses by name, a record a report of the log, each with its update as "step"; empty where there are none."""
        return []

    def plot_history(self) -> Any:
        """The same as a Plotly figure, which a notebook shows."""
        from timediff.report.history import history_figure

        return history_figure(self.history)

    def stay_losses(self, cohort: Cohort, *, seed: int = 0, progress: Progress = silent) -> dict[str, Floats]:
        """Losses of each stay, (stays, levels), by what they are the losses of: what an attacker reads off a model.

        The same seed gives the same noise to the same stays. For audits alone: what it returns is about single stays.
        All are 0 or more, but for `signed_losses`.
        """
        raise TimeDiffError(
            f"{self.name} has no loss of a single stay, so attacks on its run folder cannot be made: attack what it "
            "generates."
        )

    def sample(
        self, n: int, *, seed: int = 0, length: int | None = None, progress: Watching = None, **options: Any
    ) -> Cohort:
        """`n` synthetic stays; the same seed gives the same stays. `progress` is as in `fit`."""
        if n < 1:
            raise TimeDiffError(f"{n} stays to sample; expected at least 1.")
        with watched(progress, "sampling") as shown:
            made = concatenate(list(self.stream(n, seed=seed, length=length, progress=shown, **options)))
        return replace(made, provenance=self.provenance_of(n, seed))

    def provenance_of(self, n: int, seed: int) -> CohortProvenance:
        """What a cohort of `n` stays, sampled today, says of itself."""
        return CohortProvenance(
            generator=self.name,
            run=self.identity,
            trained_on=self.trained_on,
            seed=seed,
            stays=n,
            version=__version__,
            date=f"{datetime.now(UTC):%Y-%m-%d}",
        )
