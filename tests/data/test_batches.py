"""Training batches for networks of one's own."""

import numpy as np
import pytest
import torch

import timediff as td
from timediff.data.cohort import Cohort


def test_an_epoch_has_every_stay_once_in_an_order_of_the_seed(mixed: Cohort) -> None:
    known = td.batches(mixed, 50, seed=3)
    parts = list(known)
    assert [len(part) for part in parts] == [50, 50, 20]
    assert len(known) == 3
    together = torch.cat([part.continuous for part in parts])
    assert not torch.equal(together, known.data.continuous)
    assert torch.equal(together.flatten(1).sum(1).sort()[0], known.data.continuous.flatten(1).sum(1).sort()[0])
    assert all(torch.equal(a.discrete, b.discrete) for a, b in zip(parts, td.batches(mixed, 50, seed=3), strict=True))
    first, second = torch.cat([part.discrete for part in td.batches(mixed, 60, epochs=2)]).chunk(2)
    assert not torch.equal(first, second)


def test_channels_have_names_and_classes(mixed: Cohort) -> None:
    known = td.batches(mixed, 10)
    assert known.continuous == ("pulse", "lactate", "height")
    assert dict(zip(known.discrete, known.classes, strict=True)) == {
        "pulse (mask)": 2, "rhythm": 3, "rhythm (mask)": 2, "lactate (mask)": 2, "ventilated": 2, "unit": 5,
        "height (mask)": 2, "sex": 2, "died": 2,
    }  # fmt: skip
    batch = next(iter(known))
    assert batch.continuous.shape == (10, 6, 3)
    assert batch.discrete.shape == (10, 6, 9)
    assert batch.discrete[..., known.discrete.index("unit")].max() < 5
    assert set(batch.lengths.tolist()) == {6}


def test_a_batch_goes_back_to_values_with_their_units(mixed: Cohort) -> None:
    known = td.batches(mixed, len(mixed), seed=None)
    (batch,) = known
    back = known.decode(batch)
    for name in ("pulse", "sex", "unit"):
        assert np.allclose(back.values(name), mixed.values(name), equal_nan=True)
    again = td.batches(mixed.take(np.arange(30)), 30, seed=None, codec=known.codec)
    assert torch.equal(next(iter(again)).continuous, batch.continuous[:30])


@pytest.mark.parametrize("given", [{"size": 0}, {"epochs": 0}, {"seed": -1}])
def test_what_cannot_be_is_refused(mixed: Cohort, given: dict[str, int]) -> None:
    with pytest.raises(td.TimeDiffError, match="expected"):
        td.batches(mixed, **given)
