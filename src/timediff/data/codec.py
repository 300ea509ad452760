"""Codec: Cohort ⇄ Batch. Continuous channels in [−1, 1], discrete ones as classes; fitted on training data only.

What it keeps of the training data is an aggregate of each feature: minimum and maximum (or the schema's bounds, with
codec.scale = "bounds"), mean, most frequent class, and whether anything was missing. With codec.scale = "quantile"
channels are standard normal instead, and quantiles are kept, each of at least ten observations but for the extremes.
With codec.recording it also knows how values are recorded (recording.py), and masks become classes of that.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch

from timediff.data.arrays import Array, Floats, carried
from timediff.data.batch import Batch, Channel, Layout
from timediff.data.cohort import Cohort
from timediff.data.levels import ClassLevels
from timediff.data.recording import Recording
from timediff.data.schema import Feature, Schema, multiples
from timediff.data.statistics import (
    Statistics,
    StoredStatistics,
    impossible,
    not_recorded,
    statistics_of,
    unlearnable,
    with_recordings,
)
from timediff.errors import Problems, TimeDiffError
from timediff.runtime.parsing import Unreadable, parse_json
from timediff.settings.training import CodecSettings
from timediff.settings.typed import build

SPARSE_FLOOR = -0.8  # a sparse feature's values use [−0.8, 1]; its missing values lie at −1, below them


@dataclass(frozen=True)
class StoredCodec:
    statistics: dict[str, StoredStatistics]
    sparse: tuple[str, ...] = ()
    fill: Literal["mean", "carry"] = "mean"


@dataclass(frozen=True)
class Codec:
    schema: Schema  # of what it generates: without patient and order
    statistics: dict[str, Statistics]
    sparse: tuple[str, ...] = ()
    fill: Literal["mean", "carry"] = "mean"

    @staticmethod
    def fit(cohort: Cohort, settings: CodecSettings | None = None) -> "Codec":
        """Fits ranges, means and modes; refuses what cannot be fitted, all of it at once."""
        settings = settings or CodecSettings()
        schema, found = cohort.schema.generated(), []
        statistics = {}
        for feature in schema.features:
            statistics[feature.name] = known = statistics_of(feature, cohort.values(feature.name), settings)
            if known.constant and not settings.allow_constant:
                what = "has no value at all" if np.isnan(known.fill) else f"is always {_shown(feature, known.fill)}"
                found.append(f"{feature.name!r} {what}: remove the column, or carry it through with --allow-constant")
            elif not feature.discrete and not known.constant:
                found += unlearnable(feature, known, settings)
        found += _not_sparse(schema, settings.sparse)
        if settings.sparse and settings.scale == "quantile":
            found.append(
                "codec.sparse needs codec.scale = 'training' or 'bounds': quantiles leave no room below the range"
            )
        if settings.recording and not found:
            statistics |= with_recordings(cohort, schema, statistics)
        codec = Codec(schema, statistics, settings.sparse, settings.fill)
        if not found and not codec.layout.width:
            found.append("every column is constant or empty, so there is nothing to learn")
        if found:
            raise Problems("cohort", found)
        return codec

    @cached_property
    def layout(self) -> Layout:
        channels = tuple(self._channels())
        return Layout(tuple(c for c in channels if not c.classes), tuple(c for c in channels if c.classes))

    def _channels(self) -> Iterator[Channel]:
        """Values in the schema's order, each followed by its mask, or by how it is recorded, where there is either."""
        for feature in self.schema.features:
            known, static = self.statistics[feature.name], feature.scope == "static"
            if not known.constant:
                yield Channel(feature.name, "value", len(feature.classes), static)
            sparse = feature.name in self.sparse and not known.constant
            if known.recording:
                if len(known.recording.classes) > 1:
                    yield self._recording_channel(feature.name, known.recording)
            elif known.missing and not sparse and not np.isnan(known.fill):
                yield Channel(feature.name, "mask", 2, static, meanings=("any", "missing"))

    def _recording_channel(self, name: str, recording: Recording) -> Channel:
        quantiles, scores = self.statistics[name].quantiles, np.zeros(len(recording.classes))
        if quantiles and recording.common:
            scores[-len(recording.common) :] = quantiles.encode(np.asarray(recording.common))
        meanings, classes = recording.meanings, len(recording.classes)
        return Channel(name, "recording", classes, meanings=meanings, scores=tuple(scores.tolist()))

    def encode(self, cohort: Cohort, *, intervals: bool = False) -> Batch:
        """`intervals`: also between which numbers the same value would be decoded; only quantiles know of any."""
        require_equal_lengths(cohort)
        shape = (len(cohort), cohort.schema.steps)
        continuous = np.empty((*shape, len(self.layout.continuous)), np.float32)
        discrete = np.empty((*shape, len(self.layout.discrete)), np.int32)
        recorded = self._recorded(cohort)
        for target, channels in ((continuous, self.layout.continuous), (discrete, self.layout.discrete)):
            for i, channel in enumerate(channels):
                values = np.asarray(cohort.values(channel.feature), np.float64)
                encoded = self._encoded(channel, values, recorded)
                target[:, :, i] = np.broadcast_to(encoded.reshape(len(cohort), -1), shape)
        bounds = None
        if intervals:
            bounds = np.repeat(continuous[..., None], 2, axis=-1)
            for i, channel in enumerate(self.layout.continuous):
                values = np.asarray(cohort.values(channel.feature), np.float64)
                ends = self._interval(channel, values, recorded)
                bounds[:, :, i] = np.broadcast_to(ends.reshape(len(cohort), -1, 2), (*shape, 2))
        intervals_of = None if bounds is None else torch.from_numpy(bounds)
        return Batch.of(torch.from_numpy(continuous), torch.from_numpy(discrete), intervals_of)

    def _interval(self, channel: Channel, values: Floats, recorded: Mapping[str, Array]) -> Floats:
        """(…, 2); of a missing value nothing is said."""
        quantiles = self.statistics[channel.feature].quantiles
        if quantiles is None:
            raise ValueError("only codec.scale = 'quantile' has intervals")
        if channel.feature in recorded:
            return self._levels[channel.feature].intervals(values, recorded[channel.feature])
        return np.nan_to_num(np.stack(quantiles.interval(values), axis=-1))

    def _encoded(self, channel: Channel, values: Floats, recorded: Mapping[str, Array]) -> Array:
        known, absent = self.statistics[channel.feature], np.isnan(values)
        if channel.part == "mask":
            return absent
        if channel.part == "recording":
            return recorded[channel.feature]
        if known.recording:
            scores = self._levels[channel.feature].encode(values, recorded[channel.feature])
            return np.nan_to_num(carried(scores) if self.fill == "carry" else scores)
        if self.fill == "carry" and values.ndim == 2 and not channel.classes and channel.feature not in self.sparse:
            values = carried(values)
            absent = np.isnan(values)
        filled = np.where(absent, known.fill, values)
        if channel.classes:
            return filled
        if known.quantiles:
            return np.where(absent, 0.0, known.quantiles.encode(filled))
        scaled = (filled - known.low) / (known.high - known.low)
        if channel.feature in self.sparse:
            return np.where(absent, -1.0, SPARSE_FLOOR + scaled * (1 - SPARSE_FLOOR))
        return 2 * scaled - 1

    def decode(self, batch: Batch, *, first_id: int = 0) -> Cohort:
        """A cohort of the batch's stays, numbered from `first_id`."""
        stays, steps = len(batch), batch.steps
        continuous, discrete = batch.continuous.numpy(), batch.discrete.numpy()
        decoded = {f.name: np.full((stays, steps), self.statistics[f.name].fill) for f in self.schema.features}
        for i, channel in enumerate(self.layout.continuous):
            decoded[channel.feature] = continuous[:, :, i].astype(np.float64)
        masks, classes = {}, {}
        for i, channel in enumerate(self.layout.discrete):
            if channel.part == "mask":
                masks[channel.feature] = discrete[:, :, i] == 1
            elif channel.part == "recording":
                classes[channel.feature] = discrete[:, :, i]
            else:
                decoded[channel.feature] = discrete[:, :, i].astype(np.float64)
        series: dict[str, Floats] = {}
        static: dict[str, Array] = {}
        recorded = self._recovered(decoded, classes)
        for feature in self.schema.features:
            if feature.name in recorded:
                series[feature.name] = _rounded(feature, recorded[feature.name])
                continue
            values, mask = decoded[feature.name], masks.get(feature.name)
            constant = self.statistics[feature.name].constant
            if feature.scope == "static":  # one value of a channel that repeats it: the mean, or the majority
                if constant:
                    values = values[:, 0]
                else:
                    values = _majority(values, len(feature.classes)) if feature.discrete else values.mean(axis=1)
                mask = None if mask is None else mask.mean(axis=1) > 0.5
            if not feature.discrete and not constant:
                values = self._unscaled(feature, values)
            (series if feature.scope == "temporal" else static)[feature.name] = (
                values if mask is None else np.where(mask, np.nan, values)
            )
        schema = replace(self.schema, steps=steps)
        return Cohort(schema, np.arange(first_id, first_id + stays), series, static)

    def _recorded(self, cohort: Cohort) -> dict[str, Array]:
        """How each value is recorded, of the features that say so."""
        recordings = {name: known.recording for name, known in self.statistics.items() if known.recording}
        columns = {name: np.asarray(cohort.values(name), np.float64) for name in recordings}
        return {name: recording.classify(columns[name], columns) for name, recording in recordings.items()}

    def _recovered(self, scores: Mapping[str, Floats], classes: Mapping[str, Array]) -> dict[str, Floats]:
        """Values as they would be recorded; those that follow from others come last."""
        found: dict[str, Floats] = {}
        recordings = {name: known.recording for name, known in self.statistics.items() if known.recording}
        for name in sorted(recordings, key=lambda name: recordings[name].derived is not None):
            own = classes.get(name, np.zeros(scores[name].shape, np.int64))
            found[name] = recordings[name].recover(scores[name], own, self._levels[name], found)
        return found

    @cached_property
    def _levels(self) -> dict[str, ClassLevels]:
        return {
            name: ClassLevels(known.recording, known.quantiles)
            for name, known in self.statistics.items()
            if known.recording and known.quantiles
        }

    def _unscaled(self, feature: Feature, scaled: Floats) -> Floats:
        known = self.statistics[feature.name]
        if known.quantiles:
            return _rounded(feature, known.quantiles.decode(scaled))
        floor = SPARSE_FLOOR if feature.name in self.sparse else -1.0
        values = known.low + (scaled - floor) / (1 - floor) * (known.high - known.low)
        values = _rounded(feature, np.clip(values, known.low, known.high))
        if feature.name in self.sparse:
            # Outside the observed range means "not measured"; the margin is far above float32's rounding.
            values = np.where((scaled < SPARSE_FLOOR - 1e-4) | (scaled > 1 + 1e-4), np.nan, values)
        return values

    def to_json(self) -> str:
        entries = {
            name: {key: None if value != value else value for key, value in asdict(known).items()}
            for name, known in self.statistics.items()
        }
        return json.dumps({"sparse": self.sparse, "fill": self.fill, "statistics": entries}, indent=2)

    @staticmethod
    def from_json(text: str, schema: Schema, where: str = "codec") -> "Codec":
        """Reads what `to_json` wrote; refuses numbers that no codec fitted to data can have."""
        table = parse_json(text, where)
        if not isinstance(table, dict):
            raise Unreadable(f"{where} is not a codec: expected statistics, sparse and fill.")
        stored = build(StoredCodec, table, where)
        names = [feature.name for feature in schema.features]
        found = [f"{name!r} has no statistics" for name in names if name not in stored.statistics]
        found += [f"{name!r} is not a feature of schema.toml" for name in stored.statistics if name not in names]
        recordings = {name: known.recording for name, known in stored.statistics.items()}
        for feature in schema.features:
            if known := stored.statistics.get(feature.name):
                problems = impossible(feature, known) + not_recorded(feature, known, recordings)
                found += [f"{feature.name!r}: {problem}" for problem in problems]
        found += _not_sparse(schema, stored.sparse)
        if found:
            raise Problems(where, found)
        statistics = {name: stored.statistics[name].restored() for name in names}
        return Codec(schema, statistics, stored.sparse, stored.fill)


def require_equal_lengths(cohort: Cohort) -> None:
    if cohort.length is None:
        return
    shortest, longest = int(cohort.length.min()), int(cohort.length.max())
    raise TimeDiffError(
        f"the stays have different lengths ({shortest} to {longest} steps), and a model learns one length for now: "
        f"add --horizon N, such as --horizon {shortest}, to keep each stay's first N steps."
    )


def _not_sparse(schema: Schema, sparse: tuple[str, ...]) -> list[str]:
    able = {feature.name for feature in schema.temporal if not feature.discrete}
    return [
        f"codec.sparse names {name!r}, which is not a continuous temporal feature"
        for name in sparse
        if name not in able
    ]


def _rounded(feature: Feature, values: Floats) -> Floats:
    """Multiples of the resolution inside the bounds."""
    r = feature.resolution
    if r is None:
        return values
    steps: Floats = np.round(values / r)
    if feature.bounds:
        steps = np.clip(steps, *multiples(feature.bounds, r))
    decimals = max(0, 9 - int(np.floor(np.log10(r))))  # 368 · 0.1 is 36.800000000000004 otherwise
    rounded: Floats = np.round(steps * r, decimals)
    return rounded


def _majority(values: Floats, classes: int) -> Floats:
    """(N, L) class indices → (N,): the most frequent one, the lowest where two are equally frequent."""
    counts = (values[:, :, None] == np.arange(classes)).sum(axis=1)
    winners: Floats = counts.argmax(axis=1).astype(np.float64)
    return winners


def _shown(feature: Feature, value: float) -> str:
    return repr(feature.classes[int(value)]) if feature.discrete else f"{value:g}"
