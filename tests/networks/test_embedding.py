"""The step embedding."""

import torch

from timediff.networks.embedding import sinusoidal


def test_steps_have_different_embeddings() -> None:
    embedded = sinusoidal(torch.arange(1000), 64)
    assert torch.cdist(embedded, embedded).fill_diagonal_(1).min() > 0.01
