"""Schedules: ᾱ falls from nearly 1 to nearly 0, and a subset of steps keeps both ends."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from timediff.diffusion.ddpm.schedules import SCHEDULES, subset


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("steps", [50, 1000])
def test_alpha_bar_falls_from_one_to_nothing(name: str, steps: int) -> None:
    alpha_bar = SCHEDULES[name](steps)
    assert alpha_bar.dtype == torch.float64
    assert len(alpha_bar) == steps
    assert (alpha_bar.diff() < 0).all()
    assert alpha_bar[0] > 0.99
    assert 0 < alpha_bar[-1] < 1e-3


def test_linear_is_the_published_one() -> None:
    beta = torch.linspace(1e-4, 0.02, 1000, dtype=torch.float64)
    assert torch.allclose(SCHEDULES["linear"](1000), torch.cumprod(1 - beta, 0), rtol=1e-12)


@given(st.integers(1, 1000), st.data())
def test_a_subset_falls_from_the_last_step(steps: int, data: st.DataObject) -> None:
    calls = data.draw(st.integers(1, steps))
    chosen = subset(steps, calls)
    assert len(chosen) == calls
    assert chosen[0] == steps - 1
    assert chosen[-1] >= 0
    assert all(later < earlier for earlier, later in pairwise(chosen))


def test_none_means_all() -> None:
    assert subset(7, None) == [6, 5, 4, 3, 2, 1, 0]
