"""Noise depends on its key alone."""

import pytest
import torch

from timediff.errors import TimeDiffError
from timediff.runtime.randomness import Noise, sampling_noise

CPU = torch.device("cpu")


def test_blocks_are_independent_of_their_company() -> None:
    together = sampling_noise(0, 0, 1200, CPU)
    alone = [sampling_noise(0, 0, 500, CPU), sampling_noise(0, 1, 500, CPU), sampling_noise(0, 2, 200, CPU)]
    for _ in range(3):
        assert torch.equal(together.normal(2, 3), torch.cat([noise.normal(2, 3) for noise in alone]))
        assert torch.equal(together.uniform(4), torch.cat([noise.uniform(4) for noise in alone]))


def test_keys_and_purposes_have_their_own_streams() -> None:
    streams = [
        Noise(purpose, [key], [8], 8, CPU).normal(50)
        for purpose in ("training", "sampling")
        for key in [(0, 0), (0, 1), (1, 0), (2**40, 0)]
    ]
    rows = torch.stack([stream.flatten() for stream in streams])
    assert torch.corrcoef(rows).fill_diagonal_(0).abs().max() < 0.25


def test_large_seeds_are_no_other_seeds_blocks() -> None:
    large, small = sampling_noise(5 + 3 * 2**32, 0, 4, CPU), sampling_noise(5, 3, 4, CPU)
    assert not torch.equal(large.normal(3), small.normal(3))
    with pytest.raises(TimeDiffError, match="cannot be a seed"):
        sampling_noise(2**64, 0, 4, CPU).normal(3)


def test_no_two_stays_of_a_million_have_the_same_noise() -> None:
    """The first number of each of 2,000 blocks: no stream is another's."""
    first = [float(sampling_noise(0, block, 1, CPU).normal()) for block in range(2000)]
    assert len(set(first)) == 2000


def test_distributions() -> None:
    noise = Noise("training", [(5,)], [1000], 1000, CPU)
    normal, uniform, whole = noise.normal(200), noise.uniform(200), noise.integers(7)
    assert abs(normal.mean()) < 0.01
    assert abs(normal.std() - 1) < 0.01
    assert 0 <= uniform.min() <= uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01
    assert set(whole.tolist()) == set(range(7))
