"""PhysioNet Challenge 2019: the real set where it is at hand, and made-up files."""

import math
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from conftest import same
from helpers.data import DATA
from timediff.data.cohort import read_cohort
from timediff.errors import TimeDiffError
from timediff.sources.extraction import Extraction
from timediff.sources.registry import resolve, source

REAL = DATA / "physionet2019"
real = pytest.mark.skipif(not REAL.is_dir(), reason=f"no {REAL}: put the challenge's files there, or set TIMEDIFF_DATA")
VITALS = ["HR", "O2Sat", "Temp", "SBP", "MAP", "DBP", "Resp"]
HEADER = [*VITALS, "EtCO2", "Age", "Gender", "ICULOS", "SepsisLabel"]


def extract(path: Path, **changes: object) -> Extraction:
    return source("physionet2019").extract(str(path), resolve("physionet2019", changes=changes))


def write(folder: Path, stay: int, hours: list[int], septic: tuple[int, ...] = (), **vitals: list[str]) -> Path:
    """One patient's file; vital signs that are not given are NaN."""
    folder.mkdir(exist_ok=True)
    rows = [HEADER]
    for at, hour in enumerate(hours):
        values = [vitals[name][at] if name in vitals else "NaN" for name in VITALS]
        rows.append([*values, "NaN", "70.5", "1", str(hour), str(int(hour in septic))])
    (folder / f"p{stay:06d}.psv").write_text("\n".join("|".join(row) for row in rows) + "\n")
    return folder


def beats(hours: list[int]) -> list[str]:
    return [str(60 + hour) for hour in hours]


@pytest.fixture(scope="module")
def set_a() -> Extraction:
    return extract(REAL)


@real
def test_the_real_set(set_a: Extraction) -> None:
    cohort = set_a.cohort
    assert (set_a.found, len(cohort), int(cohort.label.sum())) == (20_336, 15_837, 1_141)
    assert list(set_a.dropped.values()) == [20_336 - 15_837, 0, 0]
    assert [feature.name for feature in cohort.schema.features] == [*VITALS, "Age", "Gender", "sepsis"]
    rates = [round(float(np.isnan(cohort.series[name]).mean()), 4) for name in VITALS]
    assert rates == [0.0772, 0.1134, 0.6368, 0.1394, 0.0985, 0.4764, 0.0976]


@real
def test_every_patient_without_the_length_rule() -> None:
    everyone = extract(REAL / "training_setA.parquet", hours=1)
    unmeasured = everyone.dropped["at least one measurement"]
    assert everyone.found == 20_336
    assert len(everyone.cohort) == 20_336 - unmeasured
    table = pq.read_table(REAL / "training_setA.parquet", columns=["patient_id", "SepsisLabel"])
    septic = set(table["patient_id"].to_numpy()[table["SepsisLabel"].to_numpy() == 1].tolist())
    assert len(septic) == 1_790
    assert set(everyone.cohort.stay_id[everyone.cohort.label == 1].tolist()) <= septic
    assert int(everyone.cohort.label.sum()) >= 1_790 - unmeasured


@real
def test_psv_files_give_what_the_parquet_gives(set_a: Extraction, tmp_path: Path) -> None:
    rows = pq.read_table(REAL / "training_setA.parquet", filters=[("patient_id", "<", 40)])
    names = [name for name in rows.column_names if name != "patient_id"]
    whole = {"Gender", "ICULOS", "SepsisLabel"}
    for stay in set(rows["patient_id"].to_pylist()):
        lines = ["|".join(names)]
        for row in rows.to_pylist():
            if row["patient_id"] == stay:
                # As the challenge wrote it: the shortest text of the single-precision number.
                texts = ("NaN" if row[n] is None else str(row[n] if n in whole else np.float32(row[n])) for n in names)
                lines.append("|".join(texts))
        (tmp_path / f"p{stay:06d}.psv").write_text("\n".join(lines) + "\n")
    from_text = extract(tmp_path).cohort
    assert same(from_text, set_a.cohort.take(set_a.cohort.stay_id < 40))


@real
def test_it_is_written_and_read_back(set_a: Extraction, tmp_path: Path) -> None:
    set_a.write(tmp_path / "cohort", source("physionet2019").default_toml())
    assert same(read_cohort(tmp_path / "cohort"), set_a.cohort)


def test_the_grid_begins_with_the_first_row_whatever_its_hour(tmp_path: Path) -> None:
    hours = list(range(5, 35))
    folder = write(tmp_path / "psv", 7, hours, HR=beats(hours))
    cohort = extract(folder).cohort
    assert cohort.stay_id.tolist() == [7]
    assert cohort.series["HR"].tolist() == [[float(60 + hour) for hour in range(5, 29)]]
    assert np.isnan(cohort.series["Temp"]).all()
    assert {name: values.tolist() for name, values in cohort.static.items()} == {
        "Age": [70.5],
        "Gender": [1],
        "sepsis": [0],
    }


def test_rows_in_any_order_and_folders_below(tmp_path: Path) -> None:
    hours = list(range(24, 0, -1))
    write(tmp_path / "training", 1, hours, HR=beats(hours))
    assert extract(tmp_path).cohort.series["HR"][0].tolist() == [float(60 + hour) for hour in range(1, 25)]


def test_short_records_are_dropped_and_sepsis_counts_at_any_hour(tmp_path: Path) -> None:
    folder = tmp_path / "psv"
    for stay, length, septic in ((1, 23, ()), (2, 24, ()), (3, 40, (40,)), (4, 24, (1,))):
        hours = list(range(1, length + 1))
        write(folder, stay, hours, septic, HR=beats(hours))
    extraction = extract(folder)
    assert extraction.found == 4
    assert extraction.dropped["a record of at least 24 h"] == 1
    assert extraction.cohort.stay_id.tolist() == [2, 3, 4]
    assert extraction.cohort.label.tolist() == [0, 1, 1]


def test_a_saturation_above_one_hundred_does_not_count(tmp_path: Path) -> None:
    hours = list(range(1, 25))
    folder = write(tmp_path / "psv", 1, hours, O2Sat=["101", "99.5", *["NaN"] * 22])
    values = extract(folder).cohort.series["O2Sat"][0]
    assert math.isnan(values[0])
    assert values[1] == 99.5


def test_longer_steps(tmp_path: Path) -> None:
    hours = list(range(1, 25))
    folder = write(tmp_path / "psv", 1, hours, HR=beats(hours))
    cohort = extract(folder, step="2h", steps=12, rule="mean").cohort
    assert cohort.series["HR"][0, :2].tolist() == [61.5, 63.5]
    with pytest.raises(TimeDiffError, match="whole hours"):
        extract(folder, step="30min")


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(TimeDiffError, match=r"no data of the 2019 challenge; expected one p000001\.psv a patient"):
        extract(tmp_path)
    folder = write(tmp_path / "psv", 1, [1, 2], HR=["60", "fast"])
    with pytest.raises(TimeDiffError, match=r"p000001\.psv: a line cannot be read"):
        extract(folder)
    write(folder, 1, [1, 2], HR=["60", "61"])
    with pytest.raises(TimeDiffError, match="no stay is left after the rule 'a record of at least 24 h'"):
        extract(folder)
    (folder / "p000002.psv").write_text("HR|Temp\n1|2\n")
    with pytest.raises(TimeDiffError, match=r"p000002\.psv: its header is not that of p000001\.psv"):
        extract(folder)
