"""NextStep: its likelihood is that of the Gaussian it samples from, and it starts as the linear model of the data."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from timediff.generators.common.next_step import NextStep
from timediff.generators.tforcing.settings import ForcingModelSettings


def random_predictor(columns: int) -> NextStep:
    """One whose parameters are all at random."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = NextStep(columns, ForcingModelSettings(), 8)
        for weight in network.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    return network


@settings(deadline=None)  # PyTorch loads its distributions when they are first used
@given(columns=st.integers(1, 6), stays=st.integers(1, 5), steps=st.integers(1, 4), seed=st.integers(0, 99))
def test_the_likelihood_of_a_step_is_that_of_the_gaussian_it_is_sampled_from(
    columns: int, stays: int, steps: int, seed: int
) -> None:
    network, draws = random_predictor(columns).double(), torch.Generator().manual_seed(seed)
    x, after = (torch.randn(stays, steps, columns, dtype=torch.float64, generator=draws) for _ in range(2))
    with torch.no_grad():
        mean, std, _, _ = network(x)
        mean, std = mean.double(), std.double()
        law = torch.distributions.MultivariateNormal(mean, scale_tril=std[..., None] * network.factor())
        losses = network.losses(mean, std, after)
        assert losses.shape == after.shape
        assert torch.allclose(losses.sum(dim=-1), -law.log_prob(after), rtol=1e-6, atol=1e-6)
        first = torch.distributions.Normal(mean, std * network.factor()[0, 0])  # of the first column, by itself
        assert torch.allclose(losses[..., 0], -first.log_prob(after)[..., 0], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("across", [False, True])
def test_before_training_a_predictor_is_the_linear_model_of_the_data(across: bool) -> None:
    """Columns that stay, half stay and do not stay, or follow another one; and two of them that move together."""
    torch.manual_seed(0)
    carry, steps = torch.tensor([[0.99, 0.0, 0.0], [0.7 * across, 0.2, 0.0], [0.0, 0.0, 0.0]]), [torch.randn(4000, 3)]
    factor = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.8, 0.6]])
    for _ in range(30):
        steps.append(steps[-1] @ carry.T + torch.tensor([0.2, 0.5, 1.0]) * (torch.randn(4000, 3) @ factor.T))
    network = NextStep(3, ForcingModelSettings(), 8, across=across)
    network.initialise(torch.stack(steps, dim=1))
    assert torch.allclose(network.carry, carry if across else carry.diagonal(), atol=0.02)
    assert torch.allclose(network.factor(), factor, atol=0.03)


def test_columns_that_are_equal_or_stand_still_have_a_linear_model_too() -> None:
    x = torch.randn(50, 1, 1).expand(-1, 6, 3)
    network = NextStep(3, ForcingModelSettings(), 8)
    network.initialise(x)
    assert all(weight.isfinite().all() for weight in network.parameters())
    mean, std, _, _ = network(x[:, :-1])
    assert network.losses(mean, std, x[:, 1:]).isfinite().all()
