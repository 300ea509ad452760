"""Whatever is exported holds the same values when it is read back; texts never become formulas."""

import gzip
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import timediff as td
from conftest import same
from helpers.read_back import from_csv, from_long, from_wide, from_xlsx
from helpers.strategies import cohorts
from timediff.data import parts as parts_module
from timediff.data.cohort import Cohort
from timediff.data.provenance import CohortProvenance
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.exports.registry import EXPORTS
from timediff.exports.xlsx import UNWRITABLE, XLSX

BACK: dict[str, Callable[[Path, Schema, pa.DataType], Cohort]] = {
    "csv": from_csv,
    "csv.gz": from_csv,
    "parquet-wide": lambda path, schema, ids: from_wide(path, schema),
    "parquet-long": from_long,
    "xlsx": from_xlsx,
}
FORMULAS = ("=1+1", "+A1", "-A1", "@SUM(A1)", "#N/A", "'=1", "plain")


def place(folder: Path, to: str) -> Path:
    return folder / ("out.xlsx" if to == "xlsx" else "out")


def id_type(cohort: Cohort) -> pa.DataType:
    return pa.array(cohort.stay_id).type


@pytest.fixture(params=BACK)
def to(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(cohort=cohorts(), number=st.integers(0, 10**9))
def test_any_cohort_is_read_back(
    to: str, cohort: Cohort, number: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    out = place(tmp_path_factory.mktemp("any"), to)
    if to == "xlsx":
        if unfit_for_a_sheet(cohort):
            return
        cohort = to_sixteen_digits(cohort)
    td.export(cohort, out, to=to)
    assert same(BACK[to](out, cohort.schema, id_type(cohort)), cohort)


def to_sixteen_digits(cohort: Cohort) -> Cohort:
    """As a sheet holds numbers."""
    free = tuple(replace(feature, bounds=None) for feature in cohort.schema.features)  # a last digit may leave them
    rounded = np.vectorize(lambda x: float(f"{x:.16g}"), otypes=[float])
    return replace(
        cohort,
        schema=replace(cohort.schema, features=free),
        series={name: rounded(values) for name, values in cohort.series.items()},
        static={name: rounded(v) if v.dtype.kind == "f" else v for name, v in cohort.static.items()},
    )


def unfit_for_a_sheet(cohort: Cohort) -> bool:
    texts = [*map(str, cohort.stay_id), *(f.name for f in cohort.schema.features)]
    texts += [str(name) for f in cohort.schema.features for name in f.classes]
    return any(UNWRITABLE.search(text) or not text for text in texts)


@pytest.mark.parametrize("name", ["mixed", "ragged"])
def test_a_folder_and_a_cohort_are_exported_alike(
    name: str, to: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With parts so small that there are many."""
    cohort = request.getfixturevalue(name)
    cohort = to_sixteen_digits(cohort) if to == "xlsx" else cohort
    cohort.write(tmp_path / "cohort")
    monkeypatch.setattr(parts_module, "CELLS", 7 * 24)
    calls: list[int] = []
    td.export(tmp_path / "cohort", place(tmp_path, to), to=to, progress=lambda done, total, **_: calls.append(done))
    back = BACK[to](place(tmp_path, to), cohort.schema, id_type(cohort))
    if to == "parquet-long":
        names = pq.read_schema(tmp_path / "out" / "cohort.parquet").names
        assert names == ["stay_id", "step", "feature", "value", "text"]
    assert same(back, cohort)
    assert calls[-1] == len(cohort)
    assert len(calls) > 10


def test_what_lies_beyond_a_stay_is_not_exported(to: str, ragged: Cohort, tmp_path: Path) -> None:
    ragged = to_sixteen_digits(ragged)
    beyond = {name: np.where(ragged.step_mask, values, 1.0) for name, values in ragged.series.items()}
    td.export(replace(ragged, series=beyond), place(tmp_path, to), to=to)
    assert same(BACK[to](place(tmp_path, to), ragged.schema, id_type(ragged)), ragged)


def test_long_rows_lie_by_stay_and_step_with_static_ones_first(mixed: Cohort, tmp_path: Path) -> None:
    td.export(mixed, tmp_path / "out", to="parquet-long")
    rows = pq.read_table(tmp_path / "out" / "cohort.parquet").to_pylist()
    place_of = [(row["stay_id"], -1 if row["step"] is None else row["step"]) for row in rows]
    assert place_of == sorted(place_of)
    assert next(row["feature"] for row in rows if row["step"] is None) == "length"


def test_null_is_an_empty_field_and_classes_have_names(mixed: Cohort, tmp_path: Path) -> None:
    td.export(mixed, tmp_path / "out", to="csv")
    series = (tmp_path / "out" / "series.csv").read_text().splitlines()
    static = (tmp_path / "out" / "static.csv").read_text().splitlines()
    assert series[0] == '"stay_id","step","pulse","rhythm","lactate","ventilated"'
    assert static[0] == '"stay_id","unit","height","sex","patient","died"'
    assert any(",," in line for line in series)
    assert {line.split(",")[3] for line in static[1:]} == {'"F"', '"M"'}


def test_gzipped_it_is_the_same_and_the_same_bytes_again(mixed: Cohort, tmp_path: Path) -> None:
    for name, to in (("plain", "csv"), ("one", "csv.gz"), ("two", "csv.gz")):
        td.export(mixed, tmp_path / name, to=to)
    one, two = ((tmp_path / name / "series.csv.gz").read_bytes() for name in ("one", "two"))
    assert one == two
    assert gzip.decompress(one) == (tmp_path / "plain" / "series.csv").read_bytes()


@pytest.fixture
def risky() -> Cohort:
    """Texts that a spreadsheet would compute: classes, names of features and ids of stays."""
    schema = Schema((Feature("=x", "continuous"), Feature("kind", "categorical", "static", classes=FORMULAS)), 1)
    count = len(FORMULAS)
    return Cohort(
        schema, np.array(FORMULAS, dtype=object), {"=x": np.ones((count, 1))}, {"kind": np.arange(count) * 1.0}
    )


def test_no_cell_of_a_csv_is_a_formula(risky: Cohort, tmp_path: Path) -> None:
    td.export(risky, tmp_path / "out", to="csv")
    cells = [
        cell.strip('"')
        for name in ("series", "static")
        for line in (tmp_path / "out" / f"{name}.csv").read_text().splitlines()
        for cell in line.split(",")
    ]
    assert [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))] == []
    assert same(from_csv(tmp_path / "out", risky.schema, pa.string()), risky)


def test_a_negative_number_is_a_number(tmp_path: Path) -> None:
    cohort = Cohort(Schema((Feature("x", "continuous"),), 1), np.arange(1), {"x": np.array([[-1.5]])}, {})
    td.export(cohort, tmp_path / "out", to="csv")
    assert (tmp_path / "out" / "series.csv").read_text().splitlines()[1] == "0,0,-1.5"


def test_no_cell_of_a_sheet_is_a_formula(risky: Cohort, tmp_path: Path) -> None:
    from openpyxl import load_workbook

    td.export(risky, tmp_path / "out.xlsx", to="xlsx")
    cells = [cell for sheet in load_workbook(tmp_path / "out.xlsx") for row in sheet.iter_rows() for cell in row]
    texts = [cell for cell in cells if isinstance(cell.value, str)]
    assert {cell.data_type for cell in texts} == {"s"}
    assert {cell.value for cell in texts} >= {"=x", *FORMULAS}
    assert {bool(cell.quotePrefix) for cell in texts if cell.value[0] in "=+-@"} == {True}
    assert same(from_xlsx(tmp_path / "out.xlsx", risky.schema, pa.string()), risky)


def test_a_long_number_of_a_stay_keeps_its_digits(icu: Cohort, tmp_path: Path) -> None:
    from openpyxl import load_workbook

    one = replace(icu.take(np.arange(1)), stay_id=np.array([2**60 + 1]))
    td.export(one, tmp_path / "out.xlsx", to="xlsx")
    assert load_workbook(tmp_path / "out.xlsx")["static"]["A2"].value == str(2**60 + 1)


@pytest.mark.parametrize("text", ["\x01", "a\rb", "x" * 40_000])
def test_what_no_sheet_holds_is_a_sentence_without_it(text: str, icu: Cohort, tmp_path: Path) -> None:
    one = replace(icu.take(np.arange(1)), stay_id=np.array([text], dtype=object))
    with pytest.raises(TimeDiffError, match="export to parquet-wide or csv") as caught:
        td.export(one, tmp_path / "out.xlsx", to="xlsx")
    assert text not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_more_rows_than_a_sheet_has_are_refused(tmp_path: Path) -> None:
    schema = Schema((Feature("x", "continuous"),), 1_000_000)
    cohort = Cohort(schema, np.arange(2), {"x": np.zeros((2, 1_000_000))}, {})
    with pytest.raises(TimeDiffError, match="2,000,001 rows, and a sheet at most 1,048,576"):
        td.export(cohort, tmp_path / "out.xlsx", to="xlsx")


def test_without_openpyxl_it_says_what_to_install(icu: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(TimeDiffError, match=r"pip install 'timediff-icu\[excel\]'"):
        td.export(icu, tmp_path / "out.xlsx", to="xlsx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", EXPORTS.names())
def test_an_existing_output_is_refused_and_untouched(name: str, icu: Cohort, tmp_path: Path) -> None:
    out = place(tmp_path, name)
    out.write_text("mine")
    with pytest.raises(TimeDiffError, match="exists already"):
        td.export(icu, out, to=name)
    with pytest.raises(TimeDiffError, match="exists already"):  # before anything is read
        td.export(tmp_path / "no cohort", out, to=name)
    assert out.read_text() == "mine"


@pytest.mark.parametrize("name", EXPORTS.names())
def test_a_failure_half_way_leaves_nothing(
    name: str, mixed: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "CELLS", 50 * 24)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))

    def stop(done: int, total: int, **values: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        td.export(mixed, place(tmp_path, name), to=name, progress=stop)
    assert list(tmp_path.iterdir()) == [temporary]
    assert list(temporary.iterdir()) == []


def test_odd_requests_are_sentences(icu: Cohort, tmp_path: Path) -> None:
    for change, said in (
        ({"to": "cvs"}, "did you mean csv"),
        ({"to": "xlsx"}, "would not be what its name says"),
        ({"to": "csv", "cohort": icu.take(np.arange(0))}, "the cohort is empty"),
        ({"to": "csv", "cohort": tmp_path}, "is not a cohort"),
    ):
        arguments = {"cohort": icu, **change}
        with pytest.raises(TimeDiffError, match=said):
            td.export(path=tmp_path / "out", **arguments)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_every_export_says_that_its_stays_are_synthetic(mixed: Cohort, tmp_path: Path) -> None:
    known = CohortProvenance(generator="timediff", seed=1, stays=120, date="2026-11-19")
    made = replace(mixed, provenance=known)
    for name in EXPORTS.names():
        out = place(tmp_path / name, name)
        td.export(made, out, to=name)
        if name == "xlsx":
            from openpyxl import load_workbook

            assert load_workbook(out)["provenance"]["A1"].value == str(known)
            continue
        (path,) = out.rglob("provenance.json")
        assert json.loads(path.read_text())["synthetic"] is True
        for file in [*out.rglob("cohort.parquet"), *out.glob("data/*.parquet")]:
            assert json.loads(pq.read_schema(file).metadata[b"timediff"])["generator"] == "timediff"
    assert EXPORTS("xlsx") is XLSX


def test_a_real_cohort_is_not_called_synthetic(mixed: Cohort, tmp_path: Path) -> None:
    for name in EXPORTS.names():
        td.export(mixed, place(tmp_path / name, name), to=name)
    assert list(tmp_path.rglob("provenance.json")) == []
