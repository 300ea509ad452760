"""From raw data to training and test stays: extraction, the part that the budget leaves, and the split."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import TimeDiffError
from timediff.reproduction.datasets import Found, Kind
from timediff.reproduction.places import ReproductionFolder, key
from timediff.runtime.files import new_folder
from timediff.runtime.progress import Say, Watch

SEED = 2023  # the paper's
SOME = 2000  # real stays of TSRTR
FEWEST = 50  # stays in each part, without which nothing can be evaluated


@dataclass(frozen=True)
class Preparation:
    """The extraction of one data set, a task of a worker."""

    found: Found
    places: ReproductionFolder
    simulated: int  # stays, of a database that is simulated

    @property
    def kind(self) -> Kind:
        return self.found.kind

    @property
    def name(self) -> str:
        return f"{self.kind.title}, extracting"

    @property
    def folder(self) -> Path:
        """Named by a hash of what it follows from; of raw files their names and sizes stand for them."""
        return self.places.data(self.kind.name, key(self.kind.source, dict(self.kind.changes), self._raw()))

    @property
    def cohort(self) -> Path:
        return self.folder / "cohort"

    @property
    def done(self) -> bool:
        return self.cohort.is_dir()

    @property
    def stage(self) -> str:
        return "extracting"

    @property
    def on_gpu(self) -> bool:
        return False

    def carry_out(self, watch: Watch, say: Say) -> None:
        from timediff.sources.raw import write_raw
        from timediff.sources.registry import source

        if self.done:
            return
        raw = self.folder / "raw"
        if self.kind.simulated and not raw.is_dir():
            write_raw(self.kind.source, raw, self.simulated, seed=SEED, progress=watch(self.name))
        read = source(self.kind.source)
        settings = read.resolve(changes=dict(self.kind.changes))
        place = raw / "raw" if self.kind.simulated else self.found.path
        extraction = read.extract(str(place), settings, watch(self.name))
        extraction.write(self.cohort, read.to_toml(settings))
        shutil.rmtree(raw, ignore_errors=True)

    def _raw(self) -> list[object]:
        if self.kind.simulated or self.found.path is None:
            return [self.simulated, SEED]
        files = sorted(path for path in self.found.path.rglob("*") if path.is_file())
        return [[str(path.relative_to(self.found.path)), path.stat().st_size] for path in files]


@dataclass(frozen=True)
class PreparedSplit:
    """Training and test stays of a data set, and the 2,000 training stays of TSRTR, as folders."""

    folder: Path

    @property
    def train(self) -> Path:
        return self.folder / "train"

    @property
    def test(self) -> Path:
        return self.folder / "test"

    @property
    def some(self) -> Path:
        return self.folder / "some"


def parts(prepared: Preparation, stays: int | None) -> PreparedSplit:
    """Written once: at most so many stays, split as the paper says."""
    found = PreparedSplit(prepared.folder / f"parts-{stays or 'all'}")
    if not found.folder.is_dir():
        cohort = at_most(read_cohort(prepared.cohort), stays)
        train, test = split(cohort, prepared.kind)
        with new_folder(found.folder) as folder:
            for part, name in ((train, "train"), (test, "test"), (at_most(train, SOME), "some")):
                part.write(folder / name)
    return found


def split(cohort: Cohort, kind: Kind) -> tuple[Cohort, Cohort]:
    """Windows of one series at random, as in the paper; stays by patient, which the paper does not say."""
    train, test = cohort.split(kind.test, seed=SEED, by="random")
    for part, name in ((train, "training"), (test, "test")):
        if len(part) < FEWEST:
            raise TimeDiffError(
                f"{len(part)} of its {len(cohort)} stays would be for {name}; at least {FEWEST} are needed to evaluate."
            )
    return train, test


def at_most(cohort: Cohort, count: int | None) -> Cohort:
    """Random stays in their order, where there are more."""
    if count is None or len(cohort) <= count:
        return cohort
    order = np.random.default_rng([SEED, count]).permutation(len(cohort))
    return replace(cohort.take(np.sort(order[:count])), provenance=None)
