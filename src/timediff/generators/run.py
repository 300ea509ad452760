"""The run folder: what a fit leaves behind, and all that sampling needs. It holds no training stay, unless asked to.

provenance.json carries the SHA-256 of the files beside it, and of its own content: one rename makes a change whole.
"""

import hashlib
import json
import os
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from timediff.data.codec import Codec
from timediff.data.schema import Schema
from timediff.errors import TimeDiffError, listed
from timediff.generators.migration import (
    generator_of_today,
    settings_as_written,
    settings_of_format_1,
    weights_of_format_1,
)
from timediff.runtime.files import new_folder, write_atomically
from timediff.runtime.manifest import Differences, compared
from timediff.runtime.parsing import Unreadable, read_json, read_text, read_toml
from timediff.runtime.progress import Say, unheard
from timediff.runtime.registry import PLUGINS
from timediff.runtime.seeding import MAX_SEED
from timediff.runtime.stored import restored
from timediff.settings.base import GeneratorSettings, NeuralSettings
from timediff.training.checkpoints import Checkpoints
from timediff.training.log import read_log

FORMAT = 4
HASHED = 3  # the first format whose files are hashed
PROVENANCE, WEIGHTS, LOG = "provenance.json", "weights.safetensors", "log.jsonl"

History = list[dict[str, float]]  # losses, by their names, and the update after which they were: "step"


@dataclass(frozen=True)
class Provenance:
    """What of provenance.json is relied on; all else in it is for people."""

    format: int
    generator: str
    version: str = "(unknown)"
    seed: int | None = None
    stays: int | None = None
    data_sha256: str | None = None
    seconds: float = 0
    weights_sha256: str | None = None  # unset = the run is not finished
    files: dict[str, str] = field(default_factory=dict)  # SHA-256 of what is written once
    edited: list[str] = field(default_factory=list)  # files that someone had changed when the run was resumed
    sha256: str = ""  # of all that is in provenance.json but this

    @staticmethod
    def read(table: Any, where: str) -> "Provenance":
        if not isinstance(table, dict):
            raise Unreadable(f"{where} is not a table.")
        names = {field.name for field in fields(Provenance)}
        known = restored(Provenance, {key: value for key, value in table.items() if key in names}, where)
        if known.format < 1 or not 0 <= (known.seed or 0) <= MAX_SEED or min(known.stays or 0, known.seconds) < 0:
            raise Unreadable(f"{where} holds a format, a seed, or a number of stays or seconds that cannot be.")
        return known


@dataclass(frozen=True)
class Run:
    path: Path
    settings: GeneratorSettings
    schema: Schema  # of what is generated
    provenance: dict[str, Any]
    differences: Differences = field(default_factory=Differences)

    @staticmethod
    def create(
        path: Path, settings: GeneratorSettings, schema: Schema, provenance: dict[str, Any], codec: Codec | None = None
    ) -> "Run":
        texts = {"settings.toml": settings.to_toml(), "schema.toml": schema.to_toml()}
        if codec:
            texts["codec.json"] = codec.to_json()
        hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}
        provenance = {"format": FORMAT, **provenance, **_surroundings(), "files": hashes}
        with new_folder(path) as folder:
            for name, text in (texts | {PROVENANCE: _sealed(provenance)}).items():
                (folder / name).write_bytes(text.encode())
        return Run(path, settings, schema, provenance)

    @staticmethod
    def open(path: Path, *, allow_edited: bool = False, say: Say = unheard) -> "Run":
        """A run folder that is as it was written, or may be edited; `say` hears what cannot be relied on."""
        from timediff.generators.registry import GENERATORS

        if not (path / PROVENANCE).is_file():
            raise TimeDiffError(f"{path} is not a run folder: `timediff fit` writes one, with a provenance.json in it.")
        if (path / "series.parquet").is_file():
            raise TimeDiffError(f"{path} is not a run folder but a synthetic cohort: give the run it was sampled from.")
        try:
            table = read_json(path / PROVENANCE)
            known = Provenance.read(table, PROVENANCE)
        except TimeDiffError as error:
            raise _damaged(path, error) from error
        if known.format > FORMAT:
            raise TimeDiffError(
                f"{path} was written by TimeDiff {known.version} in run format {known.format}; "
                f"this one reads up to {FORMAT}: install a newer TimeDiff."
            )
        found = differences(path, table, known)
        if found and not allow_edited:
            raise TimeDiffError(
                f"the run folder {path} was edited or damaged since it was written ({found}): restore it, fit again, "
                "or add --allow-edited to use it as it is."
            )
        if found:
            say(f"{path} is not as it was written ({found})")
        elif known.format < HASHED:
            say(f"{path} was written before files of a run were hashed (format {known.format}): it cannot be checked")
        generator = generator_of_today(known.generator, known.format)
        if generator != known.generator:
            say(f"{path} is of the generator that was called {known.generator}: it is called {generator} now")
        if generator not in GENERATORS:
            raise TimeDiffError(
                f"{path} cannot be loaded: there is no generator {generator!r} here. Install the package that "
                f"has it, or name its module in {PLUGINS}."
            )
        if absent := _absent(GENERATORS(generator).Settings(), path / "settings.toml"):
            raise TimeDiffError(
                f"{path} cannot be loaded: {absent} Install the package that has it, or name its module in {PLUGINS}."
            )
        kind = GENERATORS(generator).Settings
        try:
            settings_table = read_toml(path / "settings.toml")
            if known.format == 1:
                settings_table = settings_of_format_1(settings_table, generator)
            settings = kind().updated(settings_as_written(settings_table, generator), "settings.toml")
            schema = Schema.from_toml(read_text(path / "schema.toml"), "schema.toml")
            run = Run(path, settings, schema, table, found)
            return run._sized() if isinstance(settings, NeuralSettings) else run
        except TimeDiffError as error:
            raise _damaged(path, error) from error

    def _sized(self) -> "Run":
        """With what the cohort had decided, where an earlier version did not write it down."""
        assert isinstance(self.settings, NeuralSettings)
        settings = self.settings.for_cohort(self.provenance.get("stays") or 0, self.codec().layout)
        return Run(self.path, settings, self.schema, self.provenance, self.differences)

    @property
    def generator(self) -> str:
        return generator_of_today(str(self.provenance["generator"]), self.provenance["format"])

    @staticmethod
    def seed_of(path: Path, *, allow_edited: bool = False) -> int | None:
        """The seed that a run was started with; None where there is no run yet."""
        return Run.open(path, allow_edited=allow_edited).provenance.get("seed") if path.exists() else None

    def codec(self) -> Codec:
        return Codec.from_json(read_text(self.path / "codec.json"), self.schema, "codec.json")

    def finish(self, weights: Mapping[str, Tensor], **facts: Any) -> None:
        """Writes the weights that are sampled from, and what is known of the run only at its end."""
        content = save({name: value.detach().cpu().contiguous() for name, value in weights.items()})
        digest = hashlib.sha256(content).hexdigest()
        if self.provenance.get("weights_sha256") not in (None, digest):
            self.note(weights_sha256=None)  # until the others are noted, the checkpoints are what counts
        write_atomically(self.path / WEIGHTS, content)
        self.note(**facts, weights_sha256=digest)

    def note(self, **facts: Any) -> None:
        """Adds to what is known of the run."""
        self.provenance.update(facts)
        write_atomically(self.path / PROVENANCE, _sealed(self.provenance))

    @property
    def finished(self) -> bool:
        return self.provenance.get("weights_sha256") is not None

    def history(self) -> History:
        """The losses of its log, of the updates that led to its weights."""
        lines = read_log(self.path / LOG) if (self.path / LOG).is_file() else []
        return [{key: value for key, value in line.items() if key != "resumed_from"} for line in lines]

    def weights(self, say: Say) -> dict[str, Tensor]:
        """The final weights; of an unfinished run those of its newest checkpoint, which is said."""
        weights = self._weights(say)
        if isinstance(self.settings, NeuralSettings):  # others may keep NaN, where a value is missing
            broken = [name for name, value in weights.items() if not torch.isfinite(value).all()]
            if broken:
                raise TimeDiffError(
                    f"the weights of the run {self.path} hold numbers that are not finite ({listed(broken)}): "
                    "fit again, or restore it."
                )
        if self.provenance["format"] == 1:
            return weights_of_format_1(weights, self.generator, self.settings)
        return weights

    def _weights(self, say: Say) -> dict[str, Tensor]:
        if not self.finished:
            checkpoint = Checkpoints(self.path / "checkpoints").newest(say)
            if checkpoint is None or "ema" not in checkpoint.parts:
                raise TimeDiffError(
                    f"the run {self.path} has no weights yet: continue it with `timediff fit … --resume`."
                )
            total = self.settings.training.steps if isinstance(self.settings, NeuralSettings) else checkpoint.step
            say(f"this run stopped at update {checkpoint.step:,} of {total:,}")
            return checkpoint.parts["ema"]
        try:
            return load_file(self.path / WEIGHTS)
        except (OSError, ValueError, SafetensorError) as error:
            raise _damaged(self.path, error) from error


def differences(path: Path, table: Mapping[str, Any], known: Provenance) -> Differences:
    """How a run folder differs from what was written, as far as its format can tell."""
    weights = {} if known.weights_sha256 is None else {WEIGHTS: known.weights_sha256}
    if known.format < HASHED:
        return compared(path, weights)
    found = compared(path, known.files | weights)
    own = () if known.sha256 == _seal(table) else (PROVENANCE,)
    return Differences(found.changed + own, found.missing)


def _absent(settings: GeneratorSettings, file: Path) -> str:
    """Why a part that the settings choose by name, such as a network, is not here; empty where all are."""
    try:
        table = read_toml(file)
    except TimeDiffError:  # which is told as damage
        return ""
    for one in fields(settings):
        kind = type(getattr(settings, one.name))
        chosen = table.get(one.name)
        name = chosen.get(getattr(kind, "choose_by", "")) if isinstance(chosen, dict) else None
        try:
            if isinstance(name, str):
                kind.choose(name)
        except TimeDiffError as error:
            return str(error)
    return ""


def _sealed(provenance: Mapping[str, Any]) -> str:
    """The text of provenance.json, with the hash of its content."""
    content = {key: value for key, value in provenance.items() if key != "sha256"}
    if content["format"] >= HASHED:
        content["sha256"] = _seal(content)
    return json.dumps(content, indent=2)


def _seal(provenance: Mapping[str, Any]) -> str:
    content = {key: value for key, value in provenance.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _damaged(path: Path, error: Exception) -> TimeDiffError:
    reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    return TimeDiffError(f"the run folder {path} is damaged ({reason}): fit again, or restore it.")


def _surroundings() -> dict[str, Any]:
    """Version, hardware and time; no name of a machine or a person."""
    from timediff import __version__

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
    return {
        "version": __version__,
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": device,
        "cpus": os.cpu_count(),
    }
