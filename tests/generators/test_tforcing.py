"""T-Forcing: samples and not means, made valid on their way."""

import torch

from helpers.small_baselines import baseline, columns_of
from timediff.data.cohort import Cohort
from timediff.generators.tforcing.network import Predictor
from timediff.generators.tforcing.settings import ForcingModelSettings


def test_sampled_steps_are_valid_and_pass_gradients_on(mixed: Cohort) -> None:
    columns, _ = columns_of(mixed)
    network = Predictor(columns, ForcingModelSettings(), 8)
    steps = torch.randn(20, 5, columns.width, requires_grad=True)
    valid = network.valid(steps)
    x, c = columns.split(valid.detach())
    assert torch.equal(columns.join(x, c), valid.detach())
    assert valid.abs().max() <= 1
    valid.sum().backward()
    assert torch.equal(steps.grad, (steps.detach().abs() <= 1).float())  # type: ignore[arg-type]


def test_steps_are_samples_and_not_means(mixed: Cohort) -> None:
    """Two stays with the same first step go different ways, and the same noise goes the same way."""
    columns, x = columns_of(mixed)
    network = Predictor(columns, ForcingModelSettings(), 8)
    network.next.initialise(x)
    first, z = x[:1, 0].expand(2, -1), torch.randn(2, 5, columns.width)
    with torch.no_grad():
        one, other = network.generate(first, z, length=6)
        again, _ = network.generate(first, z[:1].expand(2, -1, -1), length=6)
    assert torch.equal(one, again)
    assert torch.equal(one[0], other[0])
    assert not torch.allclose(one[1:], other[1:], atol=0.1)


def test_it_starts_as_the_linear_model_of_the_data(mixed: Cohort) -> None:
    """An update of 0.001 alone would leave what is carried over near 1."""
    carry = baseline("tforcing", training__steps=1).fit(mixed, seed=0).fitted.network.next.carry
    assert (carry - 1).abs().max() > 0.1
