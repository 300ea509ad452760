"""Losses of stays in levels: no column and no step is left out, and none counts for another stay."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.small_baselines import columns_of
from timediff.data.cohort import Cohort
from timediff.generators.common.stay_losses import by_kind, by_kind_and_part, by_part


@given(steps=st.integers(1, 100), seed=st.integers(0, 9))
def test_parts_are_all_steps_in_their_order_as_even_as_can_be(steps: int, seed: int) -> None:
    losses = torch.randn(3, steps, generator=torch.Generator().manual_seed(seed))
    parts = by_part(losses)
    if steps <= 24:
        assert torch.equal(parts, losses)
        return
    assert parts.shape == (3, 24)
    sizes = [steps // 24 + (i < steps % 24) for i in range(24)]
    expected = [part.mean(dim=1) for part in torch.split(losses, sizes, dim=1)]
    assert torch.allclose(parts, torch.stack(expected, dim=1), atol=1e-6)


def test_kinds_are_values_and_classes_and_one_that_is_not_there_has_no_loss(mixed: Cohort) -> None:
    columns, x = columns_of(mixed)
    found = by_kind(x, columns)
    assert torch.allclose(found["values"], x[..., : columns.continuous].mean(dim=-1))
    assert torch.allclose(found["classes"], x[..., columns.continuous :].mean(dim=-1))
    assert by_kind_and_part(x, columns)["classes"].shape == x.shape[:2]
    columns.continuous = 0
    assert list(by_kind(x, columns)) == ["classes"]
