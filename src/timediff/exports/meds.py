"""MEDS (Medical Event Data Standard 0.4): an event a row, in shards, with a table of codes.

MEDS has subjects and times, and a cohort has stays and steps. So a subject is a patient, or a stay where patients are
not known; a stay lies between the events STAY_START and STAY_END; and the calendar is made up: the first stay of each
subject begins with the year 2000, each later one a day after the one before it.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from timediff import __version__
from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.parquet import read_parquet, write_parquet
from timediff.data.parts import Parts
from timediff.data.provenance import with_provenance
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.exports.base import Export, write_schema
from timediff.runtime.progress import Progress
from timediff.settings import toml
from timediff.sources.grid import step_seconds

VERSION = "0.4"  # of the standard
BEGINNING = 946_684_800  # 2000-01-01, in seconds since 1970
BETWEEN = 86_400  # seconds between two stays of a subject
LATEST = 250_000_000_000  # seconds since 1970: before the year 9999
START, END = "STAY_START", "STAY_END"
SETTINGS = "extract.toml"


class MEDSEvents(Export):
    def check(self, parts: Parts) -> None:
        super().check(parts)
        timeline = Timeline(parts)
        if timeline.start.max() + timeline.duration.max() > LATEST:
            raise TimeDiffError(
                f"steps of {parts.schema.step!r} would end after the year 9999: MEDS has no such times."
            )

    def write(self, parts: Parts, out: Path, progress: Progress) -> None:
        data, metadata = out / "data", out / "metadata"
        data.mkdir()
        metadata.mkdir()
        write_schema(parts, metadata)
        write_parquet(metadata / "codes.parquet", codes(parts.schema))
        (metadata / "dataset.json").write_text(json.dumps(dataset(parts), indent=2), encoding="utf-8")
        if (text := extraction(parts.schema)) is not None:
            (metadata / SETTINGS).write_text(text, encoding="utf-8")
        timeline, done = Timeline(parts), 0
        shards = Shards(data, np.bincount(timeline.shard), parts)
        for part in parts:
            rows = slice(done, done + len(part))
            shards.add(timeline.shard[rows], events(part, timeline.subject[rows], timeline.start[rows]))
            done += len(part)
            progress(done, len(parts))


@dataclass(frozen=True)
class Timeline:
    """Of each stay: whose it is, when it begins, and in which shard it lies; all stays of a subject lie in one."""

    parts: Parts

    @cached_property
    def subject(self) -> Array:
        """Numbers of patients, or of stays; counted from 1 where they are not whole numbers."""
        known = self.parts.stay_id if self.parts.patient is None else self.parts.patient
        if known.dtype.kind == "i":
            return known.astype(np.int64)
        return np.asarray(pa.array(known).dictionary_encode().indices.to_numpy().astype(np.int64) + 1)

    @cached_property
    def duration(self) -> Array:
        return np.asarray(self.parts.lengths * step_seconds(self.parts.schema.step))

    @cached_property
    def start(self) -> Array:
        """Seconds since 1970."""
        order = np.argsort(self.subject, kind="stable")
        subject, taken = self.subject[order], self.duration[order] + BETWEEN
        before = np.cumsum(taken) - taken
        is_first = np.append(True, subject[1:] != subject[:-1])
        own = before[is_first][np.cumsum(is_first) - 1]  # what the subjects before it take
        start = np.empty(len(order), dtype=np.int64)
        start[order] = BEGINNING + before - own
        return start

    @cached_property
    def shard(self) -> Array:
        """As many stays a shard as a part has, or a few more."""
        _, first, number, count = np.unique(self.subject, return_index=True, return_inverse=True, return_counts=True)
        order = np.argsort(first)
        shard = np.empty(len(order), dtype=np.int64)
        shard[order] = (np.cumsum(count[order]) - count[order]) // self.parts.size
        return np.asarray(np.unique(shard, return_inverse=True)[1][number])


class Shards:
    """Shards are written when all of their stays are there; until then what is there lies beside them."""

    def __init__(self, folder: Path, stays: Array, parts: Parts) -> None:
        self.folder, self.waiting, self.provenance = folder, stays.copy(), parts.provenance
        self.pieces: defaultdict[int, list[Path]] = defaultdict(list)

    def add(self, shard: Array, events: pa.Table) -> None:
        """`shard` (N,) of the stays of these events."""
        stay = events["stay"].to_numpy()
        events = events.drop_columns(["stay"])
        for number in np.unique(shard):
            table = events.filter(pa.array(shard[stay] == number))
            self.waiting[number] -= int((shard == number).sum())
            if self.waiting[number]:
                piece = self.folder / f".{number}-{len(self.pieces[number])}.parquet"
                write_parquet(piece, table)
                self.pieces[number].append(piece)
                continue
            earlier = self.pieces.pop(number, [])
            self._write(number, pa.concat_tables([*map(read_parquet, earlier), table]))
            for piece in earlier:
                piece.unlink()

    def _write(self, number: int, events: pa.Table) -> None:
        """By subject and time; events of one moment keep their order."""
        order = np.lexsort((events["time"].to_numpy().astype(np.int64), events["subject_id"].to_numpy()))
        schema = with_provenance(events.schema, self.provenance)
        write_parquet(self.folder / f"{number}.parquet", events.take(pa.array(order)).cast(schema))


def events(cohort: Cohort, subject: Array, start: Array) -> pa.Table:
    """All events of some stays, and `stay`: whose each is; sorted by stay and time."""
    found = list(_events(cohort))
    stay, seconds, rank = (
        np.concatenate([getattr(one, name) for one in found]) for name in ("stay", "seconds", "rank")
    )
    order = np.lexsort((rank, seconds, stay))
    stay = stay[order]
    value = np.concatenate([one.value for one in found])[order]
    with np.errstate(over="ignore"):
        single = value.astype(np.float32)
    moment = (start[stay] + seconds[order]) * 1_000_000
    columns = {
        "subject_id": pa.array(subject[stay]),
        "time": pa.array(moment).cast(pa.timestamp("us")),
        "code": pa.chunked_array([one.code for one in found]).combine_chunks().take(pa.array(order)),
        "numeric_value": pa.array(single, mask=~np.isfinite(single)),
        "text_value": pa.chunked_array([one.text for one in found]).combine_chunks().take(pa.array(order)),
        "value": pa.array(value, mask=np.isnan(value)),
        "stay_id": pa.array(cohort.stay_id).take(pa.array(stay)),
        "stay": pa.array(stay),
    }
    return pa.table(columns)


@dataclass(frozen=True)
class _Events:
    """Events of one kind, (E,) each: stay, seconds from its start, rank among those of one moment; what was seen."""

    stay: Array
    seconds: Array
    rank: Array
    code: pa.Array
    value: Floats  # NaN = none
    text: pa.Array


def _events(cohort: Cohort) -> Iterator[_Events]:
    stays, width = np.arange(len(cohort)), step_seconds(cohort.schema.step)
    begin, end = np.zeros(len(cohort), dtype=np.int64), cohort.lengths * width
    last = len(cohort.schema.features) + 1
    for code, seconds, rank in ((START, begin, 0), (END, end, last)):
        nothing = np.full(len(stays), np.nan)
        yield _Events(stays, seconds, np.full(len(stays), rank), _constant(code, len(stays)), nothing, _no_text(stays))
    for rank, feature in enumerate(cohort.schema.features, start=1):
        if feature.role == "patient":
            continue
        values = cohort.values(feature.name)
        if feature.scope == "temporal":
            stay, step = np.nonzero(cohort.step_mask & ~np.isnan(values))
            seconds, values = step * width, values[stay, step]
        else:
            stay = np.flatnonzero(~np.isnan(values))
            seconds, values = (end if _is_outcome(feature) else begin)[stay], values[stay]
        yield _Events(stay, seconds, np.full(len(stay), rank), *_seen(feature, values))


def _seen(feature: Feature, values: Floats) -> tuple[pa.Array, Floats, pa.Array]:
    """Codes, numbers and texts of observed values."""
    if not feature.discrete:
        return _constant(code_of(feature), len(values)), values, _no_text(values)
    index = pa.array(values.astype(np.int64))
    code = pa.array([code_of(feature, name) for name in feature.classes]).take(index)
    if isinstance(feature.classes[0], str):
        text = pa.array(feature.classes, pa.large_string()).take(index)
        return code, np.full(len(values), np.nan), text
    return code, np.asarray(feature.classes, dtype=np.float64)[values.astype(np.int64)], _no_text(values)


def code_of(feature: Feature, name: object = None) -> str:
    """MEASUREMENT, STATIC or OUTCOME, the feature, and of a discrete one the class."""
    kind = "MEASUREMENT" if feature.scope == "temporal" else "OUTCOME" if _is_outcome(feature) else "STATIC"
    texts = [feature.name] if name is None else [feature.name, str(name)]
    # Two features never have the same code, and none ends in *, which stands for all that begin so.
    return "//".join([kind, *(t.replace("%", "%25").replace("/", "%2F").replace("*", "%2A") for t in texts)])


def codes(schema: Schema) -> pa.Table:
    """Every code that there can be."""
    rows: list[tuple[str, str, str | None]] = [
        (START, "the beginning of a stay", None),
        (END, "the end of a stay", None),
    ]
    for feature in schema.features:
        if feature.role == "patient":
            continue
        if feature.discrete:
            rows += [(code_of(feature, name), f"{feature.name}: {name}", None) for name in feature.classes]
        else:
            rows.append((code_of(feature), feature.name, feature.unit))
    code, description, unit = (list(column) for column in zip(*rows, strict=True))
    return pa.table(
        {
            "code": pa.array(code),
            "description": pa.array(description),
            "parent_codes": pa.nulls(len(code), pa.list_(pa.string())),
            "unit": pa.array(unit, pa.string()),
        }
    )


def dataset(parts: Parts) -> dict[str, Any]:
    synthetic = parts.provenance is not None
    return {
        "dataset_name": f"{'synthetic ' if synthetic else ''}cohort of {len(parts)} stays",
        "etl_name": "timediff",
        "etl_version": __version__,
        "meds_version": VERSION,
        "created_at": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S+00:00}",
        "raw_source_id_columns": ["stay_id"],
        "other_extension_columns": ["value"],
    }


def extraction(schema: Schema) -> str | None:
    """Settings by which `timediff extract meds` reads the continuous temporal features again; None without any."""
    measured = [feature for feature in schema.temporal if not feature.discrete]
    if not measured:
        return None
    names, label = {feature.name for feature in measured}, schema.label
    death = [code_of(label, label.classes[1])] if label and len(label.classes) == 2 else []
    return toml.dumps(
        {
            "start": [START],
            "end": [END],
            "step": schema.step,
            "steps": schema.steps,
            "hours": 0.0,
            "grace": 0.0,
            "death": death,
            "discharge": [],
            "value": ["value"],
            "test": schema.split.test,
            "variable": [
                {
                    "name": feature.name,
                    "unit": feature.unit,
                    "bounds": feature.bounds,
                    "resolution": feature.resolution,
                    "events": [{"codes": [code_of(feature)]}],
                }
                for feature in measured
            ],
            "relation": [{"high": r.high, "low": r.low} for r in schema.relations if {r.high, r.low} <= names],
        }
    )


def _is_outcome(feature: Feature) -> bool:
    """Known only at the end of a stay."""
    return feature.role in ("label", "event_time")


def _constant(code: str, times: int) -> pa.Array:
    return pa.array([code]).take(pa.array(np.zeros(times, dtype=np.int64)))


def _no_text(like: Array) -> pa.Array:
    return pa.nulls(len(like), pa.large_string())
