"""A zip is read within limits: a bomb, a lie or an odd method is a sentence."""

import io
import struct
import zipfile
from pathlib import Path

import pytest

from timediff.errors import TimeDiffError
from timediff.sources import archives
from timediff.sources.archives import read_zip
from timediff.sources.physionet2012 import find

STAY = "Time,Parameter,Value\n00:00,RecordID,1\n00:10,HR,80\n"
OUTCOMES = "RecordID,In-hospital_death\n1,0\n"


def zipped(path: Path, stay: str | bytes = STAY, name: str = "set-a/1.txt", method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, stay)
        archive.writestr("Outcomes-a.txt", OUTCOMES)
    return path


def patched(path: Path, local: int, central: int, value: bytes) -> Path:
    """The first member with other bytes in both of its headers."""
    content = bytearray(path.read_bytes())
    start = content.index(b"PK\x01\x02")
    content[local : local + len(value)] = value
    content[start + central : start + central + len(value)] = value
    path.write_bytes(content)
    return path


def test_an_honest_zip_is_read(tmp_path: Path) -> None:
    [one] = find(zipped(tmp_path / "a.zip"))
    assert [file.content.decode() for file in one.files()] == [STAY, OUTCOMES]


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_BYTES", 10_000)
    path = zipped(tmp_path / "a.zip", bytes(10_001))
    monkeypatch.setattr(zipfile.ZipFile, "open", None)
    with pytest.raises(TimeDiffError, match="unpacks to more than 10,000 bytes"):
        find(path)


def test_many_files_are_refused_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "MOST_TOGETHER", len(STAY))
    with pytest.raises(TimeDiffError, match=r"unpacks to \d+ bytes; expected at most"):
        find(zipped(tmp_path / "a.zip"))
    monkeypatch.setattr(archives, "MOST_MEMBERS", 1)
    with pytest.raises(TimeDiffError, match="holds 2 files; expected at most 1"):
        find(tmp_path / "a.zip")


@pytest.mark.parametrize("declared", [5, 10**6])
def test_a_member_that_is_not_as_long_as_it_says_is_refused(declared: int, tmp_path: Path) -> None:
    path = patched(zipped(tmp_path / "a.zip"), 22, 24, struct.pack("<I", declared))
    with pytest.raises(TimeDiffError, match=r"not as long as the archive says|not a readable zip"):
        find(path)


def test_a_password_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match="1 file in it need a password; unpack it first"):
        find(patched(zipped(tmp_path / "a.zip"), 6, 8, struct.pack("<H", 1)))


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_another_method_is_a_sentence(method: int, tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match="packed by another method than deflate"):
        find(zipped(tmp_path / "a.zip", method=method))


def test_an_unknown_method_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match="packed by another method than deflate"):
        find(patched(zipped(tmp_path / "a.zip"), 8, 10, struct.pack("<H", 99)))


def test_a_stay_with_a_number_of_23_digits_is_a_sentence(tmp_path: Path) -> None:
    from timediff.sources.registry import resolve, source

    path = zipped(tmp_path / "a.zip", name=f"set-a/{'1' * 23}.txt")
    with pytest.raises(TimeDiffError, match="has 23 digits; expected at most 18"):
        source("physionet2012").extract(str(path), resolve("physionet2012"))


def test_every_cut_and_every_changed_byte_is_a_zip_or_a_sentence(tmp_path: Path) -> None:
    whole = zipped(tmp_path / "a.zip").read_bytes()
    buffer = io.BytesIO(whole)
    assert zipfile.is_zipfile(buffer)
    for place in range(0, len(whole), 3):
        for content in (whole[:place], whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]):
            (tmp_path / "b.zip").write_bytes(content)
            try:
                list(read_zip(tmp_path / "b.zip", lambda name: name))
            except TimeDiffError:
                continue
