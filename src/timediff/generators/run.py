"""The run folder: what a fit leaves behind, and all that sampling needs. It holds no training stay, unless asked to."""

import json
import os
import platform
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from timediff.data.codec import Codec
from timediff.data.schema import Schema
from timediff.errors import Problems, TimeDiffError
from timediff.generators.migration import settings_of_format_1, weights_of_format_1
from timediff.runtime.files import new_folder, sha256, write_atomically
from timediff.runtime.progress import Say
from timediff.settings.base import GeneratorSettings, NeuralSettings
from timediff.training.checkpoints import Checkpoints

FORMAT = 2


@dataclass(frozen=True)
class Run:
    path: Path
    settings: GeneratorSettings
    schema: Schema  # of what is generated
    provenance: dict[str, Any]

    @staticmethod
    def create(
        path: Path, settings: GeneratorSettings, schema: Schema, provenance: dict[str, Any], codec: Codec | None = None
    ) -> "Run":
        provenance = {"format": FORMAT, **provenance, **_surroundings()}
        with new_folder(path) as folder:
            (folder / "settings.toml").write_text(settings.to_toml())
            (folder / "schema.toml").write_text(schema.to_toml())
            if codec:
                (folder / "codec.json").write_text(codec.to_json())
            (folder / "provenance.json").write_text(json.dumps(provenance, indent=2))
        return Run(path, settings, schema, provenance)

    @staticmethod
    def open(path: Path) -> "Run":
        from timediff.generators.registry import GENERATORS

        if not (path / "provenance.json").is_file():
            raise TimeDiffError(f"{path} is not a run folder: `timediff fit` writes one, with a provenance.json in it.")
        try:
            provenance = json.loads((path / "provenance.json").read_text())
            version, generator = provenance["format"], provenance.get("generator", "")
            if version > FORMAT:
                raise TimeDiffError(
                    f"{path} was written by TimeDiff {provenance.get('version', '(unknown)')} in run format {version}; "
                    f"this one reads up to {FORMAT}: install a newer TimeDiff."
                )
            table = tomllib.loads((path / "settings.toml").read_text())
            table = settings_of_format_1(table, generator) if version == 1 else table
            settings = GENERATORS(generator).Settings().updated(table, str(path / "settings.toml"))
            schema = Schema.from_toml((path / "schema.toml").read_text(), str(path / "schema.toml"))
            run = Run(path, settings, schema, provenance)
            return run._sized() if isinstance(settings, NeuralSettings) else run
        except (OSError, ValueError, KeyError, TypeError, AttributeError, Problems) as error:
            raise _damaged(path, error) from error

    def _sized(self) -> "Run":
        """With what the cohort had decided, where an earlier version did not write it down."""
        assert isinstance(self.settings, NeuralSettings)
        settings = self.settings.for_cohort(self.provenance.get("stays", 0), self.codec().layout)
        return Run(self.path, settings, self.schema, self.provenance)

    @property
    def generator(self) -> str:
        return str(self.provenance["generator"])

    @staticmethod
    def seed_of(path: Path) -> int | None:
        """The seed that a run was started with; None where there is no run yet."""
        return Run.open(path).provenance.get("seed") if path.exists() else None

    def codec(self) -> Codec:
        return Codec.from_json((self.path / "codec.json").read_text(), self.schema)

    def finish(self, weights: Mapping[str, Tensor], **facts: Any) -> None:
        """Writes the weights that are sampled from, and what is known of the run only at its end."""
        content = save({name: value.detach().cpu().contiguous() for name, value in weights.items()})
        write_atomically(self.path / "weights.safetensors", content)
        self.note(**facts, weights_sha256=sha256(self.path / "weights.safetensors"))

    def note(self, **facts: Any) -> None:
        """Adds to what is known of the run."""
        self.provenance.update(facts)
        write_atomically(self.path / "provenance.json", json.dumps(self.provenance, indent=2))

    def weights(self, say: Say) -> dict[str, Tensor]:
        """The final weights; of an unfinished run those of its newest checkpoint, which is said."""
        weights = self._weights(say)
        if self.provenance["format"] == 1:
            return weights_of_format_1(weights, self.generator, self.settings)
        return weights

    def _weights(self, say: Say) -> dict[str, Tensor]:
        path = self.path / "weights.safetensors"
        expected = self.provenance.get("weights_sha256")
        if expected is None:
            checkpoint = Checkpoints(self.path / "checkpoints").newest(say)
            if checkpoint is None:
                raise TimeDiffError(
                    f"the run {self.path} has no weights yet: continue it with `timediff fit … --resume`."
                )
            total = self.settings.training.steps if isinstance(self.settings, NeuralSettings) else checkpoint.step
            say(f"this run stopped at update {checkpoint.step:,} of {total:,}")
            return checkpoint.parts["ema"]
        try:
            if sha256(path) != expected:
                raise ValueError("weights.safetensors is not what was written")
            return load_file(path)
        except (OSError, ValueError, SafetensorError) as error:
            raise _damaged(self.path, error) from error


def _damaged(path: Path, error: Exception) -> TimeDiffError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
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
