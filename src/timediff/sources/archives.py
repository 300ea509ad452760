"""Zip archives of small files, read within limits: of what they declare, and of what is unpacked."""

import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from timediff.errors import TimeDiffError
from timediff.sources.extraction import File, many

MOST_MEMBERS = 100_000
MOST_BYTES = 4 * 2**20  # of a member; a stay of the challenge has some 10,000
MOST_TOGETHER = 512 * 2**20  # its three sets have some 100 million
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_zip(path: Path, wanted: Callable[[str], str | None]) -> Iterator[tuple[str, File]]:
    """Members by path in the archive, in order: those that `wanted` has a file name for."""
    try:
        with zipfile.ZipFile(path) as archive:
            chosen = {info: name for info in archive.infolist() if (name := wanted(info.filename)) is not None}
            _check(path, list(chosen), len(archive.infolist()))
            for info in sorted(chosen, key=lambda info: info.filename):
                with archive.open(info) as member:
                    content = member.read(info.file_size + 1)
                if len(content) != info.file_size:
                    raise TimeDiffError(f"{path}: a file in it is not as long as the archive says; copy it again.")
                yield info.filename, File(chosen[info], content)
    except (zipfile.BadZipFile, zlib.error, OSError, EOFError, ValueError, NotImplementedError) as error:
        raise TimeDiffError(f"{path} is not a readable zip; copy it again.") from error


def _check(path: Path, chosen: list[zipfile.ZipInfo], members: int) -> None:
    if members > MOST_MEMBERS:
        raise TimeDiffError(f"{path} holds {members:,} files; expected at most {MOST_MEMBERS:,}. Unpack it first.")
    if hidden := sum(bool(info.flag_bits & 1) for info in chosen):
        raise TimeDiffError(f"{path}: {many(hidden, 'file')} in it need a password; unpack it first.")
    if packed := sum(info.compress_type not in METHODS for info in chosen):
        raise TimeDiffError(
            f"{path}: {many(packed, 'file')} in it are packed by another method than deflate; unpack it first."
        )
    if max((info.file_size for info in chosen), default=0) > MOST_BYTES:
        raise TimeDiffError(
            f"{path}: a file in it unpacks to more than {MOST_BYTES:,} bytes, which no stay has; unpack it first."
        )
    if (total := sum(info.file_size for info in chosen)) > MOST_TOGETHER:
        raise TimeDiffError(f"{path} unpacks to {total:,} bytes; expected at most {MOST_TOGETHER:,}. Unpack it first.")
