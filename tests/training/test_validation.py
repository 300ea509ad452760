"""Weights are chosen by held-out stays, always with the same noise; a resumed run chooses alike."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from helpers.one_number import ALONE, OneNumber, data, one_number_settings, squared
from helpers.small_runs import equal, signal_at, weights
from timediff.data.batch import Batch
from timediff.data.cohort import Cohort
from timediff.errors import Stopped
from timediff.generators.timediff.generator import TimeDiff
from timediff.runtime.randomness import Noise
from timediff.settings.resolve import resolve
from timediff.training.loop import train
from timediff.training.objective import LossFunction, Objective
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


class TwoNumbers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.early, self.late = OneNumber(), OneNumber()


def towards(name: str, target: float, looks: Counter[str]) -> LossFunction:
    """The held-out stays want the number to stop at the target; training pulls it on to 1."""

    def loss(network: Any, batch: Batch, noise: Noise) -> dict[str, Tensor]:
        if bool((batch.continuous == 0.5).all()):
            looks[name] += 1
            batch = data(torch.full((len(batch),), target))
        return squared(network.get_submodule(name), batch, noise)

    return loss


def test_objectives_that_are_validated_each_by_itself_end_and_are_chosen_by_themselves() -> None:
    """One should stop at .3, the other at .7; by one common loss neither would."""
    said, looks = list[str](), Counter[str]()
    objectives = [
        Objective(towards(name, target, looks), name, (name,), validated=True)
        for name, target in (("early", 0.3), ("late", 0.7))
    ]
    network, settings = TwoNumbers(), one_number_settings(patience=3)
    weights = train(network, objectives, ONES, settings, seed=0, held_out=HALVES, say=said.append)
    assert float(weights["early.w"]) == pytest.approx(0.3, abs=0.05)
    assert float(weights["late.w"]) == pytest.approx(0.7, abs=0.05)
    assert float(network.early.w.detach()) < 0.6  # it ended long before the other
    assert looks["early"] < 0.7 * looks["late"]
    assert "(early) and " in said[0]
    assert "(late)" in said[0]


def random_stays() -> Batch:
    return data(torch.randn(50, generator=torch.Generator().manual_seed(0)))


def test_the_same_weights_have_the_same_loss_whenever_they_are_looked_at() -> None:
    validation = Validation(OneNumber(), ALONE[0], random_stays(), seed=3)
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

    whole = Validation(OneNumber(), ALONE[0], random_stays(), seed=3)
    parts = Validation(OneNumber(), Objective(limited), random_stays(), seed=3)
    for validation in (whole, parts):
        validation.look({"w": torch.tensor([0.2])}, 1)
    assert parts.latest == pytest.approx(whole.latest, rel=1e-5)
    assert sizes[:3] == [50, 25, 13]


@pytest.mark.parametrize("separate", [False, True])
@pytest.mark.parametrize("stop_at", [3, 7])
def test_with_dropout_and_held_out_stays_a_resumed_run_is_the_same_too(
    icu: Cohort, tmp_path: Path, stop_at: int, separate: bool
) -> None:
    changes = {
        "diffusion.separate": separate,
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
