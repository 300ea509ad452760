"""P-Forcing: what its discriminator sees, and when it is trained against."""

import pytest
import torch

from helpers.small_baselines import baseline, columns_of, noise_for, untrained
from timediff.data.cohort import Cohort
from timediff.generators.common.next_step import DEQUANTISATION
from timediff.generators.pforcing.network import Professor
from timediff.generators.tforcing.settings import ForcingModelSettings


def test_it_sees_real_steps_where_it_was_forced_and_its_own_where_it_ran_freely(mixed: Cohort) -> None:
    columns, x = columns_of(mixed)
    network = Professor(columns, ForcingModelSettings(), 8)
    network.next.initialise(x)
    x = x[:10]
    _, behaviour = network.both(x, noise_for(10))
    forced, free = behaviour[..., network.next.rnn.width :].chunk(2)
    assert torch.allclose(forced, x[:, 1:], atol=6 * DEQUANTISATION)
    assert torch.equal(forced[..., columns.continuous :], x[:, 1:, columns.continuous :])
    assert not torch.allclose(free, x[:, 1:], atol=6 * DEQUANTISATION)


@pytest.mark.parametrize("listen", [0.0, 1.0])
def test_it_is_trained_against_its_discriminator_while_that_is_right_often_enough(listen: float, mixed: Cohort) -> None:
    made = untrained(baseline("pforcing", adversarial__listen=listen), mixed)
    forced, fooling = (made.gradient("generator", loss) for loss in ("forced", "fooling"))
    expected = forced + (fooling if listen == 0 else 0)  # it is never right in more than all cases
    assert fooling.norm() > 0
    assert torch.allclose(made.gradient("generator"), expected, atol=1e-6)


def test_as_published_it_learns_the_mean_and_its_discriminator_sees_means(mixed: Cohort) -> None:
    """The squared error of the next step; the free behaviour is what follows from the first step alone."""
    made = untrained(baseline("pforcing-published"), mixed)
    network, x = made.network, made.columns.of(made.batch)
    with torch.no_grad():
        loss, behaviour = network.both(x, noise_for(len(x)))
        again, same = network.both(x, noise_for(len(x) + 1))
        expected = (network.next.rnn(x[:, :-1]) - x[:, 1:]).square().mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    assert loss == again
    assert torch.equal(behaviour, same)
    forced, free = behaviour[..., network.next.rnn.width :].chunk(2)
    assert torch.equal(forced, x[:, 1:])
    assert torch.allclose(free[:, 0], network.next.rnn(x[:, :1])[:, 0], atol=1e-6)


@pytest.mark.parametrize("enough", [0.0, 1.0])
def test_its_discriminator_waits_while_it_is_right_often_enough(enough: float, mixed: Cohort) -> None:
    made = untrained(baseline("pforcing-published", adversarial__enough=enough), mixed)
    assert made.losses("discriminator")["skip"] == 1 - enough
