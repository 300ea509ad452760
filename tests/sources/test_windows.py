"""Stocks and Energy: the windows that TimeGAN cuts."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from conftest import same
from helpers.data import DATA
from timediff.data.cohort import read_cohort
from timediff.data.describe import read_extraction
from timediff.data.overlap import how_split
from timediff.errors import TimeDiffError
from timediff.sources.extraction import Extraction
from timediff.sources.registry import resolve, source

REAL = DATA / "timegan"
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"no {REAL}: put TimeGAN's two files there, or set TIMEDIFF_DATA")


def extract(name: str, path: Path, **changes: object) -> Extraction:
    return source(name).extract(str(path), resolve(name, changes=changes))


def made_up(path: Path, rows: int = 40) -> Path:
    lines = ["Open,Close", *(f"{row},{row + 0.5}" for row in range(rows))]
    path.write_text("\n".join(lines) + "\n")
    return path


@real
@pytest.mark.parametrize(
    ("name", "file", "windows", "columns", "step", "test"),
    [
        ("stocks", "stock_data.csv", 3_661, 6, "1d", 0.2),
        ("energy", "energydata_complete.csv.gz", 19_711, 28, "10min", 0.25),
    ],
)
def test_windows_of_the_real_series(name: str, file: str, windows: int, columns: int, step: str, test: float) -> None:
    extraction = extract(name, REAL)
    cohort, schema = extraction.cohort, extraction.cohort.schema
    assert (extraction.found, len(cohort), len(schema.temporal)) == (windows, windows, columns)
    assert (schema.steps, schema.step, schema.split.test, schema.split.by) == (24, step, test, "blocks")
    assert cohort.stay_id.tolist() == list(range(windows))
    assert not any(np.isnan(values).any() for values in cohort.series.values())
    assert same(extract(name, REAL / file).cohort, cohort)


@real
def test_windows_are_those_of_timegans_own_loop() -> None:
    cohort = extract("stocks", REAL).cohort
    data = np.loadtxt(REAL / "stock_data.csv", delimiter=",", skiprows=1)[::-1]
    theirs = np.array([data[start : start + 24] for start in range(0, len(data) - 24)])
    ours = np.stack([cohort.series[feature.name] for feature in cohort.schema.temporal], axis=2)
    assert np.array_equal(ours, theirs)


@real
def test_energy_leaves_the_date_out() -> None:
    cohort = extract("energy", REAL).cohort
    assert "date" not in cohort.schema
    assert np.array_equal(cohort.series["rv1"], cohort.series["rv2"])


@real
@pytest.mark.parametrize("name", ["stocks", "energy"])
def test_a_split_in_blocks_or_in_time_shares_no_row(name: str) -> None:
    cohort = extract(name, REAL).cohort
    blocks = cohort.split(seed=0)  # as their schema says
    assert how_split(*blocks) == "in blocks of the series"
    assert len(blocks[1]) == pytest.approx(cohort.schema.split.test * len(cohort), rel=0.1)
    train, test = cohort.split(by="time")
    assert train.static["start"].max() + 24 <= test.static["start"].min()
    assert len(test) == pytest.approx(cohort.schema.split.test * len(cohort), abs=1)
    assert len(train) + len(test) == len(cohort) - 23


def test_rows_are_reversed_and_the_last_window_is_left_out_as_timegan_does(tmp_path: Path) -> None:
    cohort = extract("stocks", made_up(tmp_path / "any_name.csv")).cohort
    assert len(cohort) == 40 - 24
    assert cohort.series["Open"][0].tolist() == list(range(39, 15, -1))
    assert cohort.series["Close"][1, 0] == 38.5
    assert cohort.static["start"].tolist() == list(range(16))
    assert cohort.schema.order is not None


def test_it_is_written_and_read_back(tmp_path: Path) -> None:
    extraction = extract("stocks", made_up(tmp_path / "stock_data.csv"))
    extraction.write(tmp_path / "cohort", source("stocks").default_toml())
    assert same(read_cohort(tmp_path / "cohort"), extraction.cohort)


def test_a_zipped_file_in_a_folder(tmp_path: Path) -> None:
    content = made_up(tmp_path / "plain.csv").read_bytes()
    (tmp_path / "stock_data.csv.gz").write_bytes(gzip.compress(content))
    assert same(extract("stocks", tmp_path).cohort, extract("stocks", tmp_path / "plain.csv").cohort)


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match=r"is not stock_data\.csv or stock_data\.csv\.gz, nor a folder that holds"):
        extract("stocks", tmp_path)
    with pytest.raises(TimeDiffError, match="has 24 rows; expected more than 24"):
        extract("stocks", made_up(tmp_path / "short.csv", rows=24))
    with pytest.raises(TimeDiffError, match="there is no column 'date' to leave out"):
        extract("energy", made_up(tmp_path / "energy.csv"))
    path = tmp_path / "stock_data.csv"
    path.write_text("Day,Open\n" + "Monday,1\n" * 30)
    with pytest.raises(TimeDiffError, match=r"a column holds more than numbers .* name it in leave_out"):
        extract("stocks", path)
    assert len(extract("stocks", path, leave_out=["Day"]).cohort) == 6
    truncated = tmp_path / "cut.csv.gz"
    truncated.write_bytes(gzip.compress(path.read_bytes())[:-12])
    with pytest.raises(TimeDiffError, match=r"is not a whole \.gz file"):
        extract("stocks", truncated)


@pytest.mark.parametrize("value", ["1e400", "-inf"])
def test_a_number_that_no_cohort_can_have_is_refused_before_anything_is_written(value: str, tmp_path: Path) -> None:
    file = made_up(tmp_path / "series.csv")
    file.write_text(file.read_text() + f"3,{value}\n")
    with pytest.raises(TimeDiffError, match=r"'Close': .* infinite value"):
        extract("stocks", file).write(tmp_path / "cohort", "")
    assert not (tmp_path / "cohort").exists()


def test_the_largest_numbers_are_written_and_read_back(tmp_path: Path) -> None:
    file = made_up(tmp_path / "series.csv")
    file.write_text(file.read_text() + "3,1e308\n3,-1.7e308\n")
    extraction = extract("stocks", file)
    extraction.write(tmp_path / "cohort", "")
    assert same(read_cohort(tmp_path / "cohort"), extraction.cohort)
    assert read_extraction(tmp_path / "cohort") is not None
