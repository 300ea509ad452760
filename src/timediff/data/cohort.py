"""Cohort: stays × steps × features, on disk a folder that pandas, Polars, DuckDB or R can open."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from timediff.data import frames
from timediff.data.arrays import Array, Floats
from timediff.data.parquet import parquet_writer, read_parquet
from timediff.data.provenance import NAME, CohortProvenance, joined, read_provenance, with_provenance
from timediff.data.schema import Schema, SplitBy
from timediff.data.tables import Arrays, series_table, static_table
from timediff.errors import TimeDiffError
from timediff.runtime.files import new_folder
from timediff.runtime.manifest import write_manifest
from timediff.runtime.parsing import read_text

CHUNK = 20_000  # stays written at a time


@dataclass(frozen=True, eq=False)
class Cohort:
    """Series (N, L) and static values (N,) by feature name. NaN = missing; a discrete value is its class's index."""

    schema: Schema
    stay_id: Array
    series: Mapping[str, Floats]
    static: Mapping[str, Array]
    length: Array | None = None  # (N,); None = every stay has schema.steps steps
    provenance: CohortProvenance | None = None  # of a synthetic cohort; None = real, or not known to be synthetic

    def __post_init__(self) -> None:
        shape = (len(self.stay_id), self.schema.steps)
        for feature in self.schema.temporal:
            if self.series[feature.name].shape != shape:
                raise ValueError(f"{feature.name}: shape {self.series[feature.name].shape}, expected {shape}")
        for feature in self.schema.static:
            if self.static[feature.name].shape != shape[:1]:
                raise ValueError(f"{feature.name}: shape {self.static[feature.name].shape}, expected {shape[:1]}")
        if self.length is not None:
            length = np.asarray(self.length).astype(np.int64, casting="same_kind")
            if length.shape != shape[:1] or ((length < 1) | (length > self.schema.steps)).any():
                raise ValueError(f"length: expected {shape[0]} whole numbers from 1 to {self.schema.steps}")
            object.__setattr__(self, "length", length)

    def __len__(self) -> int:
        return len(self.stay_id)

    def __getitem__(self, name: str) -> Array:
        """The values of one feature, temporal (N, L) or static (N,); classes by name, None where missing."""
        return frames.named_values(frames.require_feature(self.schema, name), self.values(name))

    def __repr__(self) -> str:
        return frames.described(self)

    @property
    def lengths(self) -> Array:
        """How many steps each stay has, (N,), whether or not all are equally long."""
        return np.full(len(self), self.schema.steps) if self.length is None else self.length

    @property
    def step_mask(self) -> Array:
        """Which steps of the grid lie within each stay, (N, L)."""
        return np.arange(self.schema.steps) < self.lengths[:, None]

    @property
    def label(self) -> Array:
        """The label's class indices, (N,)."""
        if self.schema.label is None:
            raise TimeDiffError("this cohort has no label: give one static feature role = 'label' in schema.toml.")
        return self.static[self.schema.label.name].astype(np.int64)

    def values(self, name: str) -> Array:
        """The values of one feature, temporal (N, L) or static (N,); a class is its index."""
        return self.series[name] if name in self.series else self.static[name]

    def take(self, index: Array) -> "Cohort":
        """The stays at `index` (positions or a boolean mask), in that order."""
        return replace(
            self,
            stay_id=self.stay_id[index],
            series={name: values[index] for name, values in self.series.items()},
            static={name: values[index] for name, values in self.static.items()},
            length=None if self.length is None else self.length[index],
            provenance=None if self.provenance is None else self.provenance.derive(),
        )

    def horizon(self, steps: int) -> "Cohort":
        """The first `steps` steps of every stay that is at least that long."""
        if not 1 <= steps <= self.schema.steps:
            raise TimeDiffError(f"horizon {steps}: expected 1 to {self.schema.steps}, the steps of this cohort's grid.")
        kept = self.take(self.lengths >= steps)
        if len(kept) == 0:
            raise TimeDiffError(f"horizon {steps}: no stay is that long; the longest has {self.lengths.max()} steps.")
        series = {name: values[:, :steps] for name, values in kept.series.items()}
        return replace(kept, schema=replace(self.schema, steps=steps), series=series, length=None)

    def split(
        self,
        test: float | None = None,
        *,
        seed: int = 0,
        stratify: str | None = None,
        group: str | None = None,
        by: SplitBy | None = None,
    ) -> tuple["Cohort", "Cohort"]:
        """Training and test stays; what is not given is as the schema's [split] says."""
        from timediff.data.splitting import split

        return split(self, test, seed=seed, stratify=stratify, group=group, by=by)

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Series and static values as Arrow tables, as they lie on disk."""
        return (
            series_table(self.schema, self.stay_id, self.series, self.length),
            static_table(self.schema, self.stay_id, self.static, self.length),
        )

    def to_frames(self) -> frames.Frames:
        """Series and static values as Arrow tables; classes by name, null where missing."""
        return frames.to_frames(self)

    def to_pandas(self) -> frames.Frames:
        """The same as pandas data frames."""
        return frames.to_pandas(self)

    def to_polars(self) -> frames.Frames:
        """The same as Polars data frames."""
        return frames.to_polars(self)

    def write(self, path: str | Path) -> None:
        """Writes the cohort folder `path`, which must not exist yet."""
        with new_folder(Path(path)) as folder:
            self.write_into(folder)

    def write_into(self, folder: Path) -> None:
        with table_writer(folder, self.schema, self.provenance) as append:
            for start in range(0, len(self), CHUNK):
                append(*self.take(np.arange(start, min(start + CHUNK, len(self)))).tables())

    def digest(self) -> str:
        """SHA-256 of schema and data: the same cohort, the same digest, wherever it lies."""
        state = hashlib.sha256(self.schema.to_toml().encode())
        series = self.series
        if self.length is not None:  # what lies beyond a stay's end is no part of it
            series = {name: np.where(self.step_mask, values, np.nan) for name, values in series.items()}
        for array in (self.stay_id, self.lengths, *series.values(), *self.static.values()):
            plain = array.astype(str) if array.dtype == object else np.ascontiguousarray(array)
            state.update(plain.tobytes())
        return state.hexdigest()

    @staticmethod
    def from_frames(series: Any, static: Any = None, schema: Any = None, **options: Any) -> "Cohort":
        """A cohort from data frames of pandas, Polars, PyArrow or DuckDB: a table of measurements, long or wide, and
        tables with a row a stay or a patient.

        `schema` is a Schema, or settings that `timediff infer` wrote (or their path); without one it is inferred and
        shown. `label="died"` names the outcome; stay, time, patient, variable, value, step, steps, time_unit and
        date_order need no guess when they are given. `accept_loss=True` accepts that more than 5 % of the measurements
        are lost; `show` is what shows (print), or None.
        """
        return frames.from_frames(series, static, schema, options)

    @staticmethod
    def from_tables(schema: Schema, series: pa.Table, static: pa.Table | None, where: str = "cohort") -> "Cohort":
        """A checked cohort from its two tables; says all that is wrong at once."""
        arrays = Arrays(schema, series, static, where)
        whole = (arrays.length == schema.steps).all()
        return Cohort(schema, arrays.stay_id, arrays.series, arrays.static, None if whole else arrays.length)


def concatenate(cohorts: Sequence[Cohort]) -> Cohort:
    """The stays of several cohorts of one schema, one after the other."""
    first = cohorts[0]
    if any(other.schema != first.schema for other in cohorts):
        raise ValueError("cohorts of different schemas cannot be joined")
    return Cohort(
        first.schema,
        np.concatenate([cohort.stay_id for cohort in cohorts]),
        {name: np.concatenate([cohort.series[name] for cohort in cohorts]) for name in first.series},
        {name: np.concatenate([cohort.static[name] for cohort in cohorts]) for name in first.static},
        None if all(c.length is None for c in cohorts) else np.concatenate([c.lengths for c in cohorts]),
        joined([cohort.provenance for cohort in cohorts]),
    )


@contextmanager
def table_writer(
    folder: Path, schema: Schema, provenance: CohortProvenance | None = None
) -> Iterator[Callable[[pa.Table, pa.Table], None]]:
    """Yields `append(series, static)`, which streams tables into the cohort folder `folder`."""
    writers: dict[str, pq.ParquetWriter] = {}

    def append(series: pa.Table, static: pa.Table) -> None:
        for name, table in (("series", series), ("static", static)):
            if name not in writers:
                known = with_provenance(table.schema, provenance)
                writers[name] = files.enter_context(parquet_writer(folder / f"{name}.parquet", known))
            writers[name].write_table(table)

    (folder / "schema.toml").write_text(schema.to_toml(), encoding="utf-8")
    if provenance is not None:
        (folder / NAME).write_text(provenance.to_json(), encoding="utf-8")
    with ExitStack() as files:
        yield append
    write_manifest(folder, "cohort")


def read_cohort(path: str | Path) -> Cohort:
    """Reads and checks a cohort folder."""
    folder = Path(path)
    schema = schema_in(folder)
    series = read_parquet(folder / "series.parquet")
    static = read_parquet(folder / "static.parquet") if (folder / "static.parquet").is_file() else None
    cohort = Cohort.from_tables(schema, series, static, str(folder))
    return replace(cohort, provenance=read_provenance(folder, series.schema))


def schema_in(folder: Path) -> Schema:
    """The schema of a cohort folder, or a sentence that says why it is none."""
    if not folder.is_dir():
        raise TimeDiffError(
            f"{folder} is not a folder; a cohort is one, with schema.toml, series.parquet, static.parquet."
        )
    missing = [name for name in ("schema.toml", "series.parquet") if not (folder / name).is_file()]
    if missing:
        raise TimeDiffError(f"{folder} is not a cohort: it has no {' and no '.join(missing)}.")
    return Schema.from_toml(read_text(folder / "schema.toml"), str(folder / "schema.toml"))
