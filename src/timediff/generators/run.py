"""The run folder: what a fit leaves behind, and all that sampling needs. It holds no training stay, unless asked to."""

import json
import os
import platform
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from timediff.codec import Codec
from timediff.config import AnySettings
from timediff.errors import Problems, TimeDiffError
from timediff.files import new_folder, sha256, write_atomically
from timediff.generators.registry import settings_type
from timediff.progress import Say
from timediff.schema import Schema
from timediff.training.checkpoints import Checkpoints

FORMAT = 1


@dataclass(frozen=True)
class Run:
    path: Path
    settings: AnySettings
    codec: Codec
    provenance: dict[str, Any]

    @staticmethod
    def create(path: Path, settings: AnySettings, codec: Codec, provenance: dict[str, Any]) -> "Run":
        provenance = {"format": FORMAT, **provenance, **_surroundings()}
        with new_folder(path) as folder:
            (folder / "settings.toml").write_text(settings.to_toml())
            (folder / "schema.toml").write_text(codec.schema.to_toml())
            (folder / "codec.json").write_text(codec.to_json())
            (folder / "provenance.json").write_text(json.dumps(provenance, indent=2))
        return Run(path, settings, codec, provenance)

    @staticmethod
    def open(path: Path) -> "Run":
        if not (path / "provenance.json").is_file():
            raise TimeDiffError(f"{path} is not a run folder: `timediff fit` writes one, with a provenance.json in it.")
        try:
            provenance = json.loads((path / "provenance.json").read_text())
            version = provenance["format"]
            if version > FORMAT:
                raise TimeDiffError(
                    f"{path} was written by TimeDiff {provenance.get('version', '(unknown)')} in run format {version}; "
                    f"this one reads up to {FORMAT}: install a newer TimeDiff."
                )
            settings = settings_type(provenance.get("generator", ""))().updated(
                tomllib.loads((path / "settings.toml").read_text()), str(path / "settings.toml")
            )
            schema = Schema.from_toml((path / "schema.toml").read_text(), str(path / "schema.toml"))
            codec = Codec.from_json((path / "codec.json").read_text(), schema)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, Problems) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise TimeDiffError(f"the run folder {path} is damaged ({reason}): fit again, or restore it.") from error
        return Run(path, settings, codec, provenance)

    @property
    def generator(self) -> str:
        return str(self.provenance["generator"])

    @staticmethod
    def seed_of(path: Path) -> int | None:
        """The seed that a run was started with; None where there is no run yet."""
        return Run.open(path).provenance.get("seed") if path.exists() else None

    def finish(self, weights: dict[str, Tensor], **facts: Any) -> None:
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
        path = self.path / "weights.safetensors"
        expected = self.provenance.get("weights_sha256")
        if expected is None:
            checkpoint = Checkpoints(self.path / "checkpoints").newest(say)
            if checkpoint is None:
                raise TimeDiffError(
                    f"the run {self.path} has no weights yet: continue it with `timediff fit … --resume`."
                )
            total = self.settings.training.steps
            say(f"this run stopped at update {checkpoint.step:,} of {total:,}")
            return checkpoint.parts["ema"]
        try:
            if sha256(path) != expected:
                raise ValueError("weights.safetensors is not what was written")
            return load_file(path)
        except (OSError, ValueError, SafetensorError) as error:
            raise TimeDiffError(
                f"the run folder {self.path} is damaged ({error}): fit again, or restore it."
            ) from error


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
