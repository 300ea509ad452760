"""TimeDiff: mixed diffusion of vital signs, missingness, static values and outcome together, by a bidirectional RNN."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from timediff import devices
from timediff.ahead import ahead
from timediff.capture import gpu_failures, is_full, make_room
from timediff.codec import Codec, Encoded, refuse_ragged
from timediff.cohort import Cohort
from timediff.config import DEFAULT_PRESET, SamplingSettings, Settings, resolve
from timediff.diffusion.mixed import MixedDiffusion
from timediff.diffusion.samplers import SAMPLERS
from timediff.diffusion.schedules import SCHEDULES
from timediff.diffusion.staged import StagedDiffusion
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.run import Run
from timediff.networks.brnn import BidirectionalRNN
from timediff.networks.chain import Chain
from timediff.networks.inference import arithmetic, fastest
from timediff.networks.staged import StagedNetwork
from timediff.progress import Progress, Say, silent, unheard
from timediff.randomness import BLOCK, Noise, sampling_noise, seed_torch
from timediff.schema import Schema
from timediff.training.loop import make_accelerator, train

WIDTHS = ((2000, 256), (0, 64))  # from so many stays to learn from: the width of each direction, where it is unset
LEARNING = 0.5  # learning rate × width, where training.lr is unset: a narrow network takes larger steps
FEWEST_HELD_OUT = 20  # stays; the loss of fewer would not say when to stop
CELLS_AT_ONCE = 500_000  # stays × steps that keep a GPU busy; a CPU computes a block at a time


@dataclass
class Fitted:
    codec: Codec
    network: nn.Module
    seed: int
    data_sha256: str


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
        self, n: int, seed: int, skip: int, length: int, progress: Progress, say: Say, sampling: SamplingSettings
    ) -> Iterator[Cohort]:
        codec, device = self.fitted.codec, devices.device()
        drawn = self._drawn(n, seed, skip, length, progress, say, sampling, device)
        # Values are brought back to their units, and written, while the GPU draws the next.
        for start, encoded in ahead(drawn) if device.type == "cuda" else drawn:
            yield codec.decode(encoded, first_id=start)

    def _drawn(
        self, n: int, seed: int, skip: int, length: int, progress: Progress, say: Say, sampling: SamplingSettings,
        device: torch.device,
    ) -> Iterator[tuple[int, Encoded]]:  # fmt: skip
        """Compute batches as they come from the sampler, each with the number of its first stay."""
        with gpu_failures():
            if device.type == "cuda" and device.index is not None:  # of a thread it is the first unless it is told
                torch.cuda.set_device(device)
            network = self.fitted.network.to(device)
            process = self._process(self.fitted.codec, device)
        sampler = SAMPLERS[self.settings.diffusion.process][sampling.sampler]
        steps = process.schedule(sampling.steps, length)
        batch, start = _compute_batch(n, length, sampling.batch, device), skip
        done = begun = 0  # network calls, and those before the batch in hand
        calls = fastest(network, device, length, sampling.precision, say)

        def tick() -> None:
            nonlocal done
            done += 1
            progress(done, begun + -(-(n - start) // batch) * len(steps))

        while start < n:
            begun = done
            noise = sampling_noise(seed, start // BLOCK, min(batch, n - start), device)
            try:
                with torch.inference_mode(), arithmetic("float32"), gpu_failures():
                    x, c = sampler(process, calls, noise, length, steps, tick=tick)
                    encoded = Encoded(x.cpu().numpy(), c.to(torch.int32).cpu().numpy())
            except RuntimeError as error:
                if batch == BLOCK or not is_full(error):
                    raise
                encoded = None
            if encoded is None:  # outside of the handler, which keeps what was half computed alive
                batch = BLOCK * -(-batch // BLOCK // 2)
                calls = fastest(network, device, length, sampling.precision, say)
                make_room()
                say(f"the GPU's memory is full: {batch:,} stays are drawn at once from now on")
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


def _compute_batch(n: int, length: int, given: int | None, device: torch.device) -> int:
    """Stays to draw at once, whole blocks: as set, or as many as are worth it, shared evenly among the batches."""
    if given:
        return BLOCK * -(-given // BLOCK)
    most = max(1, CELLS_AT_ONCE // (BLOCK * length)) if device.type == "cuda" else 1
    blocks = -(-n // BLOCK)
    return BLOCK * -(-blocks // -(-blocks // most))


def _tensors(encoded: Encoded) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(encoded.continuous), torch.from_numpy(encoded.discrete)
