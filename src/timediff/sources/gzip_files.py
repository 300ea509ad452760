"""Gzipped files, read to their ends: a cut or damaged one is refused by name, never read as a shorter table.

An engine may stop early, or take the end of the file for the end of the stream. So each .gz file that it reads is also
unpacked here, beside it in a thread, and what its trailer says (length, CRC-32) is compared.
"""

import os
import re
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from timediff.errors import Problems, TimeDiffError

inflate: ModuleType = zlib
with suppress(ImportError):
    from isal import isal_zlib as inflate  # in half the time: verifying then costs little
INFLATE_ERROR: type[Exception] = inflate.error
MAGIC = b"\x1f\x8b"
PIECE = 2**18  # bytes unpacked at a time
PACKED = 2**16  # bytes read at a time
NICE = 10
GRACE = 5.0  # seconds that another complaint waits for us to find the file damaged


class Damaged(Exception):
    """What is wrong with a stream, in words."""


def is_gzip(path: Path) -> bool:
    return path.name.lower().endswith(".gz")


def unpacked(path: Path) -> Iterator[bytes]:
    """The bytes of a gzipped file, piece by piece; Damaged where its members do not end as they should."""
    with path.open("rb") as file:
        begun = False
        data = file.read(PACKED)
        while data:
            if begun and not data.strip(b"\0"):  # tapes and some tools pad with zeros
                data = file.read(PACKED)
                continue
            data += b"" if len(data) > 1 else file.read(PACKED)
            if not data.startswith(MAGIC):
                raise Damaged("bytes after its end that are not gzip" if begun else "it is not a gzip file")
            begun, member = True, inflate.decompressobj(wbits=31)
            while not member.eof:
                try:
                    piece = member.decompress(data, PIECE)
                except INFLATE_ERROR as error:
                    wrong_sum = re.search("data check|checksum", str(error))
                    raise Damaged("its checksum is another" if wrong_sum else "its bytes are damaged") from error
                if piece:
                    yield piece
                data = member.unconsumed_tail
                if not data and not member.eof and not piece:
                    data = file.read(PACKED)
                    if not data:
                        raise Damaged("it ends in the middle")
            data = member.unused_data or file.read(PACKED)
        if not begun:
            raise Damaged("it is empty")


def damage(path: Path, why: object) -> str:
    return f"{path.name} is damaged: {why}. Copy or download it again"


def read_gzip(path: Path, most: int) -> bytes:
    """The whole content of a small file, of at most `most` bytes."""
    pieces, size = [], 0
    try:
        for piece in unpacked(path):
            size += len(piece)
            if size > most:
                raise TimeDiffError(f"{path} unpacks to more than {most:,} bytes; expected a smaller table.")
            pieces.append(piece)
    except Damaged as error:
        raise TimeDiffError(f"{path} is not a whole .gz file ({error}); copy it again.") from error
    return b"".join(pieces)


class Verification:
    """Reads .gz files to their ends in threads, while an engine reads them too."""

    def __init__(self) -> None:
        self._threads: dict[Path, threading.Thread] = {}
        self._damaged: dict[Path, str] = {}
        self._stopped = threading.Event()

    def add(self, path: Path) -> None:
        if is_gzip(path) and path not in self._threads:
            self._threads[path] = threading.Thread(target=self._read, args=(path,), daemon=True)
            self._threads[path].start()

    def confirm(self, timeout: float | None = None) -> None:
        """Waits for the ends of all files, or so many seconds; a damaged one is an error."""
        for thread in self._threads.values():
            thread.join(timeout)
        if found := [damage(path, why) for path, why in self._damaged.items()]:
            raise Problems(str(next(iter(self._damaged)).parent), found)

    def stop(self) -> None:
        self._stopped.set()
        for thread in self._threads.values():
            thread.join()

    def _read(self, path: Path) -> None:
        if sys.platform == "linux":  # where a thread can yield to the engine's, whose unpacking all else waits for
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
        try:
            for _ in unpacked(path):
                if self._stopped.is_set():
                    return
        except Damaged as error:
            self._damaged[path] = str(error)
        except OSError as error:
            self._damaged[path] = error.strerror or type(error).__name__
