"""The order of stays."""

import torch

from timediff.training.order import Order

CPU = torch.device("cpu")


def test_an_epoch_sees_every_stay_once() -> None:
    order = Order(50, 10, seed=0, device=CPU)
    first, second = (torch.cat([order(i) for i in range(5 * e, 5 * e + 5)]) for e in (0, 1))
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(50))
    assert first.tolist() != second.tolist()
    assert torch.equal(Order(50, 10, seed=0, device=CPU)(7), order(7))
