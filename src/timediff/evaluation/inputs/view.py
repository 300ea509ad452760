"""What classifiers see of a cohort: channels, filled and scaled as the protocol has them.

- paper, as its authors' code: values (a null is −1, in the feature's own unit) and static values and the label, each a
  channel; no masks. Each cohort is scaled by itself: standardised, or to [0, 1] where stays are windows of one long
  series. The label is seen by distances alone (`unlabelled`).
- strict: values (filled forward, then backward, then by the training mean) and masks, standardised by training stays;
  or masks alone.
A class of a categorical feature is a channel; of two classes the second is one.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from timediff.data.arrays import Array, Floats
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.evaluation.metrics.marginals import levels

Protocol = Literal["paper", "strict"]
Scaling = Literal["standard", "minmax"]
Single = npt.NDArray[np.float32]
NULL = -1.0  # what the paper's authors put in place of a null


@dataclass(frozen=True)
class InputChannel:
    feature: str
    part: Literal["value", "mask", "elapsed"]
    level: int | None = None  # a class; None = the value itself


@dataclass(frozen=True)
class View:
    """Channels of a cohort as (N, L, C), scaled by what the training stays are like, or each cohort by itself."""

    protocol: Protocol
    schema: Schema
    channels: tuple[InputChannel, ...]
    fill: dict[str, float]  # what replaces a null: the mean, or the most frequent class
    shift: Floats  # (C,)
    scale: Floats  # (C,)
    own: Scaling | None = None  # how each cohort is scaled by itself; None = by `shift` and `scale`

    @staticmethod
    def fit(train: Cohort, protocol: Protocol = "strict", scaling: Scaling | None = None) -> "View":
        """Fits what fills and scales; without `scaling` it is the protocol's own."""
        schema = train.schema.generated()
        paper = protocol == "paper"
        known = [feature for feature in schema.features if paper or feature.scope == "temporal"]
        raw = {feature.name: np.asarray(train.values(feature.name), np.float64) for feature in known}
        fill = {feature.name: NULL if paper else _fill(feature, raw[feature.name]) for feature in known}
        channels = [InputChannel(f.name, "value", level) for f in known for level in levels(f)]
        if not paper:
            channels += [InputChannel(f.name, "mask") for f in known if np.isnan(raw[f.name]).any()]
        count = len(channels)
        plain = View(protocol, schema, tuple(channels), fill, np.zeros(count), np.ones(count))
        seen = plain.series(train).reshape(-1, count).astype(np.float64)
        if scaling is None:
            scaling = "minmax" if paper and windows(train.schema) else "standard"
        return View(protocol, schema, tuple(channels), fill, *_moments(seen, scaling), scaling if paper else None)

    @property
    def masks(self) -> "View":
        """The masks alone."""
        return self._only([channel.part == "mask" for channel in self.channels])

    @property
    def values(self) -> "View":
        """The values of temporal features alone."""
        temporal = {feature.name for feature in self.schema.temporal}
        return self._only([c.part == "value" and c.feature in temporal for c in self.channels])

    @property
    def with_elapsed(self) -> "View":
        """Also the time since each feature was last measured, as a fraction of the stay."""
        masked = [channel.feature for channel in self.channels if channel.part == "mask"]
        return replace(
            self,
            channels=(*self.channels, *(InputChannel(feature, "elapsed") for feature in masked)),
            shift=np.concatenate([self.shift, np.zeros(len(masked))]),
            scale=np.concatenate([self.scale, np.full(len(masked), 0.25 * self.schema.steps)]),
        )

    @property
    def unlabelled(self) -> "View":
        """Without the label and the time of the event: what is to be predicted must not be seen."""
        outcomes = {outcome.name for outcome in self.schema.outcomes}
        return self._only([channel.feature not in outcomes for channel in self.channels])

    @property
    def unscaled(self) -> "View":
        count = len(self.channels)
        return replace(self, shift=np.zeros(count), scale=np.ones(count), own=None)

    @property
    def by_training(self) -> "View":
        """Every cohort scaled by what the training stays are like."""
        return replace(self, own=None)

    def _only(self, chosen: list[bool]) -> "View":
        channels = tuple(c for c, kept in zip(self.channels, chosen, strict=True) if kept)
        return replace(self, channels=channels, shift=self.shift[chosen], scale=self.scale[chosen])

    def series(self, cohort: Cohort) -> Single:
        """(N, L, C), float32."""
        if cohort.length is not None:
            raise TimeDiffError("stays of different lengths cannot be evaluated yet: cut them with --horizon N.")
        out = np.empty((len(cohort), cohort.schema.steps, len(self.channels)), np.float32)
        filled: dict[str, Floats] = {}
        for i, channel in enumerate(self.channels):
            raw = np.asarray(cohort.values(channel.feature), np.float64).reshape(len(cohort), -1)
            if channel.part == "mask":
                values: Array = np.isnan(raw)
            elif channel.part == "elapsed":
                values = elapsed(np.isnan(raw))
            else:
                if channel.feature not in filled:
                    filled = {channel.feature: self._filled(channel.feature, raw)}  # the last one is enough
                values = filled[channel.feature]
                values = values if channel.level is None else values == channel.level
            shift, scale = self.shift[i], self.scale[i]
            if self.own is not None and len(cohort):
                shift, scale = _moments(np.asarray(values, np.float64).ravel(), self.own)
            out[:, :, i] = (values - shift) / scale
        return out

    def compared(self, real: Cohort, synthetic: Cohort) -> tuple[Single, Single]:
        """The series of both for a classifier: of windows the authors scale synthetic ones by training windows."""
        other = self.by_training if self.own == "minmax" else self
        return self.series(real), other.series(synthetic)

    def rows(self, cohort: Cohort) -> Single:
        """(N, …) as distances see stays: in the paper's protocol a static channel counts at every step."""
        return self.series(cohort).reshape(len(cohort), -1) if self.protocol == "paper" else self.flat(cohort)

    def flat(self, cohort: Cohort) -> Single:
        """(N, L · C): every channel at every step a column; a static channel counts once."""
        series = self.series(cohort)
        temporal = {feature.name for feature in self.schema.temporal}
        over_time = [c.feature in temporal for c in self.channels]
        once = series[:, 0, [not t for t in over_time]]
        return np.concatenate([series[:, :, over_time].reshape(len(series), -1), once], axis=1)

    def _filled(self, name: str, values: Floats) -> Floats:
        if self.protocol == "strict":
            from timediff.data.arrays import carried

            values = carried(values)
        return np.where(np.isnan(values), self.fill[name], values)


def _moments(seen: Floats, scaling: Scaling) -> tuple[Floats, Floats]:
    """What to subtract and to divide by, for each column; a constant one is only shifted."""
    if scaling == "minmax":
        shift, scale = seen.min(axis=0), np.ptp(seen, axis=0)
    else:
        shift, scale = seen.mean(axis=0), seen.std(axis=0)
    return shift, np.where(scale > 1e-6 * np.maximum(1.0, np.abs(shift)), scale, 1.0)


def elapsed(missing: Array) -> Floats:
    """Steps since the last measurement, or since the step before the first one, (N, L)."""
    steps = np.broadcast_to(np.arange(missing.shape[1]), missing.shape)
    return np.asarray(steps - np.maximum.accumulate(np.where(missing, -1.0, steps), axis=1), np.float64)


def windows(schema: Schema) -> bool:
    """Whether stays are windows cut from one long series: such schemas have an order."""
    return any(feature.role == "order" for feature in schema.features)


def _fill(feature: Feature, values: Floats) -> float:
    known = values[~np.isnan(values)]
    if known.size == 0:
        return 0.0
    return float(np.bincount(known.astype(np.int64)).argmax()) if feature.discrete else float(known.mean())
