"""Channels as real columns."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.small_baselines import columns_of
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort


def test_columns_and_channels_are_each_others_inverse(mixed: Cohort) -> None:
    encoded = Codec.fit(mixed).encode(mixed)
    columns, joined = columns_of(mixed)
    x, c = columns.split(joined)
    assert joined.shape[-1] == columns.width
    assert np.array_equal(x.numpy(), encoded.continuous.numpy())
    assert np.array_equal(c.numpy(), encoded.discrete.numpy())


@given(st.lists(st.floats(-3, 3, width=32), min_size=19, max_size=19))
def test_whatever_a_method_makes_is_rounded_to_valid_classes(mixed: Cohort, numbers: list[float]) -> None:
    """To the nearest: no other class of a channel has columns that are less far away."""
    columns, _ = columns_of(mixed)
    values = torch.tensor(numbers).repeat(3)[: columns.width]
    x, c = columns.split(values)
    for channel, k in enumerate(columns.classes):
        own = columns.of_channel(channel)
        away = []
        for other in range(k):
            valid = columns.join(x, c.index_fill(0, torch.tensor(channel), other))
            away.append(float((valid - values)[own].double().norm()))
        assert away[c[channel]] <= min(away) + 1e-6
