"""What every extraction gives: a cohort, how many stays each rule dropped, and where it all came from."""

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.describe import describe
from timediff.errors import Problems, TimeDiffError
from timediff.runtime.files import new_folder

if TYPE_CHECKING:
    from timediff.sources.losses import LossCounts


@dataclass(frozen=True)
class Extraction:
    cohort: Cohort
    found: int  # stays before any rule
    dropped: Mapping[str, int]  # by rule, in the order they are applied
    facts: Mapping[str, str] = field(default_factory=dict)  # engine, its version, a hash of the source
    losses: "LossCounts | None" = None  # of measurements, where a source counts them
    notes: tuple[str, ...] = ()  # what a user should look at

    def lines(self) -> Iterator[str]:
        """What to tell a user: stays dropped, measurements lost, what to look at."""
        for rule, count in self.dropped.items():
            yield f"{count:,} stays dropped: {rule}"
        if self.losses is not None:
            yield from self.losses.lines()
        for note in self.notes:
            yield f"note: {note}"

    def write(self, path: Path, settings: str) -> None:
        """The cohort folder, with extraction.json in it."""
        from timediff import __version__

        require_finite(self.cohort)
        features = {}
        for record in describe(self.cohort):
            features[record.feature.name] = {
                "missing": record.missing,
                **(
                    {"classes": record.class_rates}
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
            **({} if self.losses is None else {"measurements": self.losses.as_json()}),
            **({"notes": list(self.notes)} if self.notes else {}),
            "features": features,
        }
        with new_folder(path) as folder:
            (folder / "extraction.json").write_text(json.dumps(table, indent=2))
            (folder / "extraction.toml").write_text(settings)
            self.cohort.write_into(folder)  # last: its manifest names what is there


@dataclass(frozen=True)
class File:
    """A file's name and bytes, wherever it lay."""

    name: str
    content: bytes


def fingerprint(files: Iterable[File]) -> str:
    """A hash of the files' names, sizes and bytes."""
    state = hashlib.sha256()
    for file in files:
        state.update(f"{file.name} {len(file.content)}\n".encode())
        state.update(file.content)
    return state.hexdigest()


def _range(low: float, mean: float, high: float) -> dict[str, float | None]:
    named = {"minimum": low, "mean": mean, "maximum": high}
    return {name: value if math.isfinite(value) else None for name, value in named.items()}


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


def on_grid(stay_id: Array, steps: int, rows: Mapping[str, Array], values: Array) -> Floats:
    """Values of some steps (columns stay_id and step of `rows`) in an (N, L) array; `stay_id` is sorted."""
    grid = np.full((len(stay_id), steps), np.nan)
    grid[np.searchsorted(stay_id, rows["stay_id"]), rows["step"].astype(np.int64)] = values
    return grid


def within_stays(series: Mapping[str, Floats], ends: Floats, width: float) -> tuple[dict[str, Floats], Array]:
    """Series without what lies beyond each stay's end, and how many steps each stay has: those that begin before it.

    `ends` are counted from the origin, as `width` is; NaN = not known.
    """
    steps = next(iter(series.values())).shape[1]
    begun = np.ceil(np.nan_to_num(ends, nan=np.inf) / width)
    inside = np.arange(steps) < begun[:, None]
    length = np.clip(begun, 1, steps).astype(np.int64)
    return {name: np.where(inside, grid, np.nan) for name, grid in series.items()}, length


def lengths_of(length: Array | None, kept: Array, steps: int) -> Array | None:
    """The lengths of the stays that are kept; None where each has all steps."""
    return None if length is None or (length[kept] == steps).all() else length[kept]


def to_resolution(values: Floats, resolution: float | None) -> Floats:
    """The nearest multiples of the resolution, on which engines agree; without one only the last digits go."""
    with np.errstate(over="ignore"):
        nearest = values if resolution is None else np.round(values / resolution) * resolution
        rounded: Floats = np.round(nearest, 9)
    return np.where(np.isinf(rounded), values, rounded)  # so large a value has no such digits


def any_measured(series: Mapping[str, Floats]) -> Array:
    """Which stays have a value of any feature at any step, (N,)."""
    return np.asarray(np.any([~np.isnan(grid).all(axis=1) for grid in series.values()], axis=0))


def check_bounds(cohort: Cohort) -> None:
    """Says which features have values outside the bounds that the settings promise."""
    found = []
    for feature in cohort.schema.features:
        if feature.bounds is not None:
            values, (low, high) = cohort.values(feature.name), feature.bounds
            if count := int(((values < low) | (values > high)).sum()):
                found.append(
                    f"feature {feature.name!r}: {many(count, 'value')} outside its bounds {low:g} to {high:g}; "
                    "widen them, or set above, below or at_most so that such values do not count"
                )
    if found:
        raise Problems("table", found)


def require_finite(cohort: Cohort) -> None:
    """Says which features have values that no cohort can have, such as the 1e400 of a file: it is read as infinite."""
    found = []
    for feature in cohort.schema.features:
        values = cohort.values(feature.name)
        if values.dtype.kind == "f" and (count := int(np.isinf(values).sum())):
            found.append(
                f"feature {feature.name!r}: {many(count, 'infinite value')}, or too large for double precision; "
                "mend them in the source"
            )
    if found:
        raise Problems("table", found)


def many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def require_ids(stays: Mapping[str, Array], table: str) -> None:
    """Whether every stay of a table has an id of its own, and a patient."""
    for name in ("stay_id", "patient"):
        if absent := sum(value is None or value != value for value in stays[name].tolist()):
            raise Problems(
                table, [f"{many(absent, 'row')} without a {name.removesuffix('_id')}; expected an id in each"]
            )
    if twice := len(stays["stay_id"]) - len(np.unique(stays["stay_id"])):
        raise Problems(
            table, [f"{many(twice, 'stay')} more than once, here or in what it is joined with; expected one row a stay"]
        )


def batches(expression: Any, rows: int = 1_000_000) -> Iterator[dict[str, Array]]:
    """The same a million rows at a time, for results that are larger than what is made of them."""
    for batch in expression.to_pyarrow_batches(chunk_size=rows):
        yield {name: np.asarray(batch[name].to_numpy(zero_copy_only=False)) for name in batch.schema.names}


def columns(expression: Any) -> dict[str, Array]:
    """An Ibis expression's rows as NumPy columns; nulls are NaN."""
    table = expression.to_pyarrow()
    return {name: np.asarray(table[name].to_numpy()) for name in table.column_names}
