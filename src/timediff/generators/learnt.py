"""Learnt: what all generators share that are one network: fitting into a run folder, resuming, sampling, saving.

What it is, how it is trained and how it draws stays is each generator's own.
"""

import hashlib
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from timediff import devices
from timediff.ahead import ahead
from timediff.capture import gpu_failures, is_full, make_room
from timediff.codec import Codec, Encoded, refuse_ragged
from timediff.cohort import Cohort
from timediff.config import AnySettings, resolve
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.registry import entry, settings_type
from timediff.generators.run import Run
from timediff.networks.brnn import BidirectionalRNN
from timediff.networks.inference import arithmetic
from timediff.progress import Progress, Say, silent, unheard
from timediff.randomness import BLOCK, Noise, sampling_noise, seed_torch
from timediff.schema import Schema
from timediff.training.loop import make_accelerator, train
from timediff.training.turns import Turn

FEWEST_HELD_OUT = 20  # stays; the loss of fewer would not say when to stop
CELLS_AT_ONCE = 500_000  # stays × steps that keep a GPU busy; a CPU computes a block at a time
STAYS_EACH = 64  # to a multiprocessor, where kernels are our own: a program of each, for 128 stays in one direction
MEMORY_EACH = 24_000  # bytes of the GPU to a step of these; it takes a third of that, or all where cuDNN has to do it

S = TypeVar("S", bound=AnySettings)
Tensors = tuple[Tensor, Tensor]  # of a codec: continuous (B, L, P_r), discrete (B, L, P_d)


class Drawer(Protocol):
    """Draws the stays of one compute batch, and ticks `calls` times."""

    @property
    def calls(self) -> int: ...

    def __call__(self, noise: Noise, tick: Callable[[], None]) -> Tensors: ...


@dataclass
class Fitted:
    codec: Codec
    network: nn.Module
    seed: int
    data_sha256: str


class Learnt(Generator, Generic[S]):
    name: ClassVar[str]

    def __init__(
        self,
        preset: str | None = None,
        *,
        settings: S | None = None,
        assignments: Mapping[str, Any] | None = None,
    ) -> None:
        given: Any = settings or resolve(preset or entry(self.name).preset, assignments=assignments)
        if not issubclass(type(given), settings_type(self.name)):
            what = "these settings are" if settings else f"the preset {preset!r} is"
            raise TimeDiffError(f"{what} for another generator than {self.name}: leave it out, or choose another.")
        self.settings: S = given
        self._given: S = given
        self._fitted: Fitted | None = None

    @abstractmethod
    def _build(self, codec: Codec) -> nn.Module:
        """The network for these channels, whose weights are drawn from PyTorch's own stream."""

    @abstractmethod
    def _turns(self, codec: Codec, device: torch.device) -> tuple[Turn, ...]:
        """How it learns."""

    @abstractmethod
    def _drawer(
        self, network: nn.Module, codec: Codec, device: torch.device, length: int, sampling: Any, say: Say,
        rows: int | None = None,
    ) -> Drawer:  # fmt: skip
        """How it draws stays of `length` steps; its network computes no more than `rows` of them at once."""

    @abstractmethod
    def _sized(self, cohort: Cohort, codec: Codec) -> S:
        """The given settings with what the cohort decides."""

    @abstractmethod
    def _width(self, codec: Codec) -> int:
        """Of each direction of the network."""

    def _prepared(self, network: nn.Module, data: Tensors, codec: Codec, say: Say) -> None:
        """What a network is told of the training data before it learns."""

    @property
    def fitted(self) -> Fitted:
        if self._fitted is None:
            raise TimeDiffError("this generator has learnt nothing yet: call fit first, or load a run.")
        return self._fitted

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
        codec = self._codec(cohort)
        self.settings = self._sized(cohort, codec)
        network = self._network(codec)
        return {
            "stays": len(cohort),
            "steps": cohort.schema.steps,
            "continuous channels": len(codec.continuous),
            "discrete channels": len(codec.discrete),
            "width of each direction": self._width(codec),
            "parameters": sum(p.numel() for p in network.parameters()),
            "updates": self.settings.training.steps,
            "stays an update": self.settings.training.batch_for(len(cohort)) * self.settings.training.accumulate,
        }

    @gpu_failures()
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
        """Learns from the cohort. With `run`, writes that run folder as it goes, and `resume` continues one."""
        codec = self._codec(cohort)
        self.settings = self._sized(cohort, codec)
        if seed is None:
            seed = Run.seed_of(Path(run)) if run is not None and resume else None
            seed = self.settings.training.seed if seed is None else seed
        digest = cohort.digest()
        accelerator = make_accelerator(self.settings.training)
        folder = None
        if run is not None:
            facts = {"generator": self.name, "seed": seed, "stays": len(cohort), "data_sha256": digest}
            with devices.first_first():
                folder = self._run_folder(Path(run), codec, facts, resume, accelerator.is_main_process)
        network = self._network(codec, seed)
        learnt, held_out = self._held_out(cohort, seed)
        data = _tensors(codec.encode(learnt))
        self._prepared(network, data, codec, say)
        if accelerator.mixed_precision == "bf16" and self.settings.training.kernels:
            for module in network.to(accelerator.device).modules():
                if isinstance(module, BidirectionalRNN):
                    module.learn_by_kernels(cohort.schema.steps, say)
        started, before = time.monotonic(), folder.provenance.get("seconds", 0) if folder else 0
        try:
            weights = train(
                network, self._turns(codec, accelerator.device), data, self.settings.training, seed=seed,
                accelerator=accelerator, folder=folder.path if folder else None, progress=progress, say=say,
                held_out=_tensors(codec.encode(held_out)) if held_out else None,
            )  # fmt: skip
        finally:  # also of a run that was stopped, for the one that goes on from there
            if folder and accelerator.is_main_process:
                with suppress(OSError):  # a full disk is what ended it, and that is said
                    folder.note(seconds=round(before + time.monotonic() - started, 1))
        # A new network: the trained one is wrapped for its precision, and sampling is always in single.
        averaged = self._network(codec)
        averaged.load_state_dict(weights)
        self._fitted = Fitted(codec, averaged.eval(), seed, digest)
        if folder and accelerator.is_main_process:
            folder.finish(weights, updates=self.settings.training.steps)
        return self

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
        if skip % BLOCK:
            raise ValueError(
                f"skip is {skip}; noise belongs to blocks of {BLOCK} stays, so expected a multiple of that"
            )
        learnt = self.schema.steps
        if length is not None and length > learnt:
            say(f"this run learnt from stays of {learnt} steps: how longer ones go on, here to {length}, is a guess")
        return self._parts(n, seed, skip, length or learnt, progress, say, self._sampling(options))

    def _parts(
        self, n: int, seed: int, skip: int, length: int, progress: Progress, say: Say, sampling: Any
    ) -> Iterator[Cohort]:
        codec, device = self.fitted.codec, devices.device()
        drawn = self._drawn(n, seed, skip, length, progress, say, sampling, device)
        # Values are brought back to their units, and written, while the GPU draws the next.
        for start, encoded in ahead(drawn) if device.type == "cuda" else drawn:
            yield codec.decode(encoded, first_id=start)

    def _drawn(
        self, n: int, seed: int, skip: int, length: int, progress: Progress, say: Say, sampling: Any,
        device: torch.device,
    ) -> Iterator[tuple[int, Encoded]]:  # fmt: skip
        """Compute batches as they come from the sampler, each with the number of its first stay."""
        with gpu_failures():
            if device.type == "cuda" and device.index is not None:  # of a thread it is the first unless it is told
                torch.cuda.set_device(device)
            network = self.fitted.network.to(device)
        draw = self._drawer(network, self.fitted.codec, device, length, sampling, say)
        batch, start = compute_batch(n, length, sampling, device), skip
        rows: int | None = None  # fewer than a block, where a GPU does not hold one
        done = begun = 0  # calls of the network, and those before the batch in hand

        def tick() -> None:
            nonlocal done
            done += 1
            progress(done, begun + -(-(n - start) // batch) * draw.calls)

        while start < n:
            begun = done
            noise = sampling_noise(seed, start // BLOCK, min(batch, n - start), device)
            try:
                with torch.inference_mode(), arithmetic("float32"), gpu_failures():
                    x, c = draw(noise, tick)
                    encoded = Encoded(x.cpu().numpy(), c.to(torch.int32).cpu().numpy())
            except RuntimeError as error:
                if not is_full(error):
                    raise
                if rows == 1:
                    raise TimeDiffError(
                        f"the GPU's memory does not hold one stay of {length:,} steps: a GPU with more of it, or a "
                        "smaller model.hidden, would."
                    ) from error
                encoded = None
            if encoded is None:  # outside of the handler, which keeps what was half computed alive
                if batch > BLOCK:
                    batch = BLOCK * -(-batch // BLOCK // 2)
                else:
                    rows = (rows or BLOCK) // 2
                draw = self._drawer(network, self.fitted.codec, device, length, sampling, say, rows)
                make_room()
                say(f"the GPU's memory is full: {rows or batch:,} stays are drawn at once from now on")
                continue
            yield start, encoded
            start += batch

    def save(self, path: str | Path) -> None:
        fitted = self.fitted
        facts = {"generator": self.name, "seed": fitted.seed, "data_sha256": fitted.data_sha256}
        run = Run.create(Path(path), self.settings, fitted.codec, facts)
        run.finish(fitted.network.state_dict(), updates=self.settings.training.steps)

    @classmethod
    def load(cls, path: str | Path, say: Say = unheard) -> Self:
        run = Run.open(Path(path))
        settings: Any = run.settings
        model = cls(settings=settings)
        weights = run.weights(say)
        network = model._network(run.codec)
        try:
            network.load_state_dict(weights)
        except RuntimeError as error:
            raise TimeDiffError(f"the run folder {path} is damaged: its weights do not fit its settings.") from error
        provenance = run.provenance
        model._fitted = Fitted(run.codec, network.eval(), provenance.get("seed", 0), provenance.get("data_sha256", ""))
        return model

    def _codec(self, cohort: Cohort) -> Codec:
        batch = self._given.training.batch_for(len(cohort))
        if len(cohort) < batch:
            raise TimeDiffError(
                f"the cohort has {len(cohort)} stays, fewer than one batch of {batch}: "
                f"add --set training.batch={len(cohort)} or less, or more stays."
            )
        refuse_ragged(cohort)
        return Codec.fit(cohort, self.settings.codec)

    def _run_folder(self, path: Path, codec: Codec, facts: dict[str, Any], resume: bool, first: bool) -> Run:
        if first and not (resume and path.exists()):  # resuming a run that never began is beginning it
            return Run.create(path, self.settings, codec, facts)
        run = Run.open(path)
        if run.generator != self.name:
            raise TimeDiffError(f"{path} is a run of {run.generator}, not of {self.name}: resume it as what it is.")
        if run.provenance.get("data_sha256") != facts["data_sha256"] or run.provenance.get("seed") != facts["seed"]:
            raise TimeDiffError(
                f"{path} was started on other data or with another seed: resume with the same cohort and seed."
            )
        different = {k: v for k, v in run.settings.differences(self.settings).items() if not k.startswith("sampling.")}
        if different:
            shown = "; ".join(f"{key} was {was!r}, now {now!r}" for key, (was, now) in different.items())
            raise TimeDiffError(f"{path} was started with other settings ({shown}): resume without changing them.")
        return run

    def _sampling(self, options: Mapping[str, Any]) -> Any:
        given = {key: value for key, value in options.items() if value is not None}
        known = [field.name for field in fields(self.settings.sampling)]
        unknown = [key for key in given if key not in known]
        if unknown:
            raise TimeDiffError(
                f"{self.name} is not sampled with {' or '.join(unknown)}: what can be chosen is {', '.join(known)}."
            )
        return self.settings.updated({"sampling": given}, "sampling").sampling

    def _held_out(self, cohort: Cohort, seed: int) -> tuple[Cohort, Cohort | None]:
        """The stays to learn from, and those that say when to stop; none of few."""
        training = self.settings.training
        if len(cohort) * training.validation < FEWEST_HELD_OUT:
            return cohort, None
        learnt, held_out = cohort.split(training.validation, seed=seed, by="random")
        return (learnt, held_out) if len(learnt) >= training.batch_for(len(learnt)) else (cohort, None)

    def _network(self, codec: Codec, seed: int = 0) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_torch("weights", seed))
            return self._build(codec)


def compute_batch(n: int, length: int, sampling: Any, device: torch.device) -> int:
    """Stays to draw at once, whole blocks: as set, or as many as are worth it, shared evenly among the batches."""
    given: int | None = sampling.batch
    if given:
        return BLOCK * -(-given // BLOCK)
    most = 1
    if device.type == "cuda":
        most = CELLS_AT_ONCE // length
        if sampling.precision == "float16":
            gpu = torch.cuda.get_device_properties(device)
            most = min(STAYS_EACH * gpu.multi_processor_count, gpu.total_memory // (MEMORY_EACH * length))
    blocks = max(1, -(-n // BLOCK))
    return BLOCK * -(-blocks // -(-blocks // max(1, most // BLOCK)))


def _tensors(encoded: Encoded) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(encoded.continuous), torch.from_numpy(encoded.discrete)
