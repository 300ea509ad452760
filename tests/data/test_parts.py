"""A cohort read a part at a time is the cohort."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from conftest import same
from timediff.data import parts as parts_module
from timediff.data.cohort import Cohort, concatenate
from timediff.data.parts import parts_of, stays_in_part
from timediff.data.schema import Feature, Schema
from timediff.errors import Problems


@pytest.mark.parametrize("name", ["mixed", "ragged"])
@pytest.mark.parametrize("size", [1, 7, 60, 120, 500])
def test_parts_joined_are_the_whole(name: str, size: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    cohort = request.getfixturevalue(name)
    cohort.write(tmp_path / "cohort")
    for given in (cohort, tmp_path / "cohort"):
        parts = parts_of(given, size)
        found = list(parts)
        assert same(concatenate(found), cohort)
        assert [len(part) for part in found[:-1]] == [size] * (len(found) - 1)
        assert {part.length is None for part in found} == {name == "mixed"}
        assert np.array_equal(parts.lengths, cohort.lengths)
        assert parts.patient is not None
        assert np.array_equal(parts.patient, cohort.static["patient"])


def test_stays_without_a_row_are_in_their_part(mixed: Cohort, tmp_path: Path) -> None:
    mixed.write(tmp_path / "cohort")
    series = mixed.tables()[0]
    kept = series.filter(pc.is_in(series["stay_id"], pa.array([103, 104, 150])))
    pq.write_table(kept, tmp_path / "cohort" / "series.parquet")
    found = concatenate(list(parts_of(tmp_path / "cohort", 7)))
    assert same(found, Cohort.from_tables(mixed.schema, kept, mixed.tables()[1]))


def test_only_some_of_the_stays_are_read_at_once(
    mixed: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed.write(tmp_path / "cohort")

    def refuse(path: Path) -> Cohort:
        raise AssertionError("the whole cohort was read")

    monkeypatch.setattr(parts_module, "read_cohort", refuse)
    assert len(list(parts_of(tmp_path / "cohort", 50))) == 3


def test_rows_in_another_order_are_read_as_a_whole(mixed: Cohort, tmp_path: Path) -> None:
    mixed.write(tmp_path / "cohort")
    series = mixed.tables()[0]
    order = pa.array(np.random.default_rng(0).permutation(series.num_rows))
    pq.write_table(series.take(order), tmp_path / "cohort" / "series.parquet")
    assert same(concatenate(list(parts_of(tmp_path / "cohort", 50))), mixed)


def test_stays_in_another_order_are_found_across_batches(tmp_path: Path) -> None:
    """Each batch that Arrow reads is of one stay."""
    steps = 65_536
    cohort = Cohort(Schema((Feature("x", "continuous"),), steps), np.arange(2), {"x": np.zeros((2, steps))}, {})
    cohort.write(tmp_path / "cohort")
    series = cohort.tables()[0]
    pq.write_table(pa.concat_tables([series[steps:], series[:steps]]), tmp_path / "cohort" / "series.parquet")
    assert same(concatenate(list(parts_of(tmp_path / "cohort", 1))), cohort)


def test_what_is_wrong_is_said(mixed: Cohort, tmp_path: Path) -> None:
    wrong = replace(mixed, series={**mixed.series, "pulse": mixed.series["pulse"] + 1000})
    wrong.write(tmp_path / "cohort")
    with pytest.raises(Problems, match="outside its bounds"):
        list(parts_of(tmp_path / "cohort", 50))


def test_long_stays_come_in_small_parts() -> None:
    features = tuple(Feature(f"x{i}", "continuous") for i in range(10))
    assert stays_in_part(Schema(features, 1_000_000)) == 1
    assert stays_in_part(Schema(features, 400)) == 500
    assert stays_in_part(Schema(features, 1)) == 20_000
