"""The supplement packed as in the paper, on simulated tables: a channel of codes, one of antibiotics, a code a step."""

from collections import defaultdict
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from conftest import same
from helpers.raw_tables import Tables
from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort, read_cohort
from timediff.errors import TimeDiffError
from timediff.settings.training import CodecSettings
from timediff.sources.mimic4_extended import extended_settings
from timediff.sources.raw import write_raw
from timediff.sources.registry import resolve, source


def extracted(raw: Path, *, as_published: bool = False, **changes: object) -> Cohort:
    settings = resolve("mimic4", changes={"extended": True, **changes}, as_published=as_published)
    return source("mimic4").extract(str(raw / "raw"), settings).cohort


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("supplement") / "mimic4"
    write_raw("mimic4", folder, 40, seed=5)
    return folder


@pytest.fixture(scope="module")
def tables(raw: Path) -> Tables:
    return Tables(raw)


@pytest.fixture(scope="module")
def packed(raw: Path) -> Cohort:
    return extracted(raw, as_published=True)


def stays_of(cohort: Cohort, tables: Tables) -> list[dict[str, str]]:
    rows = {int(row["stay_id"]): row for row in tables["icu/icustays"]}
    return [rows[stay] for stay in cohort.stay_id]


def most_frequent(held: dict[str, set[str]], number: int) -> list[str]:
    return sorted(held, key=lambda key: (-len(held[key]), key))[:number]


def test_step_k_is_the_code_that_is_the_kth_in_frequency(packed: Cohort, tables: Tables) -> None:
    held = defaultdict(set)
    for row in tables["hosp/diagnoses_icd"]:
        held[row["icd_code"], row["icd_version"]].add(row["hadm_id"])
    most = sorted(held, key=lambda key: (-len(held[key]), key))[:72]
    assert packed.schema["icd_codes"].step_names == tuple(f"icd{version}_{code}" for code, version in most)
    expected = [[stay["hadm_id"] in held[code] for code in most] for stay in stays_of(packed, tables)]
    assert len(most) > 60
    assert np.array_equal(packed.series["icd_codes"][:, : len(most)], expected)
    assert not packed.series["icd_codes"][:, len(most) :].any()


def test_antibiotics_are_those_that_were_prescribed_named_as_they_were(packed: Cohort, tables: Tables) -> None:
    held = defaultdict(set)
    for row in tables["hosp/prescriptions"]:
        name = row["drug"].lower()
        counts = any(part in name for part in extended_settings().antibiotic_names)
        if counts and "ophth" not in name and "cream" not in name:
            held[row["drug"]].add(row["hadm_id"])
    names = packed.schema["antibiotics"].step_names
    assert names == tuple(f"abx_{drug}" for drug in most_frequent(held, 72))
    assert {"abx_Vancomycin", "abx_vancomycin", "abx_Azithromycin", "abx_Azithromycin "} < set(names)
    drugs = [name.removeprefix("abx_") for name in names]
    expected = [[stay["hadm_id"] in held[drug] for drug in drugs] for stay in stays_of(packed, tables)]
    assert np.array_equal(packed.series["antibiotics"][:, : len(names)], expected)
    assert not packed.series["antibiotics"][:, len(names) :].any()  # steps that no code is left for


def test_names_can_be_merged_there_too(raw: Path, packed: Cohort) -> None:
    merged = extracted(raw, as_published=True, merge_names=True)
    names = merged.schema["antibiotics"].step_names
    assert len(names) < len(packed.schema["antibiotics"].step_names)
    assert len({name.lower() for name in names}) == len(names)


def test_the_channels_hold_what_the_static_features_do(raw: Path) -> None:
    static, packed = extracted(raw), extracted(raw, packed=True)
    assert packed.schema["icd_codes"].step_names == tuple(n for n in static.static if n.startswith("icd"))
    for channel in ("icd_codes", "antibiotics"):
        for step, name in enumerate(packed.schema[channel].step_names):
            assert np.array_equal(packed.series[channel][:, step], static.static[name])
    assert np.array_equal(packed.static["age"], static.static["age"])
    assert np.array_equal(packed.series["glucose"], static.series["glucose"], equal_nan=True)


def test_glucose_is_rounded_to_twenty_minutes_of_the_clock_and_sampled_at_full_hours(
    packed: Cohort, tables: Tables
) -> None:
    labs = defaultdict(list)
    for row in tables["hosp/labevents"]:
        value = float(row["valuenum"] or "nan")
        if row["itemid"] in ("50809", "50931") and 0 < value <= 10_000:
            labs[row["subject_id"]].append((datetime.fromisoformat(row["charttime"]), value))
    expected = np.full((len(packed), 72), np.nan)
    for n, stay in enumerate(stays_of(packed, tables)):
        admitted, cells = datetime.fromisoformat(stay["intime"]), defaultdict(list)
        full = admitted.replace(minute=0, second=0)
        origin = full if full == admitted else full + timedelta(hours=1)
        for moment, value in labs[stay["subject_id"]]:
            minutes = (moment - origin).total_seconds() / 60
            rounded = 20 * ((minutes + 10) // 20)
            if 0 <= rounded < 72 * 60 and rounded % 60 == 0:
                cells[int(rounded // 60)].append(value)
        for hour, values in cells.items():
            expected[n, hour] = np.mean(values)
    assert np.isfinite(expected).sum() > 100
    np.testing.assert_allclose(packed.series["glucose"], expected, rtol=1e-12)


def test_a_folder_keeps_the_names_of_the_steps(packed: Cohort, tmp_path: Path) -> None:
    packed.write(tmp_path / "cohort")
    back = read_cohort(tmp_path / "cohort")
    assert same(back, packed)
    assert back.split()[0].schema["icd_codes"].step_names == packed.schema["icd_codes"].step_names


def test_a_model_has_two_channels_of_codes_and_decodes_them(packed: Cohort) -> None:
    codec = Codec.fit(packed, CodecSettings(sparse=("glucose",)))
    of = [(c.feature, c.part, c.static) for c in (*codec.layout.continuous, *codec.layout.discrete)]
    assert ("icd_codes", "value", False) in of
    assert ("age", "value", True) in of
    assert not [c for c in of if c[0] in ("icd_codes", "antibiotics", "glucose", "age") and c[1] == "mask"]
    encoded = codec.encode(packed)
    glucose = [c.feature for c in codec.layout.continuous].index("glucose")
    absent = np.isnan(packed.series["glucose"])
    assert (encoded.continuous.numpy()[:, :, glucose][absent] == -1).all()
    assert (encoded.continuous.numpy()[:, :, glucose][~absent] > -1).all()
    back = codec.decode(Batch.of(encoded.continuous, encoded.discrete))
    for name in ("icd_codes", "antibiotics"):
        assert np.array_equal(back.series[name], packed.series[name])
        assert back.schema[name].step_names == packed.schema[name].step_names
    assert np.array_equal(back.static["age"], packed.static["age"])
    np.testing.assert_allclose(back.series["glucose"], packed.series["glucose"], rtol=1e-5)


def test_more_codes_than_steps_are_refused_before_anything_is_read() -> None:
    settings = resolve("mimic4", changes={"extended": True, "packed": True, "steps": 24})
    with pytest.raises(TimeDiffError, match=r"the grid has 24 steps, .* each of its 72 codes"):
        source("mimic4").extract("nowhere", settings)


def test_names_that_differ_in_case_alone_are_no_columns() -> None:
    settings = resolve("mimic4", changes={"extended": True, "merge_names": False})
    with pytest.raises(TimeDiffError, match="expected packed = true"):
        source("mimic4").extract("nowhere", settings)


def test_a_channel_of_codes_needs_every_step(raw: Path) -> None:
    with pytest.raises(TimeDiffError, match="some stays end within the grid"):
        extracted(raw, packed=True, hours=1)
    cohort = extracted(raw, hours=1)
    assert cohort.lengths.min() < 72
    assert np.isnan(cohort.series["glucose"][~cohort.step_mask]).all()
