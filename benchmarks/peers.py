"""Our row of the comparison with other tools: 1,000 stays of PhysioNet 2012, 48 hours, on 2 CPU cores.

    python benchmarks/peers.py FOLDER [--set KEY=VALUE …]

FOLDER holds train.parquet, test.parquet (RecordID, hour, HR, SBP, MAP, Temp, Urine, GCS, Age, Gender, died; null =
missing; 48 rows a stay) and judge.py, which scores a synthetic table against test.parquet. The preset is `fast`, the
training stays are train.parquet's, and as many stays are sampled.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from timediff import Cohort, Feature, Schema, TimeDiff, __version__
from timediff.settings.resolve import parse_assignment

VITALS = {"HR": None, "SBP": None, "MAP": None, "Temp": None, "Urine": None, "GCS": 1.0}  # and their resolutions
HOURS = 48


def read(path: Path) -> Cohort:
    table = pd.read_parquet(path).sort_values(["RecordID", "hour"])
    first = table.groupby("RecordID").first()
    features = [Feature(name, "continuous", "temporal", resolution=step) for name, step in VITALS.items()]
    features += [
        Feature("Age", "continuous", "static", resolution=1.0),
        Feature("Gender", "binary", "static", classes=("F", "M")),
        Feature("died", "binary", "static", role="label", classes=(0, 1)),
    ]
    static = {"Age": first.Age, "Gender": first.Gender == "M", "died": first.died}
    return Cohort(
        Schema(tuple(features), HOURS),
        np.arange(len(first)),
        {name: table[name].to_numpy(np.float64).reshape(-1, HOURS) for name in VITALS},
        {name: column.to_numpy(np.float64) for name, column in static.items()},
    )


def write(cohort: Cohort, path: Path) -> None:
    stays = len(cohort)
    table = {"RecordID": np.repeat(np.arange(stays), HOURS), "hour": np.tile(np.arange(HOURS), stays)}
    pd.DataFrame({**table, **{name: cohort.series[name].ravel() for name in VITALS}}).to_parquet(path)


def scored(folder: Path, path: Path) -> dict[str, Any]:
    done = subprocess.run([sys.executable, folder / "judge.py", path], capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    train = read(arguments.folder / "train.parquet")
    model = TimeDiff("fast", assignments=dict(map(parse_assignment, arguments.set)))
    started = time.perf_counter()
    model.fit(train, seed=arguments.seed, say=lambda line: print(line, file=sys.stderr))
    fitted = time.perf_counter()
    synthetic = model.sample(len(train), seed=arguments.seed + 1)
    sampled = time.perf_counter()
    with tempfile.TemporaryDirectory() as scratch:
        write(synthetic, Path(scratch) / "synthetic.parquet")
        row = scored(arguments.folder, Path(scratch) / "synthetic.parquet")
    died = [float(np.mean(cohort.static["died"])) for cohort in (train, synthetic)]
    results = {
        "command": " ".join(["python benchmarks/peers.py FOLDER", *(f"--set {one}" for one in arguments.set)]),
        "date": time.strftime("%Y-%m-%d"),
        "device": f"{os.cpu_count()} CPU cores",
        "version": __version__,
        "seed": arguments.seed,
        "hidden": model.settings.model.hidden,
        "batch": model.settings.training.batch,
        "network_calls": model.settings.sampling.steps,
        "training_seconds": round(fitted - started, 1),
        "sampled_stays_per_second": round(len(train) / (sampled - fitted), 1),
        **row,
        "died_of_training_and_synthetic": [round(rate, 3) for rate in died],
        "real_against_real": scored(arguments.folder, arguments.folder / "train.parquet"),
    }
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
