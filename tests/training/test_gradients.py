"""Gradients as one vector."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from timediff.training.gradients import FlatGradient, clip_norm


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=9), st.floats(1e-3, 1e3))
def test_a_gradient_is_scaled_to_the_largest_norm_and_a_shorter_one_kept(values: list[float], most: float) -> None:
    before = torch.tensor(values, dtype=torch.float64)
    after, norm = before.clone(), before.norm().item()
    clip_norm(most)(after)
    expected = before * min(1.0, most / norm) if norm else before
    assert torch.allclose(after, expected, rtol=1e-3, atol=1e-6)


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))


def test_gradients_add_up_in_one_vector_in_the_order_of_parameters() -> None:
    model, reference = network(), network()
    reference.load_state_dict(model.state_dict())
    gradient = FlatGradient(list(model.parameters()))
    gradient.attach(model)
    x = torch.randn(4, 3)
    for _ in range(2):
        model(x).square().mean().backward()
    reference(x).square().mean().backward()
    expected = torch.cat([one.grad.flatten() for one in reference.parameters()])  # type: ignore[union-attr]
    assert torch.allclose(gradient.vector, 2 * expected, atol=1e-6)
    assert gradient.skip == 0


def test_only_its_own_parameters_get_a_gradient() -> None:
    model = network()
    gradient = FlatGradient(list(model[1].parameters()))
    gradient.attach(model)
    model(torch.ones(2, 3)).sum().backward()
    assert model[0].weight.grad is None
    assert gradient.vector.abs().max() > 0


def test_the_wish_to_skip_travels_with_the_gradient_and_is_no_part_of_it() -> None:
    gradient = FlatGradient(list(network().parameters()))
    gradient.skip.add_(0.75)
    assert gradient.vector.abs().max() == 0
    assert gradient.with_skip[-1] == pytest.approx(0.75)
    assert len(gradient.with_skip) == len(gradient.vector) + 1
