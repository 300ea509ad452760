"""What every script of this folder does: read the training stays, take the time, write a table of synthetic stays.

Needs pandas, NumPy and PyArrow alone, so that it runs in each tool's own environment.
"""

import argparse
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

STATIC = ["Age", "Gender", "died", "sepsis"]  # of them a table has one outcome


@dataclass(frozen=True)
class Stays:
    """A sorted table of whole stays: RecordID, hour, vital signs, and static columns, the last of them the outcome."""

    table: pd.DataFrame

    @property
    def vitals(self) -> list[str]:
        return [name for name in self.table if name not in ("RecordID", "hour", *STATIC)]

    @property
    def static(self) -> list[str]:
        return [name for name in STATIC if name in self.table]

    @property
    def hours(self) -> int:
        return int(self.table.hour.max()) + 1

    def __len__(self) -> int:
        return len(self.table) // self.hours

    @property
    def first(self) -> pd.DataFrame:
        """The static columns, a row a stay."""
        return self.table.groupby("RecordID")[self.static].first()

    @property
    def series(self) -> np.ndarray:
        """(stays, hours, vital signs)"""
        return self.table[self.vitals].to_numpy(np.float64).reshape(-1, self.hours, len(self.vitals))

    @property
    def filled(self) -> np.ndarray:
        """The same for tools that take no nulls: filled forward, backward, then with the mean."""
        vitals = self.table.groupby("RecordID")[self.vitals]
        values = vitals.ffill().fillna(vitals.bfill()).fillna(self.table[self.vitals].mean())
        return values.to_numpy(np.float64).reshape(-1, self.hours, len(self.vitals))

    def as_table(self, values: np.ndarray) -> pd.DataFrame:
        """Series of others, the other way."""
        table = pd.DataFrame(values.reshape(-1, len(self.vitals)), columns=self.vitals)
        stays, hours = np.arange(len(values)), np.arange(self.hours)
        return table.assign(RecordID=np.repeat(stays, self.hours), hour=np.tile(hours, len(stays)))

    def on_the_grid(self, table: pd.DataFrame) -> tuple[pd.DataFrame, float]:
        """As many rows a stay in the order they came: longer stays are cut, shorter ones end in nulls; and how many
        had as many."""
        table = table.assign(hour=table.groupby("RecordID").cumcount())
        right = float((table.groupby("RecordID").size() == self.hours).mean())
        grid = pd.MultiIndex.from_product([table.RecordID.unique(), range(self.hours)], names=["RecordID", "hour"])
        return table.set_index(["RecordID", "hour"])[self.vitals].reindex(grid).reset_index(), right


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


def read(arguments: argparse.Namespace) -> Stays:
    train = Stays(
        pd.read_parquet(arguments.data / "train.parquet").sort_values(["RecordID", "hour"], ignore_index=True)
    )
    return train if arguments.stays is None else Stays(train.table.head(train.hours * arguments.stays))


def run(
    tool: str,
    arguments: argparse.Namespace,
    train: Stays,
    fit: Callable[[], Any],
    sample: Callable[[Any], pd.DataFrame],
    **facts: Any,
) -> None:
    """Fits, samples as many stays, writes them and prints how long both took."""
    stays = len(train)
    started = time.perf_counter()
    model = fit()
    fitted = time.perf_counter()
    synthetic = sample(model)
    sampled = time.perf_counter()
    synthetic, right = train.on_the_grid(synthetic)
    synthetic.to_parquet(arguments.out)
    found = {
        "tool": tool,
        "date": time.strftime("%Y-%m-%d"),
        "training_stays": stays,
        "training_seconds": round(fitted - started, 1),
        "sampled_stays_per_second": round(stays / (sampled - fitted), 1),
        "fraction_of_stays_of_full_length": round(right, 3),
    }
    print(json.dumps(found | facts, indent=2))
