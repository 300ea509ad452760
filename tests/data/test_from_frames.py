"""Data frames of any library become the cohort that they hold, with a schema or by what is inferred."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from conftest import same
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.sources.infer import infer
from timediff.sources.simulated import simulate


def relation(table: pa.Table) -> Any:
    return duckdb.connect().from_arrow(table)


LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "pandas": lambda table: table.to_pandas(),
    "polars": pl.from_arrow,
    "duckdb": relation,
}


class Interchange:
    """A data frame that only has the older protocol."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def __dataframe__(self, *arguments: Any, **options: Any) -> Any:
        return self.frame.__dataframe__(*arguments, **options)


@pytest.fixture(scope="module")
def cohort() -> Cohort:
    return simulate(30, steps=6, seed=3)


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_with_a_schema_are_the_cohort_that_they_were_made_of(
    library: str, cohort: Cohort, mixed: Cohort
) -> None:
    for one in (cohort, mixed):
        series, static = map(LIBRARIES[library], one.tables())
        assert same(Cohort.from_frames(series, static, one.schema), one)


def test_an_index_without_a_name_is_no_column(cohort: Cohort) -> None:
    series, static = cohort.to_pandas()
    assert same(Cohort.from_frames(series.iloc[::-1], static.sort_index(), cohort.schema), cohort)
    backwards = Cohort.from_frames(series.iloc[::-1], static.iloc[::-1], label="died", show=None)
    assert "__index_level_0__" not in [*backwards.series, *backwards.static]
    np.testing.assert_array_equal(backwards.series["heart_rate"], cohort.series["heart_rate"])


def test_the_older_protocol_will_do(cohort: Cohort) -> None:
    series, static = cohort.to_pandas()
    numbers = static.drop(columns=["sex"])
    found = Cohort.from_frames(Interchange(series), Interchange(numbers), label="died", show=None)
    assert found.label.tolist() == cohort.label.tolist()


@pytest.mark.parametrize("library", LIBRARIES)
def test_without_a_schema_it_is_inferred_and_shown_without_a_value(library: str, cohort: Cohort) -> None:
    series, static = map(LIBRARIES[library], cohort.tables())
    lines: list[str] = []
    found = Cohort.from_frames(series, static, label="died", show=lines.append)
    for name in cohort.series:
        np.testing.assert_array_equal(found.series[name], cohort.series[name])
    assert found["sex"].tolist() == cohort["sex"].tolist()
    assert found.label.tolist() == cohort.label.tolist()
    assert found.schema["age"].resolution == 1
    assert found.schema["temperature"].resolution == 0.1
    assert "died" in lines[0]
    assert "2 classes" in lines[0]
    assert "'F'" not in "".join(lines)


def test_times_may_be_durations_moments_or_an_index(cohort: Cohort) -> None:
    cohort = cohort.take(~np.isnan(cohort.series["heart_rate"][:, 0]))  # of moments the first measured one is 0
    series = cohort.to_pandas().series
    durations = series.assign(t=[timedelta(hours=hour) for hour in series["step"]]).drop(columns="step")
    moments = series.assign(t=pd.Timestamp("2024-01-01") + pd.to_timedelta(series["step"], unit="h"))
    index = series.rename(columns={"step": "hour"}).set_index(["stay_id", "hour"])
    for frame in (durations, pl.from_pandas(durations), moments.drop(columns="step"), index):
        found = Cohort.from_frames(frame, show=None)
        np.testing.assert_array_equal(found.series["heart_rate"], cohort.series["heart_rate"])
        assert found.schema.steps == 6


def test_a_schema_says_what_raw_frames_hold(cohort: Cohort) -> None:
    series, static = cohort.to_pandas()
    found = Cohort.from_frames(series.rename(columns={"step": "hour"}), static, cohort.schema, show=None)
    assert found.schema.features == cohort.schema.features
    np.testing.assert_array_equal(found.series["mbp"], cohort.series["mbp"])


def test_edited_settings_are_a_schema_too(cohort: Cohort, tmp_path: Path) -> None:
    series, static = cohort.to_pandas()
    (tmp_path / "s.toml").write_text(infer(series, static=static, label="died").to_toml().replace('"last"', '"grid"'))
    found = Cohort.from_frames(series, static, tmp_path / "s.toml", show=None)
    assert found.length is None
    assert found.label.tolist() == cohort.label.tolist()
    with pytest.raises(TimeDiffError, match="name 1 tables beside the first; 0 are given"):
        Cohort.from_frames(series, None, tmp_path / "s.toml")


def test_most_of_a_frame_is_not_lost_unsaid(cohort: Cohort) -> None:
    series = cohort.to_pandas().series
    with pytest.raises(TimeDiffError, match="measurements would be lost"):
        Cohort.from_frames(series, steps=2, show=None)
    assert Cohort.from_frames(series, steps=2, accept_loss=True, show=None).schema.steps == 2


@pytest.mark.parametrize(
    ("frame", "options", "sentence"),
    [
        ([1, 2], {}, "given list; expected a data frame"),
        (pd.DataFrame({"stay_id": [1, 2], "t": [1, 2], "x": ["a", 1]}), {}, "a column 'x' that Arrow cannot hold"),
        (pd.DataFrame({"a": [1], "b": [2]}), {}, "no column seems to say whose row it is"),
        (pd.DataFrame({"stay_id": [1], "t": [2]}), {}, "no column has measurements"),
        (pd.DataFrame({"stay_id": [1], "t": [2], "x": [3]}), {"lable": "x"}, "unexpected keyword argument 'lable'"),
        (pd.DataFrame({"stay_id": [1], "t": [2], "x": [3]}), {"schema": 3}, "schema is of type int"),
    ],
)
def test_a_mistake_is_a_sentence(frame: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TimeDiffError) as caught:
        Cohort.from_frames(frame, **options)
    assert sentence in str(caught.value)
