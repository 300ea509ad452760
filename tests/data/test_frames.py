"""A cohort as tables and by the names of classes; printed, it shows no value."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

from conftest import same
from helpers.strategies import cohorts
from timediff.data.cohort import Cohort
from timediff.data.provenance import CohortProvenance
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError


def test_classes_by_name_and_none_for_missing(mixed: Cohort) -> None:
    rhythm, index = mixed["rhythm"], mixed.values("rhythm")
    assert rhythm.shape == index.shape
    assert rhythm.dtype == object
    for number, name in enumerate(("sinus", "af", "paced")):
        assert np.array_equal(rhythm == name, index == number)
    assert np.array_equal(np.equal(rhythm, None), np.isnan(index))
    assert (mixed["sex"] == "F").sum() == (mixed.values("sex") == 0).sum() > 0
    assert set(mixed["unit"]) == {1, 2, 3, 4, 5}
    assert set(mixed["died"]) == {0, 1}


def test_numbers_and_patients_are_as_they_are(mixed: Cohort) -> None:
    for name in ("pulse", "height", "patient"):
        assert mixed[name] is mixed.values(name)


def test_a_name_that_is_none_is_a_sentence(mixed: Cohort) -> None:
    with pytest.raises(TimeDiffError, match=r"no feature 'rythm'; did you mean 'rhythm'\? The features are 'pulse'"):
        mixed["rythm"]
    with pytest.raises(TimeDiffError, match="type int; expected the name of a feature"):
        mixed[0]  # type: ignore[index]
    with pytest.raises(TimeDiffError, match="expected the name of a feature"):
        list(mixed)  # type: ignore[call-overload]


def test_an_index_that_is_no_class_is_a_sentence(mixed: Cohort) -> None:
    wrong = replace(mixed, static={**mixed.static, "died": np.full(len(mixed), 2.0)})
    with pytest.raises(TimeDiffError, match="'died': 120 values are none of its classes"):
        wrong["died"]


@pytest.mark.parametrize("name", ["mixed", "ragged"])
@pytest.mark.parametrize("form", ["frames", "pandas", "polars"])
def test_frames_hold_the_cohort(form: str, name: str, request: pytest.FixtureRequest) -> None:
    cohort = request.getfixturevalue(name)
    frames = getattr(cohort, f"to_{form}")()
    tables = {
        "frames": lambda frame: frame,
        "pandas": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
        "polars": lambda frame: frame.to_arrow(),
    }[form]
    assert same(Cohort.from_tables(cohort.schema, tables(frames.series), tables(frames.static)), cohort)
    assert ("length" in tables(frames.static).column_names) == (name == "ragged")


@settings(max_examples=20)
@given(cohort=cohorts())
def test_any_cohort_is_in_its_frames(cohort: Cohort) -> None:
    assert same(Cohort.from_tables(cohort.schema, *cohort.to_frames()), cohort)
    polars = [
        pa.Table.from_arrays([pa.array(column.to_list()) for column in frame], names=frame.columns)
        for frame in cohort.to_polars()
    ]  # its own to_arrow panics at a name with a zero in it
    assert same(Cohort.from_tables(cohort.schema, *polars), cohort)


def test_pandas_keeps_whole_numbers_and_names(mixed: Cohort) -> None:
    holes = replace(mixed, static={**mixed.static, "unit": np.where(np.arange(120) < 5, np.nan, mixed.static["unit"])})
    series, static = holes.to_pandas()
    assert str(static["unit"].dtype) == "Int64"
    assert static["unit"].isna().sum() == 5
    assert set(static["unit"].dropna()) == {1, 2, 3, 4, 5}
    assert set(series["rhythm"].dropna()) == {"sinus", "af", "paced"}
    assert str(series["pulse"].dtype) == "float64"


def test_arrow_tables_say_that_a_cohort_is_synthetic(mixed: Cohort) -> None:
    made = replace(mixed, provenance=CohortProvenance(generator="timediff"))
    assert all(b"timediff" in table.schema.metadata for table in made.to_frames())
    assert all(not table.schema.metadata for table in mixed.to_frames())


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_without_the_package_it_says_what_to_install(
    package: str, mixed: Cohort, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(TimeDiffError, match=f"to_{package} needs {package}: pip install {package}"):
        getattr(mixed, f"to_{package}")()


def test_neither_is_imported_with_a_cohort() -> None:
    watch = "import sys, timediff as td; td.Cohort; print(sorted({'pandas', 'polars'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_printed_it_shows_shape_and_features(mixed: Cohort, ragged: Cohort) -> None:
    lines = repr(mixed).splitlines()
    assert lines == [
        "Cohort: 120 stays of 6 steps of 1h",
        "  4 temporal: pulse, rhythm, lactate, ventilated",
        "  5 static: unit, height, sex, patient (patient), died (label)",
    ]
    assert repr(ragged).startswith("Cohort: 120 stays of up to 6 steps of 1h\n")
    made = replace(mixed, provenance=CohortProvenance(generator="timediff"))
    assert str(made).splitlines()[3] == "  synthetic: by timediff"


def test_printed_it_shows_no_value() -> None:
    """The same text whatever the values and ids are."""
    schema = Schema((Feature("x", "continuous"), Feature("who", "categorical", "static", role="patient")), 2)

    def cohort(value: float, name: str) -> Cohort:
        ids = np.array([name], dtype=object)
        return Cohort(schema, ids, {"x": np.full((1, 2), value)}, {"who": ids}, np.array([1 if value > 5 else 2]))

    assert repr(cohort(1.25, "Ada")) == repr(cohort(77.5, "Bob"))
    assert re.findall(r"\d+", repr(cohort(77.5, "Bob"))) == ["1", "2", "1", "1", "1"]


def test_a_thousand_features_are_a_short_text(icu: Cohort) -> None:
    schema = Schema(tuple(Feature(f"feature {i}", "continuous") for i in range(1000)), 1)
    cohort = Cohort(schema, np.arange(1), {f.name: np.zeros((1, 1)) for f in schema.features}, {})
    assert "1,000 temporal: feature 0, " in repr(cohort)
    assert "and 988 more" in repr(cohort)
    assert "0 static: none" in repr(cohort)
