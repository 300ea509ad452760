"""NeuralGenerator: the contract for generators that are one network. Each says what it is and how it is trained."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from timediff.data.arrays import Floats
from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.data.schema import Schema
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.fitting import FitRequest, Lesson, fit_network, fitted_codec, seeded_network
from timediff.generators.run import LOG, History, Run
from timediff.generators.sampling import BatchSampler, Compute, ComputeBatches, compute_batch
from timediff.generators.selection import POOL, chosen
from timediff.runtime import devices
from timediff.runtime.cuda_graphs import gpu_failures
from timediff.runtime.precision import arithmetic
from timediff.runtime.prefetch import ahead
from timediff.runtime.progress import Progress, Say, silent, unheard
from timediff.runtime.randomness import BLOCK, Noise
from timediff.runtime.seeding import MAX_SEED, require_seed
from timediff.runtime.watching import Watching, watched
from timediff.settings.base import NeuralSettings
from timediff.settings.training import ComputeSettings
from timediff.training.objective import Objective

DOCS = "docs/extending.md"
NO_LOSSES = ("step", "lr", "stays_per_second")  # of the history

S = TypeVar("S", bound=NeuralSettings)


@dataclass
class Fitted:
    codec: Codec
    network: nn.Module
    seed: int
    data_sha256: str
    history: History | None = None  # None = what the log of `run` says
    run: Run | None = None


class NeuralGenerator(Generator, Generic[S]):
    Settings: ClassVar[type[NeuralSettings]]
    settings: S  # what a cohort decides is in them once `plan` or `fit` has seen it
    _given: S
    _fitted: Fitted | None = None
    _planned: tuple[Cohort, Codec] | None = None  # `fit` after `plan` need not fit the codec again

    @abstractmethod
    def build(self, codec: Codec) -> nn.Module:
        """The network for these channels, with random weights of PyTorch's own stream."""

    @abstractmethod
    def objectives(self, codec: Codec) -> tuple[Objective, ...]:
        """What training minimises; of the first, the loss of held-out stays says when to stop."""

    @abstractmethod
    def sampler(self, network: nn.Module, codec: Codec, compute: Compute[Any]) -> BatchSampler:
        """Samples stays of `compute.length` steps; the network computes no more than `compute.rows` at once."""

    def losses_of(self, network: nn.Module, batch: Batch, codec: Codec, noise: Noise) -> dict[str, Tensor] | None:
        """Losses of each stay, (B, levels), by their names; None of a method that has no such loss."""
        return None

    def prepare(self, network: nn.Module, data: Batch, codec: Codec, say: Say) -> None:
        """What a network takes from the training data before training."""

    @property
    def fitted(self) -> Fitted:
        if self._fitted is None:
            raise TimeDiffError("this generator is not fitted yet: call fit first, or load a run.")
        return self._fitted

    def facts(self) -> dict[str, str]:
        found = super().facts()
        if self._fitted is None:
            return found
        found["parameters"] = f"{sum(one.numel() for one in self.fitted.network.parameters()):,}"
        found["training seed"] = str(self.fitted.seed)
        last = self.history[-1] if self.history else {}
        losses = [f"{name.replace('_', ' ')} {last[name]:.4g}" for name in last if name not in NO_LOSSES]
        return found | ({"last losses": f"{', '.join(losses)} after {last['step']:,} updates"} if losses else {})

    @property
    def codec(self) -> Codec:
        """What it was trained with, for `batches` of other stays."""
        return self.fitted.codec

    @property
    def trained_on(self) -> str | None:
        return self.fitted.data_sha256 or None

    @property
    def history(self) -> History:
        fitted = self.fitted
        if fitted.history is None:
            fitted.history = fitted.run.history() if fitted.run else []
        return fitted.history

    @property
    def schema(self) -> Schema:
        return self.fitted.codec.schema

    @property
    def identity(self) -> str:
        state = self.fitted.network.state_dict()
        content = [value.cpu().numpy().tobytes() for value in state.values()]
        content += [self.fitted.codec.to_json().encode(), self.settings.to_toml().encode()]
        return hashlib.sha256(b"".join(content)).hexdigest()

    def plan(self, cohort: Cohort) -> dict[str, Any]:
        """What `fit` would build for this cohort; it checks the cohort and trains nothing."""
        codec, training = self._sized_for(cohort), self.settings.training
        network = seeded_network(self.build, codec)
        return {
            "stays": len(cohort),
            "steps": cohort.schema.steps,
            "continuous channels": len(codec.layout.continuous),
            "discrete channels": len(codec.layout.discrete),
            "parameters": sum(p.numel() for p in network.parameters()),
            "updates": training.steps,
            "stays an update": training.batch_for(len(cohort)) * training.accumulate,
        }

    @gpu_failures()
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
        """Trains on the cohort. With `run`, writes that run folder as it goes, and `resume` continues one."""
        codec, path = self._sized_for(cohort), None if run is None else Path(run)
        if seed is None:
            seed = Run.seed_of(path, allow_edited=allow_edited) if path is not None and resume else None
            seed = self.settings.training.seed if seed is None else seed
        require_seed(seed)
        request = FitRequest(self.name, self.settings, codec, seed, cohort.digest(), path, resume, allow_edited)
        with watched(progress, f"fitting {self.name}") as shown:
            teach = partial(self._taught, cohort, request, shown, say) if self.settings.training.distillation else None
            weights, history = fit_network(
                request, cohort, self.build, self.objectives(codec), self.prepare,
                teach=teach, progress=shown, say=say,
            )  # fmt: skip
        # A new network: the trained one may be accelerated for its precision, and sampling is always in single.
        network = seeded_network(self.build, codec)
        network.load_state_dict(weights)
        self._fitted, self._planned = Fitted(codec, network.eval(), seed, request.data_sha256, history), None
        return self

    def _taught(self, cohort: Cohort, request: FitRequest, progress: Progress, say: Say, run: Path | None) -> Lesson:
        """By a teacher of this kind, which has one round of distillation less behind it."""
        training = self.settings.training
        alone = {"training": {"distillation": training.distillation - 1, "track": []}}
        teacher = type(self)(settings=self.settings.updated(alone))
        teacher.fit(cohort, seed=request.seed, run=run, resume=True, progress=progress, say=say)
        stays = max(training.distilled, len(cohort))
        number = stays * POOL if training.selection else stays
        say(f"round {training.distillation} of distillation: {number:,} stays of the teacher")
        made = teacher.sample(number, seed=(request.seed + training.distillation) % (MAX_SEED + 1), progress=progress)
        weights = teacher.fitted.network.state_dict() if training.distillation > 1 else None
        return Lesson(chosen(cohort, made, stays, request.seed) if training.selection else made, weights)

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
        """Stays skip … n − 1 a compute batch at a time; options are those of [sampling], such as steps=50."""
        require_seed(seed)
        if skip % BLOCK:
            raise ValueError(
                f"skip is {skip}; noise belongs to blocks of {BLOCK} stays, so expected a multiple of that"
            )
        trained = self.schema.steps
        if length is not None and length > trained:
            say(f"this run was trained on stays of {trained} steps: longer ones, here of {length}, are a guess")
        return self._parts(n, seed, skip, length or trained, progress, say, self._sampling(options))

    def _parts(
        self, n: int, seed: int, skip: int, length: int, progress: Progress, say: Say, sampling: ComputeSettings
    ) -> Iterator[Cohort]:
        codec, device = self.fitted.codec, devices.device()
        with gpu_failures():
            network = self.fitted.network.to(device)

        def make(rows: int | None) -> BatchSampler:
            return self.sampler(network, codec, Compute(device, length, sampling, say, rows))

        batches = ComputeBatches(
            make, n, seed=seed, skip=skip, length=length, batch=compute_batch(n, length, sampling, device),
            device=device, progress=progress, say=say,
        )  # fmt: skip
        # Values are brought back to their units, and written, while the GPU computes the next.
        for start, batch in ahead(iter(batches)) if device.type == "cuda" else batches:
            yield codec.decode(batch, first_id=start)

    def _sampling(self, options: Mapping[str, Any]) -> ComputeSettings:
        given = {key: value for key, value in options.items() if value is not None}
        known = [field.name for field in fields(self.settings.sampling)]
        unknown = [key for key in given if key not in known]
        if unknown:
            raise TimeDiffError(
                f"{self.name} is not sampled with {' or '.join(unknown)}: what can be chosen is {', '.join(known)}."
            )
        return self.settings.updated({"sampling": given}, "sampling").sampling

    @gpu_failures()
    def stay_losses(self, cohort: Cohort, *, seed: int = 0, progress: Progress = silent) -> dict[str, Floats]:
        """Losses of each stay, (stays, levels); the same seed gives the same noise to the same stays."""
        codec, device = self.fitted.codec, devices.device()
        network, data = self.fitted.network.to(device), codec.encode(cohort, intervals=self.settings.intervals)
        parts: list[dict[str, Floats]] = []
        for start in range(0, len(data), BLOCK):
            batch = data[start : start + BLOCK].to(device)
            noise = Noise("evaluation", [(seed, start)], [len(batch)], BLOCK, device)
            with torch.inference_mode(), arithmetic("float32"):
                found = self.losses_of(network, batch, codec, noise)
            if found is None:
                return super().stay_losses(cohort)
            parts.append({name: losses.double().cpu().numpy() for name, losses in found.items()})
            progress(min(start + BLOCK, len(data)), len(data))
        return {name: np.concatenate([one[name] for one in parts]) for name in (parts[0] if parts else ())}

    def save(self, path: str | Path) -> None:
        fitted = self.fitted
        facts = {"generator": self.name, "seed": fitted.seed, "data_sha256": fitted.data_sha256}
        run = Run.create(Path(path), self.settings, fitted.codec.schema, facts, fitted.codec)
        if self.history:
            (run.path / LOG).write_text("".join(json.dumps(line) + "\n" for line in self.history))
        run.finish(fitted.network.state_dict(), updates=self.settings.training.steps)

    @classmethod
    def from_run(cls, run: Run, say: Say = unheard) -> Self:
        model, codec = cls(settings=run.settings), run.codec()
        weights = run.weights(say)
        network = seeded_network(model.build, codec)
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            message = f"the run folder {run.path} is damaged: its weights do not fit its settings. If a class of your "
            message += f"own wrote it, give the class a name of its own and register it, or call its load: {DOCS}."
            raise TimeDiffError(message) from error
        provenance = run.provenance
        seed, digest = provenance.get("seed") or 0, provenance.get("data_sha256") or ""
        model._fitted = Fitted(codec, network.eval(), seed, digest, run=run)
        return model

    def _sized_for(self, cohort: Cohort) -> Codec:
        """The cohort's codec; the settings get what the cohort decides."""
        planned = self._planned
        codec = planned[1] if planned and planned[0] is cohort else fitted_codec(cohort, self._given)
        self._planned = cohort, codec
        self.settings = self._given.for_cohort(len(cohort), codec.layout)
        return codec
