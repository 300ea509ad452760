"""A synthetic cohort says that it is one, wherever it goes; a real one never does."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from timediff.data.cohort import Cohort, concatenate, read_cohort
from timediff.data.provenance import CohortProvenance
from timediff.errors import TimeDiffError
from timediff.runtime.manifest import differences, read_manifest

KNOWN = CohortProvenance(
    generator="timediff", run="ab" * 32, trained_on="cd" * 32, seed=7, stays=120, version="0.1.0", date="2026-11-19"
)


@pytest.fixture
def made(mixed: Cohort) -> Cohort:
    return replace(mixed, provenance=KNOWN)


def test_a_real_cohort_has_none_and_its_files_are_as_before(mixed: Cohort, tmp_path: Path) -> None:
    mixed.write(tmp_path / "cohort")
    assert read_cohort(tmp_path / "cohort").provenance is None
    assert pq.read_schema(tmp_path / "cohort" / "series.parquet").metadata is None
    assert not (tmp_path / "cohort" / "provenance.json").exists()


def test_written_and_read_it_is_the_same(made: Cohort, tmp_path: Path) -> None:
    made.write(tmp_path / "cohort")
    assert read_cohort(tmp_path / "cohort").provenance == KNOWN
    assert json.loads((tmp_path / "cohort" / "provenance.json").read_text())["synthetic"] is True


@pytest.mark.parametrize("name", ["series", "static"])
def test_each_parquet_file_says_it_but_for_the_date(name: str, made: Cohort, tmp_path: Path) -> None:
    made.write(tmp_path / "cohort")
    stored = json.loads(pq.read_schema(tmp_path / "cohort" / f"{name}.parquet").metadata[b"timediff"])
    beside = json.loads((tmp_path / "cohort" / "provenance.json").read_text())
    assert stored == {**beside, "date": None}


def test_without_the_file_the_parquet_says_it(made: Cohort, tmp_path: Path) -> None:
    made.write(tmp_path / "cohort")
    (tmp_path / "cohort" / "provenance.json").unlink()
    assert read_cohort(tmp_path / "cohort").provenance == replace(KNOWN, date=None)


def test_the_manifest_covers_it(made: Cohort, tmp_path: Path) -> None:
    folder = tmp_path / "cohort"
    made.write(folder)
    manifest = read_manifest(folder)
    assert manifest is not None
    assert not differences(folder, manifest)
    (folder / "provenance.json").write_text(replace(KNOWN, seed=8).to_json())
    assert differences(folder, manifest).changed == ("provenance.json",)


def test_it_is_no_part_of_the_digest(made: Cohort, mixed: Cohort) -> None:
    assert made.digest() == mixed.digest()


def test_some_of_the_stays_are_derived(made: Cohort, mixed: Cohort) -> None:
    derived = replace(KNOWN, derived=True)
    parts = made.split(seed=0)
    assert [one.provenance for one in (*parts, made.take(np.arange(3)), made.horizon(2))] == [derived] * 4
    assert mixed.take(np.arange(3)).provenance is None


def test_joined_cohorts_say_what_they_have_in_common(made: Cohort) -> None:
    other = replace(made, provenance=replace(KNOWN, seed=8))
    assert concatenate([made, other]).provenance == replace(KNOWN, seed=None, derived=True)
    assert concatenate([made]).provenance == KNOWN


def test_real_stays_among_synthetic_ones_are_not_called_synthetic(made: Cohort, mixed: Cohort) -> None:
    assert concatenate([made, mixed]).provenance is None


def test_one_line_says_it() -> None:
    assert str(KNOWN) == (
        "synthetic: by timediff, 120 stays sampled with seed 7, run abababababababab, TimeDiff 0.1.0, "
        "trained on cdcdcdcdcdcdcdcd, 2026-11-19"
    )
    assert str(CohortProvenance(derived=True)) == "synthetic (derived): by a generator that is not named"


@pytest.mark.parametrize(
    "change",
    [
        {"synthetic": False}, {"seed": -1}, {"seed": "1"}, {"stays": -1}, {"run": 3}, {"format": 2}, {"more": 1},
        {"generator": "x" * 101}, {"generator": "\x1b[2J"},
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(change: dict[str, object], made: Cohort, tmp_path: Path) -> None:
    made.write(tmp_path / "cohort")
    path = tmp_path / "cohort" / "provenance.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(TimeDiffError, match=r"provenance\.json"):
        read_cohort(tmp_path / "cohort")
