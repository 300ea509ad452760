"""T-Forcing: samples and not means, made valid on their way; as published means, fed back as they are."""

import pytest
import torch

from helpers.small_baselines import baseline, columns_of, noise_for, untrained
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


def test_as_published_the_loss_is_the_squared_error_of_the_next_step(mixed: Cohort) -> None:
    """Of stays as they are, with no noise on them, and of the RNN's output, to which nothing is added."""
    made = untrained(baseline("tforcing-published"), mixed)
    x = made.columns.of(made.batch)
    with torch.no_grad():
        expected = (made.network.next.rnn(x[:, :-1]) - x[:, 1:]).square().mean()
    assert made.losses("")["total"].item() == pytest.approx(expected.item(), rel=1e-5)


def test_as_published_only_the_first_step_varies_and_what_follows_are_means(mixed: Cohort) -> None:
    made = untrained(baseline("tforcing-published"), mixed)
    network, x = made.network, made.columns.of(made.batch)
    network.first.fit(x[:, 0])
    first, z = network.sample_noise(noise_for(500), 6)
    assert z.shape == (500, 5, 0)
    assert set(map(tuple, first.tolist())) <= set(map(tuple, x[:, 0].tolist()))
    with torch.no_grad():
        stays = network.generate(first, z, length=6)
        alike = (first[:, None] == first[None]).all(dim=-1)
        assert torch.equal(stays[0].expand_as(stays[alike[0]]), stays[alike[0]])
        assert torch.allclose(stays[:, 1:], network.next.rnn(stays[:, :-1]), atol=1e-5)  # raw, as it came out


def test_each_change_of_method_can_be_made_alone(mixed: Cohort) -> None:
    """A distribution without carry or noise on columns, and a mean with either."""
    for changes in (
        {"predicts": "distribution"}, {"carry": True}, {"dequantisation": 0.03}, {"feedback": "valid"},
        {"predicts": "distribution", "carry": True},
    ):  # fmt: skip
        given = {f"model__{name}": value for name, value in changes.items()}
        model = baseline("tforcing-published", training__steps=2, **given).fit(mixed, seed=0)
        assert len(model.sample(4, seed=1)) == 4
        next_step = model.fitted.network.get_submodule("next")
        assert hasattr(next_step, "factor") == ("predicts" in changes)
        assert (next_step.carry is not None) == ("carry" in changes)
