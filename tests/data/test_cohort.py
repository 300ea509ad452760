"""A cohort folder holds the cohort; a folder that does not hold one says why, all of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from conftest import same
from timediff.data.cohort import Cohort, concatenate, read_cohort
from timediff.data.schema import Feature, Schema
from timediff.errors import Problems, TimeDiffError
from timediff.runtime.cell_values import show_values


@pytest.mark.parametrize("name", ["icu", "mixed", "ragged"])
def test_written_and_read_is_the_same(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    cohort = request.getfixturevalue(name)
    cohort.write(tmp_path / "cohort")
    again = read_cohort(tmp_path / "cohort")
    assert same(again, cohort)
    assert again.digest() == cohort.digest()


def test_tables_hold_classes_by_name_and_null_for_missing(mixed: Cohort) -> None:
    series, static = mixed.tables()
    assert series.column_names == ["stay_id", "step", "pulse", "rhythm", "lactate", "ventilated"]
    assert set(series["rhythm"].to_pylist()) == {"sinus", "af", "paced", None}
    assert series["lactate"].null_count == int(np.isnan(mixed.series["lactate"]).sum())
    assert set(static["sex"].to_pylist()) == {"F", "M"}
    assert set(static["unit"].to_pylist()) == {1, 2, 3, 4, 5}


def test_a_missing_row_is_all_missing(mixed: Cohort) -> None:
    series, static = mixed.tables()
    kept = series.filter(pc.not_equal(series["step"], 3))
    again = Cohort.from_tables(mixed.schema, kept, static)
    for name, values in mixed.series.items():
        assert np.isnan(again.series[name][:, 3]).all()
        assert np.array_equal(again.series[name][:, 4:], values[:, 4:], equal_nan=True)


def test_rows_may_come_in_any_order(mixed: Cohort) -> None:
    series, static = mixed.tables()
    order = np.random.default_rng(0).permutation(series.num_rows)
    assert same(Cohort.from_tables(mixed.schema, series.take(order), static), mixed)


def test_types_as_other_tools_write_them(mixed: Cohort) -> None:
    """Whole numbers with nulls become floats in pandas, texts become dictionaries, flags booleans."""
    series, static = mixed.tables()
    series = _with(series, "ventilated", series["ventilated"].cast(pa.bool_()))
    series = _with(series, "rhythm", series["rhythm"].dictionary_encode())
    static = _with(static, "unit", static["unit"].cast(pa.float64()))
    static = _with(static, "stay_id", static["stay_id"].cast(pa.int32()))
    assert same(Cohort.from_tables(mixed.schema, series, static), mixed)


def test_ids_of_any_form(mixed: Cohort) -> None:
    """Texts, and texts as pandas' categories or R's factors."""
    series, static = mixed.tables()
    for form in (lambda ids: ids.cast(pa.string()), lambda ids: ids.cast(pa.string()).dictionary_encode()):
        again = Cohort.from_tables(
            mixed.schema,
            _with(series, "stay_id", form(series["stay_id"])),
            _with(static, "stay_id", form(static["stay_id"])),
        )
        assert again.stay_id.tolist() == [str(i) for i in mixed.stay_id]
        assert np.array_equal(again.series["pulse"], mixed.series["pulse"], equal_nan=True)


def _with(table: pa.Table, name: str, column: object) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _edited(table: pa.Table, name: str, row: int, value: object) -> pa.Table:
    values = table[name].to_pylist()
    values[row] = value
    return _with(table, name, pa.array(values))


def _nested(table: pa.Table) -> pa.Array:
    return pa.array([[1, 2]] * len(table), pa.list_(pa.int64(), 2))


def _lengths(table: pa.Table, length: int | None = 6, kind: pa.DataType | None = None) -> pa.Table:
    return table.append_column("length", pa.array([length] * len(table), kind or pa.int64()))


MISTAKES = {
    "infinite": (lambda s, t: (_edited(s, "lactate", 3, float("inf")), t), "'lactate': 1 infinite"),
    "class": (lambda s, t: (_edited(s, "rhythm", 3, "flutter"), t), r"none of its classes.*: 1 different value \(a te"),
    "below": (lambda s, t: (s, _edited(t, "died", 3, -1)), r"'died': values that are none of its classes \(0, 1\)"),
    "bounds": (lambda s, t: (_edited(s, "pulse", 3, 900.0), t), "'pulse': 1 values outside its bounds 20 to 250"),
    "type": (lambda s, t: (_with(s, "pulse", s["pulse"].cast(pa.string())), t), "'pulse': expected numbers"),
    "repeated": (lambda s, t: (pa.concat_tables([s, s[:2]]), t), "2 rows repeat"),
    "step": (lambda s, t: (_edited(s, "step", 3, 6), t), "1 rows have a step outside 0 to 5"),
    "stranger": (lambda s, t: (_edited(s, "stay_id", 3, 9), t), "1 rows belong to a stay"),
    "label": (lambda s, t: (s, _edited(t, "died", 3, None)), "label is missing for 1 of 120"),
    "patient": (lambda s, t: (s, _edited(t, "patient", 3, None)), "1 stays have no patient"),
    "column": (lambda s, t: (s.drop_columns(["pulse"]), t), "no column 'pulse'"),
    "extra": (lambda s, t: (s.append_column("x", s["pulse"]), t), "'x' that the schema does not list"),
    "no label": (lambda s, t: (s, t.drop_columns(["died"])), "no column 'died'"),
    "empty": (lambda s, t: (s[:0], t[:0]), "empty"),
    "two rows": (lambda s, t: (s, pa.concat_tables([t, t[:1]])), "repeat a stay_id"),
    "length": (lambda s, t: (s, t.append_column("length", pa.array([9] * 120))), "length outside 1 to 6"),
    "beyond": (lambda s, t: (s, t.append_column("length", pa.array([2] * 120))), "beyond their stay's length"),
    "fractional id": (lambda s, t: (_with(s, "stay_id", pa.array([0.5] * len(s))), t), "text or whole numbers"),
    "date id": (lambda s, t: (_with(s, "stay_id", s["step"].cast(pa.int32()).cast(pa.date32())), t), "not date32"),
    "huge id": (lambda s, t: (_with(s, "stay_id", pa.array([2**63] * len(s), pa.uint64())), t), "below 2"),
    "dates": (lambda s, t: (_with(s, "pulse", s["step"].cast(pa.int32()).cast(pa.date32())), t), "found date32"),
    "lists": (lambda s, t: (_with(s, "rhythm", pa.array([["af"]] * len(s))), t), "found list"),
    "decimal": (lambda s, t: (_with(s, "ventilated", s["ventilated"].cast(pa.decimal128(21, 1))), t), "found decimal"),
    "nan patient": (lambda s, t: (s, _with(t, "patient", pa.array([float("nan")] * 120))), "120 stays have no patient"),
    "nested patient": (lambda s, t: (s, _with(t, "patient", _nested(t))), "a patient is a text or a number, not fixed"),
    "two ids": (lambda s, t: (s.append_column("stay_id", s["stay_id"]), t), "column 'stay_id' more than once"),
    "two static ids": (lambda s, t: (s, t.append_column("stay_id", t["stay_id"])), "column 'stay_id' more than once"),
    "two steps": (lambda s, t: (s.append_column("step", s["step"]), t), "column 'step' more than once"),
    "two features": (lambda s, t: (s.append_column("pulse", s["pulse"]), t), "column 'pulse' more than once"),
    "two lengths": (lambda s, t: (s, _lengths(_lengths(t))), "column 'length' more than once"),
    "huge step": (lambda s, t: (_with(s, "step", pa.array([2**64 - 1] * len(s), pa.uint64())), t), "step outside 0"),
    "huge length": (lambda s, t: (s, _lengths(t, 2**63, pa.uint64())), "120 stays have a length outside"),
    "no lengths": (lambda s, t: (s, _lengths(t, None)), "length must be a whole number .* with 120 nulls"),
    "true values": (lambda s, t: (_with(s, "pulse", pa.array([True] * len(s))), t), "expected numbers, found bool"),
    "uuid": (lambda s, t: (s, _with(t, "sex", pa.array([b"x" * 16] * 120, pa.uuid()))), "found extension"),
    "uuid patient": (lambda s, t: (s, _with(t, "patient", pa.array([b"x" * 16] * 120, pa.uuid()))), "not extension"),
    "structs": (lambda s, t: (_with(s, "pulse", pa.array([{"a": 1}] * len(s))), t), "found struct"),
    "dictionary of bytes": (
        lambda s, t: (s, _with(t, "sex", pa.array([b"F"] * 120).dictionary_encode())), "found dictionary",
    ),
    "id type": (lambda s, t: (s, _with(t, "stay_id", t["stay_id"].cast(pa.string()))), "stay_id is int64"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_each_mistake_is_named(mistake: str, mixed: Cohort) -> None:
    change, said = MISTAKES[mistake]
    with pytest.raises(Problems, match=said):
        Cohort.from_tables(mixed.schema, *change(*mixed.tables()))


def test_a_value_of_the_data_is_shown_only_on_request(mixed: Cohort) -> None:
    tables = MISTAKES["class"][0](*mixed.tables())
    with pytest.raises(Problems) as caught:
        Cohort.from_tables(mixed.schema, *tables)
    assert "flutter" not in str(caught.value)
    with show_values(), pytest.raises(Problems, match="'flutter'"):
        Cohort.from_tables(mixed.schema, *tables)


def test_a_thousand_missing_columns_are_a_short_message(mixed: Cohort) -> None:
    features = tuple(Feature(f"a rather long name of a feature, number {i}", "continuous") for i in range(3000))
    with pytest.raises(Problems, match="and 2,996 more") as caught:
        Cohort.from_tables(Schema(features, steps=6), *mixed.tables())
    assert len(str(caught.value)) < 2000


def test_a_grid_that_no_memory_holds_is_refused_before_it_is_made() -> None:
    schema = Schema((Feature("pulse", "continuous"),), steps=1_000_000)
    stays = pa.array(np.arange(200_000))
    series = pa.table({"stay_id": stays[:1], "step": pa.array([0]), "pulse": pa.array([60.0])})
    with pytest.raises(TimeDiffError, match=r"would take at least 1\.6 TB of memory"):
        Cohort.from_tables(schema, series, pa.table({"stay_id": stays}))


def test_empty_row_groups_hold_nothing(mixed: Cohort, tmp_path: Path) -> None:
    mixed.write(tmp_path / "cohort")
    series, _ = mixed.tables()
    with pq.ParquetWriter(tmp_path / "cohort" / "series.parquet", series.schema) as writer:
        for part in (series[:0], series, series[:0]):
            writer.write_table(part)
    assert same(read_cohort(tmp_path / "cohort"), mixed)


@pytest.mark.parametrize("index", [-1.0, 2.0, 0.5])
def test_a_class_that_is_none_is_not_written(index: float, mixed: Cohort) -> None:
    wrong = replace(mixed, static={**mixed.static, "died": np.full(len(mixed), index)})
    with pytest.raises(TimeDiffError, match="'died': 120 values are none of its classes"):
        wrong.tables()


def test_all_mistakes_are_said_at_once(mixed: Cohort) -> None:
    tables = mixed.tables()
    for mistake in ("infinite", "class", "bounds", "step", "label"):
        tables = MISTAKES[mistake][0](*tables)
    with pytest.raises(Problems) as caught:
        Cohort.from_tables(mixed.schema, *tables)
    assert len(caught.value.problems) == 5


def test_folders_that_are_no_cohort(icu: Cohort, tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match="not a folder"):
        read_cohort(tmp_path / "nothing")
    with pytest.raises(TimeDiffError, match=r"no schema\.toml and no series\.parquet"):
        read_cohort(tmp_path)
    icu.write(tmp_path / "cohort")
    (tmp_path / "cohort" / "series.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(Problems, match="not a readable Parquet file"):
        read_cohort(tmp_path / "cohort")


def test_static_table_is_optional_without_static_features(icu: Cohort, tmp_path: Path) -> None:
    plain = replace(icu, schema=Schema(icu.schema.temporal, icu.schema.steps), static={})
    plain.write(tmp_path / "cohort")
    (tmp_path / "cohort" / "static.parquet").unlink()
    assert same(read_cohort(tmp_path / "cohort"), plain)


def test_an_existing_folder_is_refused_and_untouched(icu: Cohort, tmp_path: Path) -> None:
    (tmp_path / "cohort").mkdir()
    with pytest.raises(TimeDiffError, match="exists already"):
        icu.write(tmp_path / "cohort")
    assert list((tmp_path / "cohort").iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(icu: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    with pytest.raises(TimeDiffError, match="the disk is full"):
        icu.write(tmp_path / "cohort")
    assert list(tmp_path.iterdir()) == []


def test_horizon_keeps_long_stays_only(ragged: Cohort) -> None:
    cut = ragged.horizon(4)
    assert cut.length is None
    assert cut.schema.steps == 4
    assert np.array_equal(cut.stay_id, ragged.stay_id[ragged.lengths >= 4])
    with pytest.raises(TimeDiffError, match="expected 1 to 6"):
        ragged.horizon(7)


def test_parts_joined_are_the_whole(ragged: Cohort) -> None:
    halves = [ragged.take(np.arange(50)), ragged.take(np.arange(50, 120))]
    assert same(concatenate(halves), ragged)


def test_every_cohort_knows_its_lengths(mixed: Cohort, ragged: Cohort) -> None:
    for cohort in (mixed, ragged, ragged.take(np.arange(0)), ragged.horizon(4)):
        assert cohort.lengths.shape == (len(cohort),)
        assert cohort.lengths.dtype == np.int64
        assert np.array_equal(cohort.step_mask.sum(axis=1), cohort.lengths)


def test_equal_and_different_lengths_are_joined(mixed: Cohort, ragged: Cohort) -> None:
    both = concatenate([mixed, ragged])
    assert both.lengths.tolist() == [*mixed.lengths, *ragged.lengths]
    assert same(both.take(np.arange(len(mixed))), mixed)
    assert same(both.take(np.arange(len(mixed), len(both))), ragged)


def test_the_digest_is_of_what_lies_within_stays(ragged: Cohort, tmp_path: Path) -> None:
    beyond = {name: np.where(ragged.step_mask, values, 1.0) for name, values in ragged.series.items()}
    careless = replace(ragged, series=beyond)
    careless.write(tmp_path / "cohort")
    assert careless.digest() == ragged.digest() == read_cohort(tmp_path / "cohort").digest()
    assert ragged.digest() != replace(ragged, length=None).digest()


@pytest.mark.parametrize("length", [[0], [7], [1, 2]])
def test_a_length_lies_on_the_grid(length: list[int], mixed: Cohort) -> None:
    with pytest.raises(ValueError, match="length: expected 1 whole numbers from 1 to 6"):
        replace(mixed.take(np.arange(1)), length=np.array(length))
