"""The standard RNN: its first step says all."""

from typing import Any

import pytest
import torch

from helpers.small_baselines import baseline, noise_for, untrained
from timediff.data.cohort import Cohort
from timediff.generators.common.columns import Columns


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_it_minimises_the_squared_error_of_the_next_step(cell: str, skip: bool, mixed: Cohort) -> None:
    """Of each from the real ones before it alone, whether it reads them at once or one by one."""
    made = untrained(baseline("rnn", model__cell=cell, model__skip=skip), mixed)
    x, state, errors = made.columns.of(made.batch), None, []
    with torch.no_grad():
        for step in range(x.shape[1] - 1):
            predicted, state = made.network.rnn.step(x[:, step : step + 1], state)
            errors.append((predicted[:, 0] - x[:, step + 1]).square().mean())
    assert made.losses("")["total"].item() == pytest.approx(torch.stack(errors).mean().item(), rel=1e-4)


def test_a_stay_follows_from_its_first_step(mixed: Cohort) -> None:
    """There is no other noise: equal first steps are equal stays, and the first step is kept."""
    made = untrained(baseline("rnn"), mixed)
    first = made.columns.of(made.batch)[:2, 0]
    assert len(made.network.sample_noise(noise_for(8), 6)) == 1
    with torch.no_grad():
        stays = made.network.generate(first[[0, 0, 1]], length=6)
        again = made.network.generate(first[[0, 0, 1]], length=6)
    assert torch.equal(stays[:, 0], first[[0, 0, 1]])
    assert torch.equal(stays, again)
    assert torch.allclose(stays[0], stays[1], atol=1e-5)
    assert not torch.allclose(stays[0, 1:], stays[2, 1:], atol=1e-3)


def test_it_is_fed_with_its_own_steps_made_valid(mixed: Cohort) -> None:
    made = untrained(baseline("rnn"), mixed)
    network, fed = made.network, list[torch.Tensor]()
    network.rnn.rnn.register_forward_pre_hook(lambda _, given: fed.append(given[0]))
    with torch.no_grad():
        stays = network.generate(made.columns.of(made.batch)[:, 0], length=5)
    assert torch.equal(torch.cat(fed, dim=1), stays[:, :-1])
    with torch.no_grad():
        following = network.valid(network.rnn(stays[:, :-1]))
    assert torch.allclose(following, stays[:, 1:], atol=1e-5)  # it remembers all of them
    x, c = made.columns.split(stays)
    assert torch.allclose(made.columns.join(x, c), stays, atol=1e-6)
    assert x.abs().max() <= 4


def test_published_its_first_steps_are_those_of_training_stays(mixed: Cohort) -> None:
    made: Any = baseline("rnn", model__first="real", training__steps=1).fit(mixed, seed=0).fitted
    first = made.network.first.sample(noise_for(50))
    known = made.network.first.vectors
    codec = made.codec
    assert torch.equal(known, Columns(codec).of(codec.encode(mixed))[:, 0])
    assert all((known == one).all(dim=1).any() for one in first)
