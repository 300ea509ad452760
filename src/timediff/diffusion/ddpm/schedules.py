"""Noise schedules: functions that return ᾱ^(t) for t = 0 … T − 1, in double precision."""

import math
from collections.abc import Callable

import torch
from torch import Tensor


def cosine(steps: int, offset: float = 0.008, largest_beta: float = 0.999) -> Tensor:
    """ᾱ of the cosine schedule (Nichol and Dhariwal 2021), each β at most `largest_beta`."""
    t = torch.arange(steps + 1, dtype=torch.float64) / steps
    f = torch.cos((t + offset) / (1 + offset) * math.pi / 2) ** 2
    beta = (1 - f[1:] / f[:-1]).clamp(max=largest_beta)
    return torch.cumprod(1 - beta, dim=0)


def linear(steps: int) -> Tensor:
    """ᾱ of the linear schedule (Ho et al. 2020), β from 1e-4 to 0.02 at T = 1000 and scaled for other T."""
    scale = 1000 / steps
    beta = torch.linspace(1e-4 * scale, 0.02 * scale, steps, dtype=torch.float64).clamp(max=0.999)
    return torch.cumprod(1 - beta, dim=0)


SCHEDULES: dict[str, Callable[[int], Tensor]] = {"cosine": cosine, "linear": linear}


def subset(steps: int, calls: int | None) -> list[int]:
    """`calls` evenly spaced steps of 0 … T − 1, the last one first; always with T − 1, and all of them when None."""
    calls = steps if calls is None else calls
    if not 1 <= calls <= steps:
        raise ValueError(f"{calls} network calls; expected 1 to {steps}")
    return [round((i + 1) * steps / calls) - 1 for i in reversed(range(calls))]
