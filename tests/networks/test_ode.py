"""Fixed steps of an ordinary differential equation: their order, and the time."""

import math

import pytest
import torch

from timediff.networks.ode import ODESolver, solve


def test_a_solver_has_its_order() -> None:
    """y' = y: halving the step divides the error by 2, 4 and 16."""
    for method, order in (("euler", 1), ("midpoint", 2), ("rk4", 4)):
        coarse, fine = (
            abs(
                solve(lambda t, y: y, torch.ones(1, dtype=torch.float64), 0, 1, ODESolver(method, step)).item() - math.e
            )
            for step in (0.25, 0.125)
        )
        assert math.log2(coarse / fine) == pytest.approx(order, abs=0.4)


def test_a_solver_is_told_the_time() -> None:
    y = solve(lambda t, y: torch.full_like(y, t), torch.zeros(1, dtype=torch.float64), 2, 4, ODESolver("midpoint", 0.5))
    assert y.item() == pytest.approx((16 - 4) / 2)
