"""MEDS: the package's own validation, the standard's two laws of subjects, and the way back by `timediff extract`."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from meds import CodeMetadataSchema, DataSchema, DatasetMetadataSchema

import timediff as td
from helpers.strategies import cohorts
from timediff.data import parts as parts_module
from timediff.data.cohort import Cohort
from timediff.data.parts import parts_of
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.exports.meds import Timeline, code_of
from timediff.sources.registry import source


def shards(out: Path) -> list[pa.Table]:
    return [pq.read_table(path) for path in sorted(out.glob("data/*.parquet"))]


def events(out: Path) -> pa.Table:
    return pa.concat_tables(shards(out))


def valid(out: Path) -> None:
    for shard in shards(out):
        DataSchema.validate(shard)
    codes = pq.read_table(out / "metadata" / "codes.parquet")
    CodeMetadataSchema.validate(codes)
    DatasetMetadataSchema.validate(json.loads((out / "metadata" / "dataset.json").read_text()))
    assert set(events(out)["code"].to_pylist()) <= set(codes["code"].to_pylist())
    seen: set[int] = set()
    for shard in shards(out):
        subject, time = shard["subject_id"].to_numpy(), shard["time"].to_numpy()
        begins = np.append(0, np.flatnonzero(subject[1:] != subject[:-1]) + 1)
        own = subject[begins].tolist()
        assert len(own) == len(set(own))  # contiguous
        assert not seen & set(own)  # in one shard
        seen |= set(own)
        inner = np.diff(time) >= np.timedelta64(0)
        assert inner[subject[1:] == subject[:-1]].all()  # sorted by time


@pytest.mark.parametrize("name", ["icu", "mixed", "ragged"])
@pytest.mark.parametrize("cells", [168, 2_000_000])
def test_what_is_written_is_valid(
    name: str, cells: int, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one shard, and in many of few stays, over which a patient's stays are spread in the cohort."""
    monkeypatch.setattr(parts_module, "CELLS", cells)
    cohort = request.getfixturevalue(name)
    td.export(cohort, tmp_path / "out", to="meds")
    valid(tmp_path / "out")
    assert (len(shards(tmp_path / "out")) > 3) == (cells < 1000)
    assert sorted(path.name for path in (tmp_path / "out" / "data").iterdir()) == sorted(
        f"{i}.parquet" for i in range(len(shards(tmp_path / "out")))
    )


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(cohort=cohorts())
def test_any_cohort_is_valid_and_has_all_values(cohort: Cohort, tmp_path_factory: pytest.TempPathFactory) -> None:
    out = tmp_path_factory.mktemp("any") / "out"
    td.export(cohort, out, to="meds")
    valid(out)
    table = events(out).to_pylist()
    for feature in cohort.schema.features:
        values = cohort.values(feature.name)
        for stay in range(len(cohort)):
            mine = [row for row in table if row["stay_id"] == cohort.stay_id[stay]]
            seen = np.atleast_1d(values[stay])
            wanted = seen[~np.isnan(seen)].tolist()
            if feature.discrete:
                codes = [code_of(feature, name) for name in feature.classes]
                assert [codes.index(row["code"]) for row in mine if row["code"] in codes] == wanted
            else:
                assert [row["value"] for row in mine if row["code"] == code_of(feature)] == wanted


@pytest.mark.parametrize("cells", [168, 2_000_000])
def test_extract_reads_measurements_patients_and_the_label_back(
    cells: int, mixed: Cohort, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts_module, "CELLS", cells)
    td.export(mixed, tmp_path / "out", to="meds")
    kind = source("meds")
    back = kind.extract(str(tmp_path / "out"), kind.resolve(tmp_path / "out" / "metadata" / "extract.toml", {})).cohort
    order = np.argsort(mixed.static["patient"], kind="stable")  # stays are counted by patient and start
    expected = mixed.take(
        order[~np.isnan(np.hstack([mixed.series["pulse"], mixed.series["lactate"]])).all(axis=1)[order]]
    )
    assert len(back) == len(expected) > 110
    for name in ("pulse", "lactate"):
        assert np.array_equal(back.series[name], expected.series[name], equal_nan=True)
        assert back.schema[name] == mixed.schema[name]
    assert np.array_equal(back.static["patient"], expected.static["patient"])
    assert np.array_equal(back.static["died"], expected.static["died"])


def test_a_stay_begins_and_ends_with_its_events_and_the_outcome_comes_last(ragged: Cohort, tmp_path: Path) -> None:
    td.export(ragged, tmp_path / "out", to="meds")
    rows = events(tmp_path / "out").to_pylist()
    for number, stay in enumerate(ragged.stay_id):
        mine = [row for row in rows if row["stay_id"] == stay]
        assert mine[0]["code"] == "STAY_START"
        assert [row["code"].split("//")[0] for row in mine[-2:]] == ["OUTCOME", "STAY_END"]
        assert mine[-2]["time"] == mine[-1]["time"]
        hours = (mine[-1]["time"] - mine[0]["time"]).total_seconds() / 3600
        assert hours == ragged.lengths[number]


def test_no_two_features_share_a_code_and_none_ends_in_a_star() -> None:
    def code(name: str, value: object = None) -> str:
        return code_of(Feature(name, "continuous"), value)

    assert code("a//b") != code("a", "b")
    assert code("a%2Fb") != code("a/b")
    assert code("heart*") == "MEASUREMENT//heart%2A"


def test_stays_of_a_patient_follow_each_other(ragged: Cohort) -> None:
    timeline = Timeline(parts_of(ragged, 7))
    for patient in np.unique(ragged.static["patient"]):
        mine = timeline.subject == patient
        start, end = timeline.start[mine], (timeline.start + timeline.duration)[mine]
        assert start[0] == 946_684_800
        assert (start[1:] == end[:-1] + 86_400).all()
        assert len(set(timeline.shard[mine])) == 1


def test_without_patients_a_stay_is_a_subject(icu: Cohort, tmp_path: Path) -> None:
    td.export(icu, tmp_path / "out", to="meds")
    assert set(events(tmp_path / "out")["subject_id"].to_pylist()) == set(icu.stay_id.tolist())
    named = replace(icu, stay_id=np.array([f"stay {i}" for i in icu.stay_id], dtype=object))
    td.export(named, tmp_path / "named", to="meds")
    assert set(events(tmp_path / "named")["subject_id"].to_pylist()) == set(range(1, len(icu) + 1))
    assert set(events(tmp_path / "named")["stay_id"].to_pylist()) == set(named.stay_id)


def test_numbers_are_single_precision_by_the_standard_and_whole_beside(mixed: Cohort, tmp_path: Path) -> None:
    big = replace(mixed, series={**mixed.series, "lactate": np.full((120, 6), 1e300)})
    td.export(big, tmp_path / "out", to="meds")
    table = events(tmp_path / "out")
    assert table.schema.field("numeric_value").type == pa.float32()
    rows = [row for row in table.to_pylist() if row["code"] == "MEASUREMENT//lactate"]
    assert {(row["numeric_value"], row["value"]) for row in rows} == {(None, 1e300)}


def test_times_that_no_calendar_has_are_refused(tmp_path: Path, mixed: Cohort) -> None:
    schema = Schema(mixed.schema.features, 6, "3650d")
    td.export(replace(mixed, schema=schema), tmp_path / "years", to="meds")
    late = Cohort(Schema((Feature("x", "continuous"),), 1000, "3650d"), np.arange(1), {"x": np.zeros((1, 1000))}, {})
    with pytest.raises(TimeDiffError, match="after the year 9999"):
        td.export(late, tmp_path / "out", to="meds")
    schema = Schema(mixed.schema.features, 6, "1fortnight")
    with pytest.raises(TimeDiffError, match="expected a duration"):
        td.export(replace(mixed, schema=schema), tmp_path / "out", to="meds")
    assert [path.name for path in tmp_path.iterdir()] == ["years"]


def test_the_tasks_of_the_page_on_meds_tools_name_codes_that_an_export_has(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "meds-tools.md").read_text()
    (task,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    asked = {one["code"] for one in yaml.safe_load(task)["predicates"].values()}
    (task,) = re.findall(r"```python.*?\n(.*?)```", page, re.DOTALL)
    asked |= set(re.findall(r'event\.code == "(.*?)"', task))
    cohort = td.simulate(120, steps=24, seed=0)
    td.export(cohort, tmp_path / "events", to="meds")
    codes = events(tmp_path / "events")["code"].to_pylist()
    assert len(asked) == 3
    assert asked <= set(codes)
    assert codes.count("OUTCOME//died//1") == cohort.label.sum()
