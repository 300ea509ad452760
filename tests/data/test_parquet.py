"""A Parquet file is read as it was written, or refused; a file of another tool is read as it is."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import same
from timediff.data.cohort import Cohort, read_cohort
from timediff.data.parquet import MARK, parquet_writer, read_parquet, write_parquet
from timediff.errors import Problems, TimeDiffError
from timediff.sources.simulated import simulate

TABLE = pa.table({"a": pa.array(range(1000)), "b": pa.array([f"text {i % 7}" for i in range(1000)])})


@pytest.fixture
def cohort(tmp_path: Path) -> tuple[Cohort, Path]:
    stays = simulate(20, steps=3, seed=0)
    stays.write(tmp_path / "cohort")
    return stays, tmp_path / "cohort"


@pytest.mark.parametrize("name", ["series.parquet", "static.parquet"])
def test_a_changed_byte_gives_the_same_values_or_a_sentence(name: str, cohort: tuple[Cohort, Path]) -> None:
    _, folder = cohort
    whole, table = (folder / name).read_bytes(), read_parquet(folder / name)
    rng = np.random.default_rng(0)
    refused = 0
    flips = rng.integers(1, 256, len(whole)).tolist()
    with (folder / name).open("r+b", buffering=0) as file:
        for place, flip in enumerate(flips):
            os.pwrite(file.fileno(), bytes([whole[place] ^ flip]), place)
            try:
                assert read_parquet(folder / name) == table
            except TimeDiffError:
                refused += 1
            os.pwrite(file.fileno(), whole[place : place + 1], place)
    assert refused > len(whole) - 2 * len(MARK) - 4  # but for the mark itself, no change goes unnoticed


def test_a_cut_file_is_refused(cohort: tuple[Cohort, Path]) -> None:
    _, folder = cohort
    whole = (folder / "series.parquet").read_bytes()
    for size in range(0, len(whole), 41):
        (folder / "series.parquet").write_bytes(whole[:size])
        with pytest.raises(Problems, match=r"series\.parquet: (not a readable|damaged)"):
            read_cohort(folder)


def _pyarrow(path: Path) -> None:
    pq.write_table(pq.read_table(path), path)


def _pandas(path: Path) -> None:
    pd.read_parquet(path).to_parquet(path)


def _duckdb(path: Path) -> None:
    duckdb.sql(f"COPY (SELECT * FROM read_parquet('{path}')) TO '{path}.new' (FORMAT parquet)")
    Path(f"{path}.new").replace(path)


@pytest.mark.parametrize("rewrite", [_pyarrow, _pandas, _duckdb])
def test_other_tools_read_our_files_and_we_theirs(rewrite: Callable[[Path], None], cohort: tuple[Cohort, Path]) -> None:
    written, folder = cohort
    for name in ("series", "static"):
        rewrite(folder / f"{name}.parquet")
        assert MARK not in (folder / f"{name}.parquet").read_bytes()
    assert same(read_cohort(folder), written)


def test_pages_of_other_tools_are_checked_by_their_checksums(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = bytearray(path.read_bytes())
    content[content.index(b"text 3") + 5] = ord("4")
    path.write_bytes(content)
    with pytest.raises(Problems, match="not a readable Parquet file"):
        read_parquet(path)


def test_our_pages_have_checksums_for_other_tools_too(tmp_path: Path) -> None:
    value = np.random.default_rng(0).bytes(4096)  # which no compression changes
    write_parquet(tmp_path / "a.parquet", pa.table({"a": [value]}))
    content = bytearray((tmp_path / "a.parquet").read_bytes().replace(MARK, bytes(len(MARK))))
    (tmp_path / "a.parquet").write_bytes(content)
    assert read_parquet(tmp_path / "a.parquet")["a"].to_pylist() == [value]
    content[content.index(value[2000:2010])] ^= 1
    (tmp_path / "a.parquet").write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        pq.ParquetFile(tmp_path / "a.parquet", page_checksum_verification=True).read()


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(TABLE.rename_columns(["a", "stay"]), path, store_schema=False)
    path.write_bytes(path.read_bytes().replace(b"stay", b"st\xe9y"))
    with pytest.raises(Problems, match="not a readable Parquet file"):
        read_parquet(path)


def test_tables_that_are_streamed_are_one_table(tmp_path: Path) -> None:
    with parquet_writer(tmp_path / "a.parquet", TABLE.schema) as writer:
        for part in (TABLE[:300], TABLE[300:300], TABLE[300:]):
            writer.write_table(part)
    assert read_parquet(tmp_path / "a.parquet") == TABLE
    write_parquet(tmp_path / "b.parquet", TABLE)
    assert read_parquet(tmp_path / "b.parquet") == TABLE
    assert pq.ParquetFile(tmp_path / "b.parquet").metadata.num_rows == 1000


def test_equal_tables_are_equal_files(cohort: tuple[Cohort, Path], tmp_path: Path) -> None:
    written, folder = cohort
    written.write(tmp_path / "again")
    for name in ("series.parquet", "static.parquet", "schema.toml"):
        assert (folder / name).read_bytes() == (tmp_path / "again" / name).read_bytes()
    shutil.rmtree(folder)
