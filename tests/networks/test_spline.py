"""Natural cubic splines: through what was observed, and SciPy's in between."""

import numpy as np
import pytest
import torch
from scipy.interpolate import CubicSpline
from torch import Tensor

from timediff.networks.spline import natural_cubic_spline


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("steps", [1, 2, 3, 9])
def test_a_spline_goes_through_its_values_and_is_straight_at_both_ends(steps: int) -> None:
    values = numbers(4, steps, 3)
    path = natural_cubic_spline(values)
    assert torch.equal(torch.stack([path(i) for i in range(steps)], dim=1), values)
    assert not path.curvature[:, [0, -1]].any()


def test_a_spline_is_scipys_in_between_and_so_is_its_derivative() -> None:
    values = numbers(4, 9, 3).double()
    path, expected = natural_cubic_spline(values), CubicSpline(np.arange(9), values, axis=1, bc_type="natural")
    for t in (0.0, 0.3, 1.0, 4.5, 7.9, 8.0):
        assert np.allclose(path(t), expected(t))
        assert np.allclose(path.derivative(t), expected(t, 1))


def test_with_missing_values_it_goes_through_the_others_alone() -> None:
    values, observed = numbers(6, 12, 2).double(), numbers(6, 12, 2, seed=1) > 0
    path = natural_cubic_spline(values, observed)
    for i in range(6):
        for j in range(2):
            knots = sorted({0, 11, *np.flatnonzero(observed[i, :, j])})
            expected = CubicSpline(knots, values[i, knots, j], bc_type="natural")
            assert np.allclose([path(t)[i, j] for t in np.arange(0, 11.1, 0.5)], expected(np.arange(0, 11.1, 0.5)))
