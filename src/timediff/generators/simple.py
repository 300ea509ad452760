"""SimpleGenerator: a generator whose trained state is a few arrays. Two methods are enough to write one."""

import hashlib
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.run import Run
from timediff.runtime.progress import Progress, Say, silent, unheard
from timediff.runtime.randomness import BLOCK
from timediff.runtime.seeding import require_seed, stream
from timediff.runtime.watching import Watching, watched
from timediff.settings.base import GeneratorSettings

State = dict[str, np.ndarray[Any, np.dtype[Any]]]


class SimpleGenerator(Generator):
    Settings: ClassVar[type[GeneratorSettings]] = GeneratorSettings
    _fitted: tuple[Schema, State, dict[str, Any]] | None = None

    @abstractmethod
    def train(self, cohort: Cohort, rng: np.random.Generator) -> State:
        """The trained state, as arrays of numbers: all that is saved."""

    @abstractmethod
    def generate(self, n: int, schema: Schema, state: State, rng: np.random.Generator) -> Cohort:
        """`n` stays of this schema, numbered from 0."""

    def plan(self, cohort: Cohort) -> dict[str, Any]:
        return {"stays": len(cohort), "steps": cohort.schema.steps}

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
        seed = seed or 0
        require_seed(seed)
        facts = {"generator": self.name, "seed": seed, "stays": len(cohort), "data_sha256": cohort.digest()}
        self._fitted = cohort.schema.generated(), self.train(cohort, stream("training", seed)), facts
        with watched(progress, f"fitting {self.name}") as shown:
            shown(1, 1)
        if run is not None:
            self._write(Path(run), resume, allow_edited, say)
        return self

    def _write(self, path: Path, resume: bool, allow_edited: bool = False, say: Say = unheard) -> None:
        schema, state, facts = self._state()
        known = Run.open(path, allow_edited=allow_edited, say=say) if resume and path.exists() else None
        if known and {key: known.provenance.get(key) for key in facts} != facts:
            raise TimeDiffError(f"{path} was started on other data, or with another seed or generator: resume that.")
        folder = known or Run.create(path, self.settings, schema, facts)
        folder.finish({name: torch.from_numpy(np.array(value, order="C")) for name, value in state.items()})

    def save(self, path: str | Path) -> None:
        self._write(Path(path), resume=False)

    @classmethod
    def from_run(cls, run: Run, say: Say = unheard) -> Self:
        model = cls(settings=run.settings)
        state = {name: value.numpy() for name, value in run.weights(say).items()}
        facts = {key: run.provenance.get(key) for key in ("generator", "seed", "stays", "data_sha256")}
        model._fitted = run.schema, state, facts
        return model

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
        schema = self.schema
        require_seed(seed)
        if unknown := [key for key, value in options.items() if value is not None]:
            raise TimeDiffError(f"{self.name} is not sampled with {' or '.join(unknown)}.")
        if length is not None and length > schema.steps:
            raise TimeDiffError(f"{self.name} makes stays of {schema.steps} steps, no longer ones; given {length}.")
        return self._blocks(n, seed, skip, length or schema.steps, progress)

    def _blocks(self, n: int, seed: int, skip: int, length: int, progress: Progress) -> Iterator[Cohort]:
        schema, state, _ = self._state()
        for start in range(skip, n, BLOCK):  # whole blocks, so that fewer stays are the first of more
            block = self.generate(BLOCK, schema, state, stream("sampling", seed, start // BLOCK)).horizon(length)
            part = block.take(np.arange(min(BLOCK, n - start)))
            yield replace(part, stay_id=np.arange(start, start + len(part)))
            progress(min(start + BLOCK, n), n)

    @property
    def identity(self) -> str:
        _, state, _ = self._state()
        content = [name.encode() + value.tobytes() for name, value in sorted(state.items())]
        return hashlib.sha256(b"".join([*content, self.settings.to_toml().encode()])).hexdigest()

    @property
    def trained_on(self) -> str | None:
        digest = self._state()[2].get("data_sha256")
        return str(digest) if digest else None

    @property
    def schema(self) -> Schema:
        return self._state()[0]

    def _state(self) -> tuple[Schema, State, dict[str, Any]]:
        if self._fitted is None:
            raise TimeDiffError("this generator is not fitted yet: call fit first, or load a run.")
        return self._fitted
