"""Weights are chosen by held-out stays, always with the same noise; a resumed run chooses alike."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from helpers.one_number import ALONE, OneNumber, data, one_number_settings, squared
from helpers.small_runs import equal, signal_at, weights
from timediff.data.batch import Batch
from timediff.data.cohort import Cohort
from timediff.errors import Stopped
from timediff.generators.timediff.generator import TimeDiff
from timediff.runtime.randomness import Noise
from timediff.settings.resolve import resolve
from timediff.training.loop import train
from timediff.training.validation import Validation

ONES, HALVES = data(torch.ones(20)), data(torch.full((30,), 0.5))


def test_the_weights_are_those_of_the_lowest_held_out_loss() -> None:
    """Training pulls the number from 0 to 1; the held-out stays want 0.5."""
    said: list[str] = []
    weights = train(OneNumber(), ALONE, ONES, one_number_settings(), seed=0, held_out=HALVES, say=said.append)
    assert float(weights["w"]) == pytest.approx(0.5, abs=0.05)
    assert "lowest after update" in said[0]
    without = train(OneNumber(), ALONE, ONES, one_number_settings(), seed=0)
    assert float(without["w"]) > 0.9


def test_patience_ends_training() -> None:
    network = OneNumber()
    train(network, ALONE, ONES, one_number_settings(patience=3), seed=0, held_out=HALVES)
    assert 0.5 < float(network.w.detach()) < 0.8  # and not the 1 that it would have reached


def random_stays() -> Batch:
    return data(torch.randn(50, generator=torch.Generator().manual_seed(0)))


def test_the_same_weights_have_the_same_loss_whenever_they_are_looked_at() -> None:
    validation = Validation(OneNumber(), squared, random_stays(), seed=3)
    validation.look({"w": torch.tensor([0.2])}, 1)
    first = validation.latest
    torch.manual_seed(99)
    validation.look({"w": torch.tensor([0.2])}, 2)
    assert validation.latest == first
    assert validation.stale == 1


def test_held_out_stays_that_do_not_fit_are_looked_at_in_parts_with_the_same_loss() -> None:
    sizes: list[int] = []

    def limited(network: Any, batch: Batch, noise: Noise) -> dict[str, Tensor]:
        sizes.append(len(batch))
        if len(batch) > 20:
            raise RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED")
        return squared(network, batch, noise)

    whole = Validation(OneNumber(), squared, random_stays(), seed=3)
    parts = Validation(OneNumber(), limited, random_stays(), seed=3)
    for validation in (whole, parts):
        validation.look({"w": torch.tensor([0.2])}, 1)
    assert parts.latest == pytest.approx(whole.latest, rel=1e-5)
    assert sizes[:3] == [50, 25, 13]


@pytest.mark.parametrize("stop_at", [3, 7])
def test_with_dropout_and_held_out_stays_a_resumed_run_is_the_same_too(
    icu: Cohort, tmp_path: Path, stop_at: int
) -> None:
    changes = {
        "model.hidden": 8, "training.batch": 16, "training.warmup": 2, "training.checkpoint_every": 4,
        "training.validate_every": 3, "training.steps": 12, "training.validation": 0.2, "sampling.steps": 8,
    }  # fmt: skip
    settings = resolve("fast", assignments=changes)
    assert settings.model.dropout > 0
    TimeDiff(settings=settings).fit(icu, seed=5, run=tmp_path / "whole")
    with pytest.raises(Stopped):
        TimeDiff(settings=settings).fit(icu, seed=5, run=tmp_path / "run", progress=signal_at(stop_at))
    TimeDiff(settings=settings).fit(icu, seed=5, run=tmp_path / "run", resume=True)
    assert equal(weights(tmp_path / "run"), weights(tmp_path / "whole"))
