"""The simulated databases hold what they say: a plain reading of the rules finds the truth in the tables."""

import gzip
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest

from helpers.data import DATA
from helpers.raw_tables import EICU_COLUMNS as EICU
from helpers.raw_tables import MIMIC4_ITEMS as MIMIC4
from helpers.raw_tables import Tables, charted
from timediff.data.cohort import read_cohort
from timediff.errors import TimeDiffError
from timediff.sources.raw import DATABASES, charting, mimic3, write_raw

STAYS = 40

# variable, items, lower limit, upper limit; a value lies strictly between them, but saturation may be 100
MIMIC3 = (
    ("heart_rate", {211, 220045}, 0, 300),
    ("sbp", {51, 442, 455, 6701, 220179, 220050}, 0, 400),
    ("dbp", {8368, 8440, 8441, 8555, 220180, 220051}, 0, 300),
    ("mbp", {456, 52, 6702, 443, 220052, 220181, 225312}, 0, 300),
    ("resp_rate", {615, 618, 220210, 224690}, 0, 70),
    ("fahrenheit", {223761, 678}, 70, 120),
    ("temperature", {223762, 676}, 10, 50),
    ("spo2", {646, 220277}, 0, 100.001),
)
HEADERS = {
    "mimic3/CHARTEVENTS": "row_id,subject_id,hadm_id,icustay_id,itemid,charttime,storetime,cgid,value,valuenum,"
    "valueuom,warning,error,resultstatus,stopped",
    "mimic3/ICUSTAYS": "row_id,subject_id,hadm_id,icustay_id,dbsource,first_careunit,last_careunit,first_wardid,"
    "last_wardid,intime,outtime,los",
    "mimic3/ADMISSIONS": "row_id,subject_id,hadm_id,admittime,dischtime,deathtime,admission_type,admission_location,"
    "discharge_location,insurance,language,religion,marital_status,ethnicity,edregtime,edouttime,diagnosis,"
    "hospital_expire_flag,has_chartevents_data",
    "mimic3/PATIENTS": "row_id,subject_id,gender,dob,dod,dod_hosp,dod_ssn,expire_flag",
    "mimic3/D_ITEMS": "row_id,itemid,label,abbreviation,dbsource,linksto,category,unitname,param_type,conceptid",
    "mimic4/icu/chartevents": "subject_id,hadm_id,stay_id,caregiver_id,charttime,storetime,itemid,value,valuenum,"
    "valueuom,warning",
    "mimic4/icu/icustays": "subject_id,hadm_id,stay_id,first_careunit,last_careunit,intime,outtime,los",
    "mimic4/icu/d_items": "itemid,label,abbreviation,linksto,category,unitname,param_type,lownormalvalue,"
    "highnormalvalue",
    "mimic4/hosp/admissions": "subject_id,hadm_id,admittime,dischtime,deathtime,admission_type,admit_provider_id,"
    "admission_location,discharge_location,insurance,language,marital_status,race,edregtime,edouttime,"
    "hospital_expire_flag",
    "mimic4/hosp/patients": "subject_id,gender,anchor_age,anchor_year,anchor_year_group,dod",
    "mimic4/hosp/diagnoses_icd": "subject_id,hadm_id,seq_num,icd_code,icd_version",
    "mimic4/hosp/prescriptions": "subject_id,hadm_id,pharmacy_id,poe_id,poe_seq,order_provider_id,starttime,stoptime,"
    "drug_type,drug,formulary_drug_cd,gsn,ndc,prod_strength,form_rx,dose_val_rx,dose_unit_rx,form_val_disp,"
    "form_unit_disp,doses_per_24_hrs,route",
    "mimic4/hosp/labevents": "labevent_id,subject_id,hadm_id,specimen_id,itemid,order_provider_id,charttime,storetime,"
    "value,valuenum,valueuom,ref_range_lower,ref_range_upper,flag,priority,comments",
    "eicu/patient": "patientunitstayid,patienthealthsystemstayid,gender,age,ethnicity,hospitalid,wardid,"
    "apacheadmissiondx,admissionheight,hospitaladmittime24,hospitaladmitoffset,hospitaladmitsource,"
    "hospitaldischargeyear,hospitaldischargetime24,hospitaldischargeoffset,hospitaldischargelocation,"
    "hospitaldischargestatus,unittype,unitadmittime24,unitadmitsource,unitvisitnumber,unitstaytype,admissionweight,"
    "dischargeweight,unitdischargetime24,unitdischargeoffset,unitdischargelocation,unitdischargestatus,uniquepid",
    "eicu/vitalPeriodic": "vitalperiodicid,patientunitstayid,observationoffset,temperature,sao2,heartrate,respiration,"
    "cvp,etco2,systemicsystolic,systemicdiastolic,systemicmean,pasystolic,padiastolic,pamean,st1,st2,st3,icp",
    "eicu/hospital": "hospitalid,numbedscategory,teachingstatus,region",
}


def cells(points, steps, forget):
    """The last valid value of each cell, from (cell, time, variable, value); equal times are averaged."""
    at = defaultdict(lambda: defaultdict(list))
    for cell, moment, variable, value in points:
        if 0 <= cell < steps:
            at[variable, cell][moment].append(value)
    found = {}
    for (variable, cell), moments in at.items():
        values = moments[min(moments) if forget == "last" else max(moments)]
        found[variable, cell] = values[0] if forget == "ties" else sum(values) / len(values)
        if np.isnan(found[variable, cell]):
            del found[variable, cell]
        elif variable == "temperature":
            found[variable, cell] = round(found[variable, cell], 1)
    return found


def cell_of(seconds, width, forget):
    return -(-seconds // width) - 1 if forget == "borders" else seconds // width


def extract_mimic3(tables, forget=None):
    births = {row["subject_id"]: datetime.fromisoformat(row["dob"]) for row in tables["PATIENTS"]}
    deaths = {row["hadm_id"]: int(row["hospital_expire_flag"]) for row in tables["ADMISSIONS"]}
    measured = charted(tables["CHARTEVENTS"], "icustay_id", MIMIC3, forget)
    found, dropped = {}, Counter()
    for stay in tables["ICUSTAYS"]:
        start, end = datetime.fromisoformat(stay["intime"]), datetime.fromisoformat(stay["outtime"])
        points = measured[stay["icustay_id"]]
        if end - start < timedelta(hours=24) and forget != "short":
            dropped["short"] += 1
        elif (start - births[stay["subject_id"]]).days / 365.2425 < 16 and forget != "young":
            dropped["young"] += 1
        elif not points:
            dropped["unmeasured"] += 1
        else:
            origin = start if forget == "origin" else min(moment for moment, _, _ in points)
            points = [(cell_of(int((m - origin).total_seconds()), 3600, forget), m, v, x) for m, v, x in points]
            found[int(stay["icustay_id"])] = (
                int(stay["subject_id"]),
                deaths[stay["hadm_id"]],
                cells(points, 25, forget),
            )
    return found, dropped


def extract_mimic4(tables, forget=None):
    deaths = {row["hadm_id"]: int(row["hospital_expire_flag"]) for row in tables["hosp/admissions"]}
    measured = charted(tables["icu/chartevents"], "stay_id", MIMIC4, forget)
    found, dropped = {}, Counter()
    for stay in tables["icu/icustays"]:
        start, end = datetime.fromisoformat(stay["intime"]), datetime.fromisoformat(stay["outtime"])
        points = measured[stay["stay_id"]]
        origin = min([moment for moment, _, _ in points], default=start) if forget == "origin" else start
        points = [(cell_of(int((m - origin).total_seconds()), 3600, forget), m, v, x) for m, v, x in points]
        inside = cells(points, 72, forget)
        if end - start < timedelta(hours=72) and forget != "short":
            dropped["short"] += 1
        elif not inside:
            dropped["unmeasured"] += 1
        else:
            found[int(stay["stay_id"])] = int(stay["subject_id"]), deaths[stay["hadm_id"]], inside
    return found, dropped


def extract_eicu(tables, forget=None):
    measured = defaultdict(list)
    for row in tables["vitalPeriodic"]:
        offset = int(row["observationoffset"])
        cell = cell_of(offset - (0 if forget == "origin" else 60), 5, forget)
        for column, variable in EICU.items():
            if row[column] != "" or forget == "nulls":
                measured[row["patientunitstayid"]].append((cell, offset, variable, float(row[column] or "nan")))
    found, dropped = {}, Counter()
    for stay in tables["patient"]:
        inside = cells(measured[stay["patientunitstayid"]], 276, forget)
        if int(stay["unitdischargeoffset"]) < 1440 and forget != "short":
            dropped["short"] += 1
        elif not inside:
            dropped["unmeasured"] += 1
        elif stay["hospitaldischargestatus"] == "" and forget != "outcome":
            dropped["outcome"] += 1
        else:
            died = int(stay["hospitaldischargestatus"] == "Expired")
            found[int(stay["patientunitstayid"])] = stay["uniquepid"], died, inside
    return found, dropped


EXTRACT = {"mimic3": extract_mimic3, "mimic4": extract_mimic4, "eicu": extract_eicu}
RULES = {"mimic3": {"short", "young", "unmeasured"}, "mimic4": {"short", "unmeasured"}}
RULES["eicu"] = {"short", "unmeasured", "outcome"}
LIMITS = {"mimic3": [rule for rule in MIMIC3 if rule[0] != "fahrenheit"], "mimic4": MIMIC4}
FORGET = [(d, f) for d in EXTRACT for f in ("last", "ties", "borders", "origin", "short")]
FORGET += [("mimic3", "limits"), ("mimic4", "limits"), ("mimic3", "errors"), ("mimic3", "items"), ("mimic3", "young")]
FORGET += [("mimic3", "conversion"), ("eicu", "outcome"), ("eicu", "nulls")]


def truth(folder):
    cohort = read_cohort(folder / "cohort")
    found = {}
    for n, stay in enumerate(cohort.stay_id):
        values = {name: array[n] for name, array in cohort.series.items()}
        inside = {(v, k): row[k] for v, row in values.items() for k in np.flatnonzero(np.isfinite(row))}
        found[stay] = cohort.static["patient"][n], cohort.static["died"][n], inside
    return found


@pytest.fixture(scope="module")
def databases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("raw")
    for name in DATABASES:
        write_raw(name, folder / name, STAYS, seed=1)
    return {name: Tables(folder / name) for name in DATABASES}


@pytest.mark.parametrize("name", DATABASES)
def test_a_plain_reading_of_the_rules_returns_the_truth(databases, name):
    found, dropped = EXTRACT[name](databases[name])
    assert len(found) == STAYS
    assert found == truth(databases[name].folder)
    assert set(dropped) == RULES[name]  # each rule drops something


@pytest.mark.parametrize(("name", "forget"), FORGET)
def test_forgetting_a_rule_changes_the_answer(databases, name, forget):
    assert EXTRACT[name](databases[name], forget)[0] != truth(databases[name].folder)


@pytest.mark.parametrize("name", DATABASES)
@pytest.mark.parametrize("stays", [1, 3])
def test_a_small_database_has_every_rule(tmp_path, name, stays):
    write_raw(name, tmp_path / "out", stays, seed=2)
    found, dropped = EXTRACT[name](Tables(tmp_path / "out"))
    assert (len(found), set(dropped)) == (stays, RULES[name])
    assert found == truth(tmp_path / "out")


@pytest.mark.parametrize("name", DATABASES)
def test_writing_a_few_stays_at_a_time_changes_no_truth(tmp_path, monkeypatch, name):
    monkeypatch.setattr(charting, "STAYS", 4)
    write_raw(name, tmp_path / "out", 9, seed=5)
    assert EXTRACT[name](Tables(tmp_path / "out"))[0] == truth(tmp_path / "out")


@pytest.mark.parametrize(("name", "steps", "step", "test"), [("mimic3", 25, "1h", 0.2), ("mimic4", 72, "1h", 0.25)])
def test_the_schema_states_grid_limits_and_split(databases, name, steps, step, test):
    schema = read_cohort(databases[name].folder / "cohort").schema
    assert (schema.steps, schema.step) == (steps, step)
    assert (schema.split.test, schema.split.stratify, schema.split.group) == (test, "died", "patient")
    limits = {v: (low, min(high, 100) if v == "spo2" else high) for v, _, low, high in LIMITS[name]}
    assert {f.name: f.bounds for f in schema.temporal} == limits
    finer = {"temperature": 0.1, "mbp": 0.01}  # a mean pressure may be a third: 76.67
    assert [f.resolution for f in schema.temporal] == [finer.get(v, 1) for v in limits]


def test_eicu_has_no_limits(databases):
    cohort = read_cohort(databases["eicu"].folder / "cohort")
    assert (cohort.schema.steps, cohort.schema.step, cohort.schema.split.test) == (276, "5min", 0.25)
    assert {f.name: f.bounds for f in cohort.schema.temporal} == dict.fromkeys(EICU.values())
    assert np.nanmin(cohort.series["heart_rate"]) == 0


@pytest.mark.parametrize("table", HEADERS)
def test_headers_are_as_published(databases, table):
    name, _, inside = table.partition("/")
    real = DATA / f"{name}_demo" / f"{inside}.csv.gz"
    with gzip.open(databases[name].folder / "raw" / f"{inside}.csv.gz", "rt") as file:
        header = file.readline().strip()
    assert header == HEADERS[table]
    if real.exists():
        with gzip.open(real, "rt") as file:
            assert header == file.readline().strip()


@pytest.mark.parametrize("name", DATABASES)
def test_there_are_no_other_tables(databases, name):
    raw = databases[name].folder / "raw"
    written = {f"{name}/{path.relative_to(raw)}".removesuffix(".csv.gz") for path in raw.rglob("*.gz")}
    assert written == {table for table in HEADERS if table.startswith(name)}


@pytest.mark.parametrize(
    ("name", "table", "patient", "admission"),
    [
        ("mimic3", "ICUSTAYS", "subject_id", "hadm_id"),
        ("mimic4", "icu/icustays", "subject_id", "hadm_id"),
        ("eicu", "patient", "uniquepid", "patienthealthsystemstayid"),
    ],
)
def test_some_patients_return(databases, name, table, patient, admission):
    rows = databases[name][table]
    admissions = {(row[patient], row[admission]) for row in rows}
    assert len({person for person, _ in admissions}) < len(admissions) < len(rows)


def test_mimic3_holds_what_a_reader_must_survive(databases):
    chart, selected = databases["mimic3"]["CHARTEVENTS"], set().union(*(items for _, items, _, _ in MIMIC3))
    assert any(row["valuenum"] == "" and row["value"] and int(row["itemid"]) in selected for row in chart)
    assert any(row["icustay_id"] == "" and int(row["itemid"]) in selected for row in chart)
    assert {row["error"] for row in chart} == {"", "0", "1"}
    assert {row["valuenum"] for row in chart if row["itemid"] == "678"} >= {"70", "120", ""}
    valid = charted(chart, "icustay_id", MIMIC3, None)
    for forget in ("limits", "errors"):  # rows that must not become the origin
        wrong = charted(chart, "icustay_id", MIMIC3, forget)
        assert any(min(wrong[stay])[0] < min(points)[0] for stay, points in valid.items())
    times = defaultdict(list)
    for row in chart:
        times[row["icustay_id"]].append(row["charttime"])
    assert all(moments != sorted(moments) for moments in times.values())
    source = {row["icustay_id"]: row["dbsource"] for row in databases["mimic3"]["ICUSTAYS"]}
    rows = [row for row in chart if row["icustay_id"]]
    assert all((int(row["itemid"]) < 10_000) == (source[row["icustay_id"]] == "carevue") for row in rows)
    old = {int(row["subject_id"]) for row in databases["mimic3"]["PATIENTS"] if row["dob"] < "1900"}
    assert old & {patient for patient, _, _ in truth(databases["mimic3"].folder).values()}


@pytest.mark.parametrize(
    ("name", "table", "stay", "line", "cuff"),
    [
        (
            "mimic3",
            "CHARTEVENTS",
            "icustay_id",
            {51, 6701, 8368, 8555, 52, 6702, 220050, 220051, 220052, 225312},
            {442, 455, 8440, 8441, 443, 456, 220179, 220180, 220181},
        ),
        ("mimic4", "icu/chartevents", "stay_id", {220050, 225309, 220051, 225310}, {220179, 220180}),
    ],
)
def test_line_and_cuff_have_items_of_their_own(databases, name, table, stay, line, cuff):
    modes = defaultdict(list)
    for row in sorted(databases[name][table], key=lambda row: row["charttime"]):
        if row[stay] and int(row["itemid"]) in line | cuff:
            modes[row[stay]].append(int(row["itemid"]) in line)
    changes = [sum(a != b for a, b in pairwise(by_line)) for by_line in modes.values()]
    assert max(changes) <= 2  # in the course of a stay: placed, and taken out
    assert 0 < sum(count == 0 for count in changes) < len(changes)
    assert {by_line[-1] for by_line in modes.values()} == {True, False}


def test_only_means_that_the_older_system_calculated_are_thirds(databases):
    source = {row["icustay_id"]: row["dbsource"] for row in databases["mimic3"]["ICUSTAYS"]}
    stays = truth(databases["mimic3"].folder)
    fractions = {"carevue": [], "metavision": []}
    for stay, (_, _, inside) in stays.items():
        means = [value for (variable, _), value in inside.items() if variable == "mbp"]
        assert {round(value % 1, 2) for value in means} <= {0, 0.33, 0.67}
        fractions[source[str(stay)]].append(np.mean([value % 1 != 0 for value in means]))
    assert max(fractions["metavision"]) == 0
    assert max(fractions["carevue"]) > 0.5
    assert min(fractions["carevue"]) == 0
    means = {item for variable, items, _, _ in MIMIC3 if variable == "mbp" for item in items}
    rows = [row for row in databases["mimic3"]["CHARTEVENTS"] if int(row["itemid"]) in means and row["valuenum"]]
    assert {row["itemid"] for row in rows if float(row["valuenum"]) % 1} == {"443", "456"}  # those of a cuff


def test_every_third_survives_two_items_at_one_minute():
    values = np.full((60, len(mimic3.SCHEMA.temporal), 25), np.nan)
    mean = [feature.name for feature in mimic3.SCHEMA.temporal].index("mbp")
    values[:, mean] = np.round(np.arange(90, 1590).reshape(60, 25) / 3, 2)
    chart = charting.Chart(mimic3.SCHEMA, mimic3.DECOYS, early=mimic3.DECOYS, anchored=False)
    found = defaultdict(dict)
    rows = chart.rows(np.random.default_rng(0), values)
    for n in np.flatnonzero((rows.kind == charting.VALID) & (rows.variable == mean)):
        found[rows.stay[n], rows.minute[n] // 60].setdefault(rows.minute[n], []).append(rows.value[n])
    for (stay, step), moments in found.items():
        last = moments[max(moments)]
        assert step >= 25 or sum(last) / len(last) == values[stay, mean, step]


def test_the_monitor_of_eicu_has_a_mean_pressure_of_lines_alone(databases):
    mean = read_cohort(databases["eicu"].folder / "cohort").series["mbp"]
    measured = np.isfinite(mean).mean(axis=1)
    assert (measured == 0).any()
    assert (measured > 0.8).any()
    assert (mean[np.isfinite(mean)] % 1 == 0).all()


def test_every_tenth_of_a_degree_survives_fahrenheit():
    for celsius in np.round(np.arange(220, 486) / 10, 1):
        charted = np.round(celsius * 1.8 + 32, 1)
        back = (charted - 32) / 1.8
        assert abs(back - celsius) < 0.03  # far from the half at 0.05
        assert np.round(back, 1) == celsius


@pytest.mark.parametrize("name", DATABASES)
def test_the_seed_decides_every_byte(tmp_path, name):
    for folder, seed in (("a", 3), ("b", 3), ("c", 4)):
        write_raw(name, tmp_path / folder, 3, seed=seed)
    files = [path.relative_to(tmp_path / "a") for path in sorted((tmp_path / "a").rglob("*")) if path.is_file()]
    a, b, c = ([(tmp_path / folder / file).read_bytes() for file in files] for folder in "abc")
    assert a == b
    assert a != c


def test_mistakes_are_explained(tmp_path):
    with pytest.raises(TimeDiffError, match="mimic3, mimic4, eicu"):
        write_raw("mimic5", tmp_path / "out", 3)
    with pytest.raises(TimeDiffError, match="at least 1"):
        write_raw("mimic3", tmp_path / "out", 0)
    (tmp_path / "out").mkdir()
    with pytest.raises(TimeDiffError, match="exists already"):
        write_raw("mimic3", tmp_path / "out", 3)
