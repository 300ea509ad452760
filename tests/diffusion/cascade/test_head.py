"""The autoregressive head: a distribution over all combinations of classes, sampled as it says."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from timediff.diffusion import categorical
from timediff.diffusion.cascade.head import UNITS, AutoregressiveHead

CLASSES = st.lists(st.integers(2, 5), min_size=1, max_size=4).map(tuple)


@settings(deadline=None)
@given(CLASSES, st.integers(0, 2**31 - 1))
def test_it_is_a_distribution(classes, seed):
    """The probabilities of all combinations of classes sum to 1."""
    torch.manual_seed(seed)
    head = AutoregressiveHead(classes)
    every = torch.cartesian_prod(*(torch.arange(k) for k in classes)).reshape(-1, len(classes))
    nll = head(torch.randn(head.width), every, head.one_hot(every))
    assert float((-nll.detach().sum(-1)).exp().sum()) == pytest.approx(1, abs=1e-4)


@settings(deadline=None)
@given(CLASSES, st.integers(0, 2**31 - 1))
def test_it_samples_by_the_probabilities_that_it_states(classes, seed):
    """The log-probability of each sampled class, given those sampled before it, is what the whole pass says of it."""
    torch.manual_seed(seed)
    head, start = AutoregressiveHead(classes), torch.randn(50, len(classes) * UNITS)
    used = []

    def choose(log_p: Tensor, channel: int) -> Tensor:
        c = categorical.sample(log_p, torch.rand(50))
        used.append(log_p.gather(-1, c[:, None])[:, 0])
        return c

    c = head.sample(start, choose)
    assert (c < torch.tensor(classes)).all()
    assert torch.allclose(torch.stack(used, -1), -head(start, c, head.one_hot(c)), atol=1e-4)


@pytest.mark.parametrize("joint", [True, False])
def test_a_channel_sees_the_classes_before_it_and_no_others(joint):
    torch.manual_seed(0)
    head = AutoregressiveHead((2, 3, 2), joint=joint)
    start = torch.randn(head.width)
    one, other = torch.tensor([0, 1, 0]), torch.tensor([0, 2, 0])  # the second channel differs
    first, second = (head(start, c, head.one_hot(c)) for c in (one, other))
    assert first[0] == second[0]
    assert (first[2] != second[2]) == joint


def test_without_channels_there_is_nothing_to_sample():
    head = AutoregressiveHead(())
    assert head.width == 0
    assert head.sample(torch.zeros(4, 7, 0), lambda log_p, i: pytest.fail("nothing to choose")).shape == (4, 7, 0)
