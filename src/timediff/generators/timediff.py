"""TimeDiff: mixed diffusion of vital signs, missingness, static values and outcome together, by a bidirectional RNN."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from timediff.codec import Codec, Encoded, refuse_ragged
from timediff.cohort import Cohort
from timediff.config import DEFAULT_PRESET, SamplingSettings, Settings, resolve
from timediff.diffusion.mixed import Denoiser, MixedDiffusion
from timediff.diffusion.samplers import SAMPLERS
from timediff.diffusion.schedules import SCHEDULES
from timediff.diffusion.staged import StagedDiffusion
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.run import Run
from timediff.networks.brnn import BidirectionalRNN
from timediff.networks.chain import Chain
from timediff.networks.staged import StagedNetwork
from timediff.progress import Progress, Say, silent, unheard
from timediff.randomness import BLOCK, Noise, sampling_noise, seed_torch
from timediff.schema import Schema
from timediff.training.loop import make_accelerator, train

WIDTHS = ((2000, 256), (0, 64))  # from so many stays to learn from: the width of each direction, where it is unset
LEARNING = 0.5  # learning rate × width, where training.lr is unset: a narrow network takes larger steps
FEWEST_HELD_OUT = 20  # stays; the loss of fewer would not say when to stop
BLOCKS_AT_ONCE = {"cpu": 1, "cuda": 20}
CACHED_CELLS = 9000  # stays × steps; on two cores 72-step stays sample 1.7 times as fast as 500 stays at once


@dataclass
class Fitted:
    codec: Codec
    network: nn.Module
    seed: int
    data_sha256: str


def in_slices(network: nn.Module, rows: int) -> Denoiser:
    """The network on a few stays at a time: what a CPU's cache holds is done sooner than the whole batch at once."""

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        return torch.cat([network(x[i : i + rows], t[i : i + rows]) for i in range(0, len(x), rows)])

    return denoise


@contextmanager
def full_precision() -> Iterator[None]:
    """No TF32: its rounding depends on the batch, and a rounded probability now and then flips a class."""
    switches: list[Any] = [torch.backends.cudnn, torch.backends.cuda.matmul]
    before = [switch.allow_tf32 for switch in switches]
    for switch in switches:
        switch.allow_tf32 = False
    try:
        yield
    finally:
        for switch, value in zip(switches, before, strict=True):
            switch.allow_tf32 = value


@dataclass
class Sliced:
    """A StagedNetwork whose RNN works on a few stays at a time."""

    rnn: Denoiser
    cells: Chain
    stay: Chain


class TimeDiff(Generator):
    """TimeDiff(preset="fast").fit(train, seed=0).sample(20_000, seed=1)."""

    name: ClassVar[str] = "timediff"

    def __init__(
        self,
        preset: str = DEFAULT_PRESET,
        *,
        settings: Settings | None = None,
        assignments: Mapping[str, Any] | None = None,
    ) -> None:
        self.settings = self._given = settings or resolve(preset, assignments=assignments)
        self._fitted: Fitted | None = None

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
            "width of each direction": self._hidden(codec),
            "parameters": sum(p.numel() for p in network.parameters()),
            "updates": self.settings.training.steps,
            "stays an update": self.settings.training.batch_for(len(cohort)) * self.settings.training.accumulate,
        }

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
            with accelerator.main_process_first():
                folder = self._run_folder(Path(run), codec, facts, resume, accelerator.is_main_process)
        network = self._network(codec, seed)
        process = self._process(codec, accelerator.device)
        learnt, held_out = self._held_out(cohort, seed)
        data = _tensors(codec.encode(learnt))

        def objective(denoise: nn.Module, batch: tuple[Tensor, ...], noise: Noise) -> dict[str, Tensor]:
            x0, c0 = batch
            losses = process.loss(denoise, x0, c0.long(), process.times(noise), noise)
            return losses._asdict()

        started = time.monotonic()
        weights = train(
            network, objective, data, self.settings.training, seed=seed, accelerator=accelerator,
            folder=folder.path if folder else None, progress=progress, say=say,
            held_out=_tensors(codec.encode(held_out)) if held_out else None,
        )  # fmt: skip
        # A new network: the trained one is wrapped for its precision, and sampling is always in single.
        averaged = self._network(codec)
        averaged.load_state_dict(weights)
        self._fitted = Fitted(codec, averaged.eval(), seed, digest)
        if folder and accelerator.is_main_process:
            seconds = folder.provenance.get("seconds", 0) + time.monotonic() - started
            folder.finish(weights, updates=self.settings.training.steps, seconds=round(seconds, 1))
        return self

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
        """Stays skip … n − 1 a compute batch at a time; options are those of [sampling], such as steps=50."""
        if skip % BLOCK:
            raise ValueError(
                f"skip is {skip}; noise belongs to blocks of {BLOCK} stays, so expected a multiple of that"
            )
        return self._parts(n, seed, skip, length or self.schema.steps, progress, self._sampling(options))

    def _parts(
        self, n: int, seed: int, skip: int, length: int, progress: Progress, sampling: SamplingSettings
    ) -> Iterator[Cohort]:
        codec, network = self.fitted.codec, self.fitted.network
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        network.to(device)
        process = self._process(codec, device)
        calls = network if device.type == "cuda" else _sliced(network, max(32, CACHED_CELLS // length))
        steps = process.schedule(sampling.steps, length)
        batch = BLOCK * (-(-sampling.batch // BLOCK) if sampling.batch else BLOCKS_AT_ONCE[device.type])
        starts = range(skip, n, batch)
        done, total = 0, len(starts) * len(steps)

        def tick() -> None:
            nonlocal done
            done += 1
            progress(done, total)

        for start in starts:
            noise = sampling_noise(seed, start // BLOCK, min(batch, n - start), device)
            with torch.inference_mode(), full_precision():
                sampler = SAMPLERS[self.settings.diffusion.process][sampling.sampler]
                x, c = sampler(process, calls, noise, length, steps, tick=tick)
            yield codec.decode(Encoded(x.cpu().numpy(), c.to(torch.int32).cpu().numpy()), first_id=start)

    def save(self, path: str | Path) -> None:
        fitted = self.fitted
        facts = {"generator": self.name, "seed": fitted.seed, "data_sha256": fitted.data_sha256}
        run = Run.create(Path(path), self.settings, fitted.codec, facts)
        run.finish(fitted.network.state_dict(), updates=self.settings.training.steps)

    @classmethod
    def load(cls, path: str | Path, say: Say = unheard) -> Self:
        run = Run.open(Path(path))
        model = cls(settings=run.settings)
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
        if run.provenance.get("data_sha256") != facts["data_sha256"] or run.provenance.get("seed") != facts["seed"]:
            raise TimeDiffError(
                f"{path} was started on other data or with another seed: resume with the same cohort and seed."
            )
        different = {k: v for k, v in run.settings.differences(self.settings).items() if not k.startswith("sampling.")}
        if different:
            shown = "; ".join(f"{key} was {was!r}, now {now!r}" for key, (was, now) in different.items())
            raise TimeDiffError(f"{path} was started with other settings ({shown}): resume without changing them.")
        return run

    def _sampling(self, options: Mapping[str, Any]) -> SamplingSettings:
        given = {key: value for key, value in options.items() if value is not None}
        return self.settings.updated({"sampling": given}, "sampling").sampling

    def _sized(self, cohort: Cohort, codec: Codec) -> Settings:
        """The given settings with what the cohort decides: batch, width (of `edm`), and by it the learning rate."""
        training, model = self._given.training, self._given.model
        stays = round(len(cohort) * (1 - training.validation))
        if self.settings.diffusion.process == "edm" and model.hidden is None:
            model = replace(model, hidden=next(width for least, width in WIDTHS if stays >= least))
        lr = LEARNING / (model.hidden or self._hidden(codec)) if training.lr is None else training.lr
        training = replace(training, batch=training.batch_for(stays), lr=lr)
        return replace(self._given, training=training, model=model)

    def _hidden(self, codec: Codec) -> int:
        width = len(codec.continuous) + sum(codec.classes)
        return self.settings.model.hidden or 4 * width

    def _held_out(self, cohort: Cohort, seed: int) -> tuple[Cohort, Cohort | None]:
        """The stays to learn from, and those that say when to stop; none of few."""
        training = self.settings.training
        if len(cohort) * training.validation < FEWEST_HELD_OUT:
            return cohort, None
        learnt, held_out = cohort.split(training.validation, seed=seed, by="random")
        return (learnt, held_out) if len(learnt) >= training.batch_for(len(learnt)) else (cohort, None)

    def _network(self, codec: Codec, seed: int = 0) -> nn.Module:
        model, process = self.settings.model, self._process(codec, "cpu")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed_torch("weights", seed))
            build = partial(
                BidirectionalRNN, hidden=self._hidden(codec), layers=model.layers, cell=model.cell,
                dropout=model.dropout, early=model.early,
            )  # fmt: skip
            if isinstance(process, MixedDiffusion):
                return build(process.width)
            cells = Chain(process.cells, joint=self.settings.diffusion.cells == "joint")
            rnn = build(process.inputs, outputs=max(1, process.continuous + cells.width))
            return StagedNetwork(rnn, cells, Chain(process.stay))

    def _process(self, codec: Codec, device: torch.device | str) -> MixedDiffusion | StagedDiffusion:
        diffusion, continuous = self.settings.diffusion, len(codec.continuous)
        if diffusion.process == "edm":
            whole = tuple(codec.schema[channel.feature].scope == "static" for channel in codec.discrete)
            return StagedDiffusion(continuous, codec.classes, whole, diffusion.lambda_, device)
        alpha_bar = SCHEDULES[diffusion.schedule](diffusion.steps)
        return MixedDiffusion(continuous, codec.classes, alpha_bar, diffusion.lambda_, device)


def _sliced(network: nn.Module, rows: int) -> Denoiser | Sliced:
    if isinstance(network, StagedNetwork):
        return Sliced(in_slices(network.rnn, rows), network.cells, network.stay)
    return in_slices(network, rows)


def _tensors(encoded: Encoded) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(encoded.continuous), torch.from_numpy(encoded.discrete)
