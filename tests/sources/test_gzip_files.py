"""A .csv.gz that is not whole is refused by name, never read as a shorter table."""

import gzip
import shutil
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import same
from timediff.data.cohort import read_cohort
from timediff.errors import TimeDiffError
from timediff.sources.gzip_files import Damaged, Verification, read_gzip, unpacked
from timediff.sources.raw import write_raw
from timediff.sources.registry import resolve, source
from timediff.sources.table_files import find


@pytest.fixture(scope="module")
def eicu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eicu")
    write_raw("eicu", folder / "eicu", 8, seed=4)
    return folder / "eicu"


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("gz") / "t.csv.gz"


def whole(path: Path, content: bytes) -> bool:
    path.write_bytes(content)
    try:
        list(unpacked(path))
    except Damaged:
        return False
    return True


CONTENTS = st.one_of(st.binary(max_size=200), st.binary(min_size=1, max_size=40).map(lambda b: b * 9000))


@given(parts=st.lists(CONTENTS, min_size=1, max_size=3), level=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_what_was_packed_comes_back(parts: list[bytes], level: int, file: Path) -> None:
    file.write_bytes(b"".join(gzip.compress(part, level) for part in parts))
    assert b"".join(unpacked(file)) == b"".join(parts)


@given(content=CONTENTS, data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_cut_is_whole(content: bytes, data: st.DataObject, file: Path) -> None:
    packed = gzip.compress(content)
    assert not whole(file, packed[: data.draw(st.integers(0, len(packed) - 1))])


@given(content=CONTENTS, data=st.data())
@settings(max_examples=60, deadline=None)
def test_no_flipped_bit_of_the_stream_or_its_trailer_is_whole(content: bytes, data: st.DataObject, file: Path) -> None:
    packed = bytearray(gzip.compress(content))
    place = data.draw(st.integers(80, 8 * len(packed) - 1))  # after the header, which holds no content
    packed[place // 8] ^= 1 << place % 8
    file.write_bytes(packed)
    with suppress(Damaged):
        assert b"".join(unpacked(file)) == content  # unused bits at the end of the stream may be anything


def test_bytes_after_the_end_are_refused_unless_they_are_padding(file: Path) -> None:
    packed = gzip.compress(b"a,b\n1,2\n")
    assert not whole(file, packed + b"more")
    assert not whole(file, packed + b"\0\0more")
    assert whole(file, packed + bytes(1000))
    assert not whole(file, b"")
    assert not whole(file, b"a,b\n")


def test_a_small_file_that_unpacks_to_much_is_refused(file: Path) -> None:
    file.write_bytes(gzip.compress(bytes(10**7)))
    with pytest.raises(TimeDiffError, match="unpacks to more than 1,000 bytes"):
        read_gzip(file, 1000)


def test_verification_can_be_stopped(file: Path) -> None:
    file.write_bytes(gzip.compress(bytes(10**8), 1))
    verification = Verification()
    verification.add(file)
    verification.stop()
    verification.confirm()


@pytest.mark.parametrize("table", ["patient", "vitalPeriodic"])
@pytest.mark.parametrize("kept", [0.6, 0.99, -8, -4])
def test_a_cut_table_is_refused_by_name(table: str, kept: float, eicu: Path, tmp_path: Path) -> None:
    shutil.copytree(eicu / "raw", tmp_path / "raw")
    path = find(tmp_path / "raw", table)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept) if kept < 0 else int(kept * len(content))])
    with pytest.raises(TimeDiffError, match=rf"{table}\.csv\.gz is damaged: it ends in the middle"):
        source("eicu").extract(str(tmp_path / "raw"), resolve("eicu"))


def test_a_table_with_another_checksum_is_refused_by_name(eicu: Path, tmp_path: Path) -> None:
    shutil.copytree(eicu / "raw", tmp_path / "raw")
    path = find(tmp_path / "raw", "patient")
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    with pytest.raises(TimeDiffError, match=r"patient\.csv\.gz is damaged: its checksum is another"):
        source("eicu").extract(str(tmp_path / "raw"), resolve("eicu"))


def test_a_table_of_several_members_is_read_whole(eicu: Path, tmp_path: Path) -> None:
    shutil.copytree(eicu / "raw", tmp_path / "raw")
    for path in (tmp_path / "raw").iterdir():
        text = gzip.decompress(path.read_bytes())
        path.write_bytes(b"".join(gzip.compress(text[i : i + 999]) for i in range(0, len(text), 999)))
    found = source("eicu").extract(str(tmp_path / "raw"), resolve("eicu"))
    assert same(found.cohort, read_cohort(eicu / "cohort"))


def test_a_plain_table_needs_no_last_line_end(eicu: Path, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    for path in (eicu / "raw").iterdir():
        text = gzip.decompress(path.read_bytes())
        (tmp_path / "raw" / path.name.removesuffix(".gz")).write_bytes(text.rstrip(b"\n"))
    found = source("eicu").extract(str(tmp_path / "raw"), resolve("eicu"))
    assert same(found.cohort, read_cohort(eicu / "cohort"))


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b"PAR1" + bytes(40), lambda b: b[:-9], lambda b: b[200:]])
def test_a_parquet_file_that_is_none_is_a_sentence(damage, eicu: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    import duckdb

    shutil.copytree(eicu / "raw", tmp_path / "raw")
    path = find(tmp_path / "raw", "patient")
    duckdb.sql(f"SELECT * FROM read_csv('{path}', all_varchar=true)").write_parquet(str(tmp_path / "whole.parquet"))
    path.unlink()
    (path.parent / "patient.parquet").write_bytes(damage((tmp_path / "whole.parquet").read_bytes()))
    with pytest.raises(TimeDiffError, match=r"patient\.parquet|could not be read"):
        source("eicu").extract(str(tmp_path / "raw"), resolve("eicu"))
