"""What every script of this folder does: read the training stays, take the time, write a table of synthetic stays.

Needs pandas, NumPy and PyArrow alone, so that it runs in each tool's own environment.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

VITALS = ["HR", "SBP", "MAP", "Temp", "Urine", "GCS"]
STATIC = ["Age", "Gender", "died"]
HOURS = 48


def parser(text: str | None) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("data", type=Path, help="the folder that data.py wrote")
    found.add_argument("out", type=Path, help="the Parquet file of synthetic stays to write")
    found.add_argument("--stays", type=int, help="train on the first so many only, to see that the script works")
    found.add_argument("--seed", type=int, default=0)
    return found


def seed(number: int) -> None:
    """Tools draw from global streams; scripts of tools with PyTorch seed that too."""
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002


def read(arguments: argparse.Namespace) -> pd.DataFrame:
    table = pd.read_parquet(arguments.data / "train.parquet").sort_values(["RecordID", "hour"], ignore_index=True)
    return table if arguments.stays is None else table.head(HOURS * arguments.stays)


def filled(table: pd.DataFrame) -> np.ndarray:
    """(stays, hours, vital signs) for tools that take no nulls: filled forward, backward, then with the mean."""
    vitals = table.groupby("RecordID")[VITALS]
    values = vitals.ffill().fillna(vitals.bfill()).fillna(table[VITALS].mean())
    return values.to_numpy(np.float64).reshape(-1, HOURS, len(VITALS))


def as_table(values: np.ndarray) -> pd.DataFrame:
    """The same the other way."""
    stays = len(values)
    table = pd.DataFrame(values.reshape(-1, len(VITALS)), columns=VITALS)
    return table.assign(RecordID=np.repeat(np.arange(stays), HOURS), hour=np.tile(np.arange(HOURS), stays))


def on_the_grid(table: pd.DataFrame) -> tuple[pd.DataFrame, float]:
    """48 rows a stay in the order they came: longer stays are cut, shorter ones end in nulls; and how many were 48."""
    table = table.assign(hour=table.groupby("RecordID").cumcount())
    right = float((table.groupby("RecordID").size() == HOURS).mean())
    grid = pd.MultiIndex.from_product([table.RecordID.unique(), range(HOURS)], names=["RecordID", "hour"])
    return table.set_index(["RecordID", "hour"])[VITALS].reindex(grid).reset_index(), right


def run(
    tool: str,
    arguments: argparse.Namespace,
    stays: int,
    fit: Callable[[], Any],
    sample: Callable[[Any], pd.DataFrame],
    **facts: Any,
) -> None:
    """Fits, samples as many stays, writes them and prints how long both took."""
    started = time.perf_counter()
    model = fit()
    fitted = time.perf_counter()
    synthetic = sample(model)
    sampled = time.perf_counter()
    synthetic, right = on_the_grid(synthetic)
    synthetic.to_parquet(arguments.out)
    found = {
        "tool": tool,
        "date": time.strftime("%Y-%m-%d"),
        "training_stays": stays,
        "training_seconds": round(fitted - started, 1),
        "sampled_stays_per_second": round(stays / (sampled - fitted), 1),
        "fraction_of_stays_of_48_hours": round(right, 3),
    }
    print(json.dumps(found | facts, indent=2))
