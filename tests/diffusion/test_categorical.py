"""Samples of categorical distributions."""

import math

import pytest
import torch

from timediff.diffusion import categorical


@pytest.mark.parametrize("k", range(2, 8))
def test_samples_have_the_stated_frequencies(k: int) -> None:
    log_p = torch.linspace(0, 2, k).log_softmax(-1)
    uniform = torch.rand(200_000, generator=torch.Generator().manual_seed(0))
    sampled = categorical.sample(log_p.expand(len(uniform), k), uniform)
    assert torch.allclose(torch.bincount(sampled, minlength=k) / len(sampled), log_p.exp(), atol=0.005)


def test_a_sample_is_always_a_class() -> None:
    log_p = torch.tensor([[0.0, -math.inf, -math.inf], [-math.inf, -math.inf, 0.0]])
    edge = torch.tensor(1 - 2**-24)
    for uniform in (torch.zeros(2), edge.expand(2)):
        assert categorical.sample(log_p, uniform).tolist() == [0, 2]
