"""Sampling straight to disk: parts, a stop and its resumption, and which blocks are whose."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from conftest import same
from helpers.alike import alike
from helpers.small_baselines import PROCESS_DIFFUSION
from timediff import __version__
from timediff.data.cohort import Cohort, read_cohort
from timediff.data.schema import Schema
from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.generators.simple import SimpleGenerator, State
from timediff.generators.streaming import sample_to, stays_of_process, whole_parts
from timediff.runtime.randomness import BLOCK


def test_streamed_to_disk_it_is_the_same(model: Generator, tmp_path: Path) -> None:
    sample_to(model, tmp_path / "made", 1100, seed=1)
    assert same(read_cohort(tmp_path / "made"), model.sample(1100, seed=1))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made"]


def test_a_stopped_sampling_is_resumed(model: Any, tmp_path: Path) -> None:
    whole = model.sample(1600, seed=1, batch=500)
    parts = tmp_path / ".made.parts"
    calls: list[int] = []

    def interrupt(done: int, total: int, **values: float) -> None:
        if done > total / 2:  # in the third of four blocks of 500
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_to(model, tmp_path / "made", 1600, seed=1, batch=500, progress=interrupt)
    assert not (tmp_path / "made").exists()
    with pytest.raises(TimeDiffError, match="add --resume"):
        sample_to(model, tmp_path / "made", 1600, seed=1)
    with pytest.raises(TimeDiffError, match="belongs to another sampling"):
        sample_to(model, tmp_path / "made", 1600, seed=2, batch=500, resume=True)

    def count(done: int, total: int, **values: float) -> None:
        calls.append(total)

    assert len(list(parts.glob("*.parquet"))) == 4
    (parts / "static-000000000500.parquet").write_bytes(b"")  # a power cut: the second part is damaged
    sample_to(model, tmp_path / "made", 1600, seed=1, batch=500, resume=True, progress=count)
    assert calls == [len(calls)] * len(calls)
    at_once = model.name == "timediff" and model.settings.diffusion.causal  # whole stays are one piece of work
    each = 5 if model.name in PROCESS_DIFFUSION else 20 if model.name == "timediff" and not at_once else 1
    assert len(calls) == 3 * each
    assert same(read_cohort(tmp_path / "made"), whole)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["made"]


def test_parts_begin_with_a_block(model: Generator) -> None:
    whole, rest = model.sample(700, seed=0), list(model.stream(700, seed=0, skip=500))
    assert alike(rest[0], whole.take(np.arange(500, 700)))
    with pytest.raises(ValueError, match="multiple"):
        model.stream(700, skip=250)


@pytest.mark.parametrize("processes", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [1, 499, 500, 501, 1700, 20_000])
def test_processes_have_whole_blocks_each_and_together_all_stays(n: int, processes: int) -> None:
    ranges = [stays_of_process(n, rank, processes) for rank in range(processes)]
    assert ranges[0][0] == 0
    assert ranges[-1][1] == n
    assert all(a[1] == b[0] for a, b in pairwise(ranges))
    assert all(start % BLOCK == 0 or start == end == n for start, end in ranges)
    sizes = [end - start for start, end in ranges]
    assert max(sizes) - min(sizes) <= BLOCK


def _bootstrap(cohort: Cohort) -> SimpleGenerator:
    """A generator that takes no time."""

    class Bootstrap(SimpleGenerator):
        name = "bootstrap"

        def train(self, cohort: Cohort, rng: np.random.Generator) -> State:
            return {"x": np.arange(9.0)}

        def generate(self, n: int, schema: Schema, state: State, rng: np.random.Generator) -> Cohort:
            return cohort.take(rng.integers(0, len(cohort), n))

    return Bootstrap().fit(cohort)


def test_a_synthetic_cohort_says_which_run_and_seed_it_is_from(icu: Cohort, tmp_path: Path) -> None:
    quick = _bootstrap(icu)
    made = quick.sample(20, seed=3)
    sample_to(quick, tmp_path / "made", 20, seed=3)
    made.write(tmp_path / "written")
    known = made.provenance
    assert known is not None
    assert (known.generator, known.run, known.trained_on) == ("bootstrap", quick.identity, icu.digest())
    assert (known.synthetic, known.seed, known.stays, known.version) == (True, 3, 20, __version__)
    assert (known.derived, len(known.date or "")) == (False, 10)
    assert read_cohort(tmp_path / "made").provenance == read_cohort(tmp_path / "written").provenance == known


def test_the_same_seed_gives_the_same_parquet_on_any_day(
    icu: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = _bootstrap(icu)
    sample_to(quick, tmp_path / "today", 20, seed=3)
    whole = quick.provenance_of
    monkeypatch.setattr(quick, "provenance_of", lambda n, seed: replace(whole(n, seed), date="2001-01-01"))
    sample_to(quick, tmp_path / "then", 20, seed=3)
    for name in ("series.parquet", "static.parquet"):
        assert (tmp_path / "today" / name).read_bytes() == (tmp_path / "then" / name).read_bytes()
    assert "2001-01-01" in (tmp_path / "then" / "provenance.json").read_text()


def test_a_sampling_that_finished_no_part_is_not_in_the_way(icu: Cohort, tmp_path: Path) -> None:
    quick = _bootstrap(icu)

    def stop(done: int, total: int, **values: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_to(quick, tmp_path / "made", 10, seed=1, progress=stop)
    for file in (tmp_path / ".made.parts").glob("*.parquet"):
        file.unlink()
    sample_to(quick, tmp_path / "made", 20, seed=2)
    assert len(read_cohort(tmp_path / "made")) == 20
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


def test_of_two_samplings_into_one_folder_one_wins_and_the_other_is_told(icu: Cohort, tmp_path: Path) -> None:
    quick, said = _bootstrap(icu), list[str]()

    def another(done: int, total: int, **values: float) -> None:
        if not said:
            with pytest.raises(TimeDiffError) as caught:
                sample_to(quick, tmp_path / "made", 10, seed=1, resume=True)
            said.append(str(caught.value))

    sample_to(quick, tmp_path / "made", 10, seed=1, progress=another)
    assert "another process is writing" in said[0]
    assert len(read_cohort(tmp_path / "made")) == 10
    assert [path.name for path in tmp_path.iterdir()] == ["made"]


@pytest.mark.parametrize("seed", [-1, 2**63, 2**64])
def test_a_seed_that_cannot_be_leaves_nothing(seed: int, icu: Cohort, tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match="cannot be a seed"):
        sample_to(_bootstrap(icu), tmp_path / "made", 10, seed=seed)
    assert list(tmp_path.iterdir()) == []


def test_parts_without_their_columns_or_with_odd_names_are_made_again(icu: Cohort, tmp_path: Path) -> None:
    quick, parts = _bootstrap(icu), tmp_path / ".made.parts"

    def stop(done: int, total: int, **values: float) -> None:
        if done > 500:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_to(quick, tmp_path / "made", 1600, seed=1, progress=stop)
    assert whole_parts(parts)[0] >= 500
    pq.write_table(pa.table({"x": [1]}), parts / "static-000000000000.parquet")
    assert whole_parts(parts)[1] == ["static-000000000000.parquet"]
    (parts / "static-x.parquet").write_bytes(b"")
    assert "static-x.parquet" in whole_parts(parts)[1]
    (parts / "static-x.parquet").unlink()
    sample_to(quick, tmp_path / "made", 1600, seed=1, resume=True)
    assert same(read_cohort(tmp_path / "made"), quick.sample(1600, seed=1))
