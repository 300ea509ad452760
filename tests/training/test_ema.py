"""The moving average of weights."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from timediff.training.ema import EMA


def test_it_is_the_mean_that_it_says() -> None:
    layer = torch.nn.Linear(1, 1, bias=False)
    ema = EMA(layer, 0.5)
    expected = float(layer.weight.detach())
    for update in range(20, 24):
        layer.weight.data.fill_(update)
        ema.update(layer, torch.tensor(ema.rate(update)))
        expected = 0.5 * expected + 0.5 * update
    assert float(ema.weights["weight"]) == pytest.approx(expected)


@given(decay=st.floats(0, 0.9999), updates=st.integers(0, 10**6))
def test_it_warms_up(decay: float, updates: int) -> None:
    """New weights go in at 9 / (10 + n) after n updates, until that is less than 1 − decay."""
    ema = EMA(torch.nn.Linear(1, 1), decay)
    assert ema.rate(updates) == pytest.approx(max(1 - decay, 9 / (10 + updates)))


def test_weights_of_another_training_are_taken_over() -> None:
    ema = EMA(torch.nn.Linear(2, 1), 0.9)
    kept = ema.weights["weight"]
    ema.load({"weight": torch.ones(1, 2), "bias": torch.zeros(1)})
    assert torch.equal(kept, torch.ones(1, 2))  # in place: what a CUDA graph has captured stays valid
