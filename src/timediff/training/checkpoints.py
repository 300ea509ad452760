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

Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Checkpoint:
    step: int
    parts: dict[str, dict[str, Tensor]]


@dataclass(frozen=True)
class Checkpoints:
    """The folder `checkpoints/` of a run; the newest `keep` are kept."""

    folder: Path
    keep: int = 2

    def write(self, step: int, parts: Mapping[str, Tensors]) -> None:
        target = self.folder / f"step-{step:09d}"
        partial = self.folder / f".{target.name}.partial-{os.getpid()}"
        with explained(target, kept="The checkpoints before it are kept, and --resume goes on from there"):
            shutil.rmtree(partial, ignore_errors=True)
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
            try:
                return _read(path)
            except (OSError, ValueError, KeyError, SafetensorError) as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                skipped(f"the checkpoint {path.name} is damaged ({reason}) and is skipped")
        return None

    def _newest_first(self) -> list[Path]:
        return sorted(self.folder.glob("step-*"), reverse=True)


def _read(path: Path) -> Checkpoint:
    if not (path / "manifest.json").is_file():
        raise ValueError("it has no manifest")
    manifest = json.loads((path / "manifest.json").read_text())
    parts = {}
    for name, expected in manifest["sha256"].items():
        file = path / f"{name}.safetensors"
        if not file.is_file():
            raise ValueError(f"{file.name} is missing")
        if sha256(file) != expected:
            raise ValueError(f"{file.name} is not what was written")
        parts[name] = load_file(file)
    return Checkpoint(int(manifest["step"]), parts)
