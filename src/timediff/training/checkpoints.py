"""Checkpoints: folders of safetensors with a manifest of their hashes, there whole or not at all."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from timediff.runtime.files import explained, sha256, write_through
from timediff.runtime.manifest import compared
from timediff.runtime.parsing import read_json
from timediff.runtime.stored import restored

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    step: int
    parts: dict[str, dict[str, Tensor]]


@dataclass(frozen=True)
class CheckpointManifest:
    step: int
    sha256: dict[str, str]  # by part


@dataclass(frozen=True)
class Checkpoints:
    """The folder `checkpoints/` of a run; the newest `keep` are kept."""

    folder: Path
    keep: int = 2

    def write(self, step: int, parts: Mapping[str, Tensors]) -> None:
        target = self.folder / _name(step)
        partial = self.folder / f".{target.name}.partial-{os.getpid()}"
        with explained(target, kept="The checkpoints before it are kept, and --resume goes on from there"):
            for abandoned in self.folder.glob(".step-*.partial-*"):  # of killed processes: one alone writes here
                shutil.rmtree(abandoned, ignore_errors=True)
            partial.mkdir(parents=True)
            try:
                for name, tensors in parts.items():
                    content = save({key: value.detach().cpu().contiguous() for key, value in tensors.items()})
                    write_through(partial / f"{name}.safetensors", content)
                hashes = {name: sha256(partial / f"{name}.safetensors") for name in parts}
                write_through(partial / "manifest.json", json.dumps({"step": step, "sha256": hashes}, indent=2))
                shutil.rmtree(target, ignore_errors=True)  # one of the same step, damaged or older
                partial.replace(target)
            except BaseException:
                shutil.rmtree(partial, ignore_errors=True)
                raise
        for old in self._newest_first()[self.keep :]:
            shutil.rmtree(old, ignore_errors=True)

    def newest(self, skipped: Callable[[str], None]) -> Checkpoint | None:
        """The newest sound checkpoint; each damaged one on the way is named to `skipped`."""
        for path in self._newest_first():
            if found := _sound(path, skipped):
                return found
        return None

    def damages(self) -> list[str]:
        """What is wrong with each checkpoint that is not as it was written."""
        found: list[str] = []
        for path in self._newest_first():
            _sound(path, found.append)
        return found

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"), reverse=True)


def _sound(path: Path, skipped: Callable[[str], None]) -> Checkpoint | None:
    try:
        return _read(path)
    except (OSError, ValueError, SafetensorError) as error:
        reason = " ".join(str(error).split()).rstrip(".") or type(error).__name__
        skipped(f"the checkpoint {path.name} is damaged ({reason}) and is skipped")
        return None


def _read(path: Path) -> Checkpoint:
    if not (path / "manifest.json").is_file():
        raise ValueError("it has no manifest")
    manifest = restored(CheckpointManifest, read_json(path / "manifest.json"), "manifest.json")
    if path.name != _name(manifest.step):
        raise ValueError(f"its manifest is of update {manifest.step:,}")
    if found := compared(path, {f"{part}.safetensors": digest for part, digest in manifest.sha256.items()}):
        raise ValueError(f"not what was written: {found}")
    return Checkpoint(manifest.step, {part: load_file(path / f"{part}.safetensors") for part in manifest.sha256})


def _name(step: int) -> str:
    return f"step-{step:09d}"
