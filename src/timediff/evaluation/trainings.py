"""Trainings: how long the generators of an evaluation took to fit and to sample, where that was measured."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev


@dataclass(frozen=True)
class Training:
    """One training of a generator and the sampling from it."""

    generator: str
    seed: int
    seconds: float = math.nan  # of fitting, by the clock on the wall, all tries together
    updates: int | None = None  # optimizer updates; None = not a network, or not known
    sampling: float = math.nan  # stays a second, written to disk
    hardware: str = ""
    at_once: int = 1  # trainings that shared the machine
    resumed: bool = False  # stopped and continued, so that some of it was computed twice
    failure: str = ""  # why there are no stays of it


@dataclass(frozen=True)
class Runtime:
    """The trainings of one generator together: means, and the standard deviation over them."""

    generator: str
    trainings: int
    seconds: float
    std: float  # NaN of one
    ratio: float  # of the seconds, to those of the first generator that has some
    updates: float
    sampling: float
    sampling_std: float
    sampling_ratio: float
    hardware: str
    at_once: int
    resumed: bool
    failures: tuple[str, ...]  # "seed 1: why", each reason once


def runtimes(trainings: Sequence[Training]) -> list[Runtime]:
    """One a generator, in the order given."""
    found: list[Runtime] = []
    for name in dict.fromkeys(one.generator for one in trainings):
        mine = [one for one in trainings if one.generator == name]
        done = [one for one in mine if not one.failure]
        seconds, std = _mean_and_std([one.seconds for one in done])
        sampling, sampling_std = _mean_and_std([one.sampling for one in done])
        first = next((one for one in found if not math.isnan(one.seconds)), None)
        found.append(
            Runtime(
                name,
                len(done),
                seconds,
                std,
                _ratio(seconds, first.seconds if first else seconds),
                fmean([one.updates for one in done if one.updates is not None] or [math.nan]),
                sampling,
                sampling_std,
                _ratio(sampling, first.sampling if first else sampling),
                "; ".join(dict.fromkeys(one.hardware for one in done if one.hardware)),
                max([one.at_once for one in done], default=1),
                any(one.resumed for one in done),
                _failures(mine),
            )
        )
    return found


def _failures(trainings: Sequence[Training]) -> tuple[str, ...]:
    reasons = dict.fromkeys(one.failure for one in trainings if one.failure)
    seeds = {why: [str(one.seed) for one in trainings if one.failure == why] for why in reasons}
    return tuple(f"seed{'s' * (len(which) > 1)} {', '.join(which)}: {why}" for why, which in seeds.items())


def _mean_and_std(values: Sequence[float]) -> tuple[float, float]:
    known = [value for value in values if not math.isnan(value)]
    return (fmean(known) if known else math.nan), (stdev(known) if len(known) > 1 else math.nan)


def _ratio(value: float, first: float) -> float:
    return value / first if first > 0 else math.nan
