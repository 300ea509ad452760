"""What every extraction gives: a cohort, how many stays each rule dropped, and where it all came from."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from timediff.cohort import Cohort
from timediff.describe import describe
from timediff.errors import TimeDiffError
from timediff.files import new_folder
from timediff.schema import Schema
from timediff.tables import Array, Floats


@dataclass(frozen=True)
class Extraction:
    cohort: Cohort
    found: int  # stays before any rule
    dropped: Mapping[str, int]  # by rule, in the order they are applied
    facts: Mapping[str, str] = field(default_factory=dict)  # engine, its version, a hash of the source

    def write(self, path: Path, settings: str) -> None:
        """The cohort folder, with extraction.json in it."""
        from timediff import __version__

        features = {}
        for record in describe(self.cohort):
            features[record.feature.name] = {
                "missing": record.missing,
                **(
                    {"classes": record.shares}
                    if record.feature.discrete
                    else _range(record.low, record.mean, record.high)
                ),
            }
        table = {
            "format": 1,
            "version": __version__,
            **self.facts,
            "settings_sha256": hashlib.sha256(settings.encode()).hexdigest(),
            "stays_found": self.found,
            "stays_dropped": dict(self.dropped),
            "stays": len(self.cohort),
            "features": features,
        }
        with new_folder(path) as folder:
            self.cohort.write_into(folder)
            (folder / "extraction.json").write_text(json.dumps(table, indent=2))
            (folder / "extraction.toml").write_text(settings)


def _range(low: float, mean: float, high: float) -> dict[str, float | None]:
    named = {"minimum": low, "mean": mean, "maximum": high}
    return {name: None if value != value else value for name, value in named.items()}


def apply(rules: Mapping[str, Array]) -> tuple[Array, dict[str, int]]:
    """Which stays every rule keeps, and how many each one drops of those that the rules before it left."""
    kept = np.ones(len(next(iter(rules.values()))), dtype=bool)
    dropped = {}
    for name, passes in rules.items():
        dropped[name] = int((kept & ~passes).sum())
        kept &= passes
        if not kept.any():
            counts = ", ".join(f"{rule}: {count:,}" for rule, count in dropped.items())
            raise TimeDiffError(f"no stay is left after the rule {name!r} (dropped so far: {counts}).")
    return kept, dropped


def gridded(schema: Schema, stay_id: Array, rows: Mapping[str, Array], rounded: set[str]) -> dict[str, Floats]:
    """Cells (stay_id, step, one column a feature) placed in (N, L) arrays; `stay_id` is sorted."""
    series = {}
    at, step = np.searchsorted(stay_id, rows["stay_id"]), rows["step"].astype(np.int64)
    for feature in schema.temporal:
        grid = np.full((len(stay_id), schema.steps), np.nan)
        values = rows[feature.name]
        if feature.name in rounded and feature.resolution:
            values = np.round(np.round(values / feature.resolution) * feature.resolution, 9)
        grid[at, step] = values
        series[feature.name] = grid
    return series


def batches(expression: Any, rows: int = 1_000_000) -> Iterator[dict[str, Array]]:
    """The same a million rows at a time, for results that are larger than what is made of them."""
    for batch in expression.to_pyarrow_batches(chunk_size=rows):
        yield {name: np.asarray(batch[name].to_numpy(zero_copy_only=False)) for name in batch.schema.names}


def columns(expression: Any) -> dict[str, Array]:
    """An Ibis expression's rows as NumPy columns; nulls are NaN."""
    table = expression.to_pyarrow()
    return {name: np.asarray(table[name].to_numpy()) for name in table.column_names}
