"""eICU: extraction finds the true cohort in simulated tables, whatever their form, and does as its settings say."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet
import pytest

from conftest import same
from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import TimeDiffError
from timediff.sources.eicu import EICU, EICUSettings
from timediff.sources.extraction import Extraction
from timediff.sources.grid import Rule
from timediff.sources.raw import write_raw
from timediff.sources.registry import resolve, source

DEMO = Path(os.environ.get("TIMEDIFF_DATA", "../shared/data")) / "eicu_demo"


@pytest.fixture(scope="module")
def settings() -> EICUSettings:
    found = resolve("eicu")
    assert isinstance(found, EICUSettings)
    return found


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("eicu") / "simulated"
    write_raw("eicu", folder, 40, seed=1)
    return folder


@pytest.fixture(scope="module")
def truth(simulated: Path) -> Cohort:
    return read_cohort(simulated / "cohort")


@pytest.fixture(scope="module")
def extraction(simulated: Path, settings: EICUSettings) -> Extraction:
    return EICU().extract(str(simulated / "raw"), settings)


def test_it_is_a_source_by_name() -> None:
    assert isinstance(source("eicu"), EICU)


def test_the_true_cohort_is_found(extraction: Extraction, truth: Cohort) -> None:
    assert len(truth) == 40
    assert same(extraction.cohort, truth)


def test_each_rule_drops_some_stays(extraction: Extraction) -> None:
    assert list(extraction.dropped) == ["unit stay of at least 24 h", "a known outcome", "at least one measurement"]
    assert min(extraction.dropped.values()) > 0
    assert extraction.found == len(extraction.cohort) + sum(extraction.dropped.values())


def test_the_form_of_the_files_does_not_matter(
    simulated: Path, settings: EICUSettings, truth: Cohort, tmp_path: Path
) -> None:
    for path in (simulated / "raw").glob("*.csv.gz"):
        name = path.name.removesuffix(".csv.gz").lower()
        pyarrow.parquet.write_table(pyarrow.csv.read_csv(path), tmp_path / f"{name}.parquet")
    assert same(EICU().extract(str(tmp_path), settings).cohort, truth)


def test_a_shorter_grid_is_the_start_of_the_longer_one(simulated: Path, settings: EICUSettings, truth: Cohort) -> None:
    short = EICU().extract(str(simulated / "raw"), replace(settings, steps=12)).cohort
    whole = truth.take(np.isin(truth.stay_id, short.stay_id))
    assert short.schema.steps == 12
    assert same(short, whole.horizon(12))


def test_the_rule_chooses_the_value_of_a_cell(simulated: Path, settings: EICUSettings) -> None:
    twelve = replace(settings, steps=12)
    raw = pyarrow.csv.read_csv(simulated / "raw" / "vitalPeriodic.csv.gz").to_pylist()
    choices: tuple[tuple[Rule, Callable[..., int]], ...] = (("first", min), ("last", max))
    for rule, pick in choices:
        cohort = EICU().extract(str(simulated / "raw"), replace(twelve, rule=rule)).cohort
        heart_rate = np.full((len(cohort), 12), np.nan)
        for row, stay in enumerate(cohort.stay_id):
            mine = [r for r in raw if r["patientunitstayid"] == stay and r["heartrate"] is not None]
            for step in range(12):
                cell = [r for r in mine if 60 + 5 * step <= r["observationoffset"] < 65 + 5 * step]
                if cell:
                    at = pick(r["observationoffset"] for r in cell)
                    heart_rate[row, step] = np.mean([r["heartrate"] for r in cell if r["observationoffset"] == at])
        np.testing.assert_array_equal(cohort.series["heart_rate"], heart_rate)


def test_limits_empty_the_cells_outside_them(simulated: Path, settings: EICUSettings, truth: Cohort) -> None:
    limited = tuple(replace(v, above=60.0, at_most=90.0) if v.name == "heart_rate" else v for v in settings.variable)
    # On the grid there is one time a cell: what the limits take away, no other value replaces.
    at = replace(settings, rule="at")
    free = EICU().extract(str(simulated / "raw"), at).cohort
    found = EICU().extract(str(simulated / "raw"), replace(at, variable=limited)).cohort
    assert np.array_equal(found.stay_id, free.stay_id)
    values = found.series["heart_rate"]
    measured = values[~np.isnan(values)]
    assert measured.min() > 60
    assert measured.max() <= 90
    assert np.isnan(values).sum() > np.isnan(free.series["heart_rate"]).sum()
    assert np.array_equal(found.series["mbp"], free.series["mbp"], equal_nan=True)


@pytest.mark.skipif(not DEMO.is_dir(), reason="no eICU demo: set TIMEDIFF_DATA to the folder that holds it")
def test_the_demo_lacks_a_table_and_the_error_says_which(settings: EICUSettings) -> None:
    with pytest.raises(TimeDiffError, match="vitalPeriodic") as error:
        EICU().extract(str(DEMO), settings)
    assert "no patient" not in str(error.value)
