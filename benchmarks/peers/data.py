"""The two tables of a comparison: 1,000 stays to train on and 1,000 others to be scored against.

    TIMEDIFF_DATA=FOLDER python benchmarks/peers/data.py OUT [--of physionet2012]
    TIMEDIFF_DATA=FOLDER python benchmarks/peers/data.py OUT --of physionet2019

PhysioNet 2012: FOLDER/physionet2012 holds set-a.parquet and set-b.parquet (RecordID, minute, Parameter, Value) with
Outcomes-a.csv and Outcomes-b.csv. OUT gets train.parquet (of set-a) and test.parquet (of set-b): 48 rows a stay with
RecordID, hour, six vital signs (null = missing), Age, Gender and died. The stays were chosen once, at random among
those with age, sex and heart rate, by a choice that was not kept; train-stays.txt and test-stays.txt list their
RecordIDs. An hour holds the mean of its possible measurements, of urine their sum; pressures are invasive ones where an
hour has any. The file's own 48:00 counts as the last hour.

PhysioNet 2019: FOLDER/physionet2019 holds training_setA.parquet (patient_id and the 41 original columns). Both tables
are of patients with 24 hours or more and a heart rate in the first 24, chosen by a seed: the first 24 hours of seven
vital signs as they stand, Age, Gender and sepsis (at any hour of the whole stay).
"""

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
HOURS = 48
VITALS: dict[str, tuple[list[str], float, float]] = {  # parameters, and the limits of a single measurement
    "HR": (["HR"], 10, 300),
    "SBP": (["SysABP", "NISysABP"], 20, 300),
    "MAP": (["MAP", "NIMAP"], 10, 250),
    "Temp": (["Temp"], 25, 45),
    "Urine": (["Urine"], 0, 5000),
    "GCS": (["GCS"], 3, 15),
}


VITALS_2019 = ["HR", "O2Sat", "Temp", "SBP", "MAP", "DBP", "Resp"]
HOURS_2019, SEED_2019, EACH = 24, 2019, 1000


def chosen(name: str) -> list[int]:
    return [int(word) for word in (HERE / f"{name}-stays.txt").read_text().split()]


def table(folder: Path, letter: str, stays: list[int]) -> pd.DataFrame:
    long = pd.read_parquet(folder / f"set-{letter}.parquet")
    long = long[long.RecordID.isin(stays)].assign(
        Parameter=long.Parameter.astype(str), hour=(long.minute // 60).clip(upper=HOURS - 1)
    )
    grid = pd.MultiIndex.from_product([stays, range(HOURS)], names=["RecordID", "hour"])
    found = pd.DataFrame(index=grid)
    for name, (parameters, low, high) in VITALS.items():
        found[name] = np.float32("nan")
        for parameter in parameters:
            possible = long[(long.Parameter == parameter) & long.Value.between(low, high)]
            measured = possible.groupby(["RecordID", "hour"]).Value
            hourly = measured.sum() if name == "Urine" else measured.mean()
            hourly = hourly.round() if name == "GCS" else hourly
            found[name] = found[name].fillna(hourly.reindex(grid)).astype(np.float32)
    static = long[long.minute == 0].drop_duplicates(["RecordID", "Parameter"]).pivot(
        index="RecordID", columns="Parameter", values="Value"
    )  # fmt: skip
    died = pd.read_csv(folder / f"Outcomes-{letter}.csv").set_index("RecordID")["In-hospital_death"]
    stay = grid.get_level_values("RecordID")
    found["Age"] = static.Age.reindex(stay).to_numpy(np.float32)
    found["Gender"] = np.where(static.Gender.reindex(stay) == 1, "M", "F")
    found["died"] = died.reindex(stay).to_numpy()
    return found.reset_index()


def physionet2012(folder: Path) -> dict[str, pd.DataFrame]:
    return {name: table(folder, letter, chosen(name)) for name, letter in (("train", "a"), ("test", "b"))}


def physionet2019(folder: Path) -> dict[str, pd.DataFrame]:
    rows = pd.read_parquet(folder / "training_setA.parquet").rename(columns={"patient_id": "RecordID"})
    rows["hour"] = rows.groupby("RecordID").cumcount()
    stays = rows.groupby("RecordID")
    rows["sepsis"], rows["Gender"] = stays.SepsisLabel.transform("max"), np.where(rows.Gender == 1, "M", "F")
    first = rows[rows.hour < HOURS_2019][["RecordID", "hour", *VITALS_2019, "Age", "Gender", "sepsis"]]
    possible = (stays.size() >= HOURS_2019) & (first.groupby("RecordID").HR.count() > 0)
    order = np.random.default_rng(SEED_2019).permutation(possible.index[possible].to_numpy())
    parts = {"train": order[:EACH], "test": order[EACH : 2 * EACH]}
    return {name: first[first.RecordID.isin(part)].reset_index(drop=True) for name, part in parts.items()}


SETS = {"physionet2012": physionet2012, "physionet2019": physionet2019}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--of", choices=SETS, default="physionet2012")
    arguments = parser.parse_args()
    folder = Path(os.environ.get("TIMEDIFF_DATA", ".")) / arguments.of
    if not folder.is_dir():
        raise SystemExit(f"{folder} is not there: set TIMEDIFF_DATA to the folder that holds {arguments.of}.")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, stays in SETS[arguments.of](folder).items():
        stays.to_parquet(arguments.out / f"{name}.parquet")


if __name__ == "__main__":
    main()
