"""Manifests: the SHA-256 of each file of a folder, so that a later reader knows whether they are what was written."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from timediff.errors import listed
from timediff.runtime.files import sha256, write_atomically
from timediff.runtime.parsing import Unreadable, read_json
from timediff.runtime.stored import restored

NAME = "manifest.json"
FORMAT = 1
READ = {".json", ".toml", ".parquet", ".csv"}  # what TimeDiff reads: other files, such as a page, may come and go


@dataclass(frozen=True)
class Manifest:
    format: int
    kind: str
    files: dict[str, str]  # SHA-256 by path within the folder


@dataclass(frozen=True)
class Differences:
    """How a folder differs from what was written; true where it does."""

    changed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.missing or self.added)

    def __str__(self) -> str:
        found = {"changed": self.changed, "missing": self.missing, "added": self.added}
        return "; ".join(f"{what}: {listed(names)}" for what, names in found.items() if names)


def write_manifest(folder: Path, kind: str, also: Sequence[str] = ()) -> None:
    """Hashes what lies in the folder now, and writes its manifest; `also` are files that nothing reads again."""
    files = {name: sha256(folder / name) for name in sorted({*_files(folder), *also})}
    table = {"format": FORMAT, "kind": kind, "files": files}
    write_atomically(folder / NAME, json.dumps(table, indent=2))


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None without one, as earlier versions wrote folders."""
    path = folder / NAME
    if not path.exists():
        return None
    manifest = restored(Manifest, read_json(path), str(path))
    if manifest.format != FORMAT:
        raise Unreadable(f"{path} has format {manifest.format}; this version reads {FORMAT}.")
    return manifest


def differences(folder: Path, manifest: Manifest) -> Differences:
    """What has changed, gone or come since the manifest was written."""
    found = compared(folder, manifest.files)
    return Differences(found.changed, found.missing, tuple(sorted(set(_files(folder)) - set(manifest.files))))


def compared(folder: Path, hashes: Mapping[str, str]) -> Differences:
    """The files that these hashes name; whatever else lies in the folder is not looked at."""
    missing = [name for name in hashes if not _inside(name) or not (folder / name).is_file()]
    changed = [name for name in hashes if name not in missing and sha256(folder / name) != hashes[name]]
    return Differences(tuple(sorted(changed)), tuple(sorted(missing)))


def _files(folder: Path, inside: str = "") -> list[str]:
    """Of the folder and those in it, but for folders that have a manifest of their own."""
    found = []
    for path in sorted(folder.iterdir()):
        name = f"{inside}{path.name}"
        if path.name.startswith("."):
            continue
        if path.is_dir() and not (path / NAME).exists():
            found += _files(path, f"{name}/")
        elif path.is_file() and path.suffix in READ and path.name != NAME:
            found.append(name)
    return found


def _inside(name: str) -> bool:
    """No name in a manifest leads out of its folder."""
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts
