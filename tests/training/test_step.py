"""A training step: whose parameters are stepped when, with which learning rate, and their moving average."""

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from helpers.small_steps import noisy_loss, small_network, training_step
from timediff.data.batch import Batch
from timediff.runtime.randomness import Noise
from timediff.settings.training import TrainingSettings
from timediff.training.ema import EMA
from timediff.training.objective import Objective
from timediff.training.step import learning_rate


def unused(*given: object) -> dict[str, Tensor]:
    raise AssertionError


@pytest.mark.parametrize("decay", ["none", "linear", "cosine"])
def test_learning_rate_rises_and_falls(decay: str) -> None:
    settings = TrainingSettings(steps=100, lr=1.0, warmup=10, decay=decay)  # type: ignore[arg-type]
    rates = [learning_rate(settings, step, Objective(unused)) for step in range(100)]
    assert rates[:10] == pytest.approx([(i + 1) / 10 for i in range(10)])
    assert max(rates) == 1
    assert all(later <= earlier for earlier, later in pairwise(rates[10:]))
    assert rates[-1] == 1 if decay == "none" else rates[-1] < 0.02
    phase = Objective(unused, first=1000, end=1100)  # in whatever training: each phase has its own rise and fall
    assert [learning_rate(replace(settings, steps=5000), 1000 + step, phase) for step in range(100)] == rates


def test_losses_are_taken_once() -> None:
    step = training_step(small_network(), (Objective(noisy_loss),))
    assert step.take_losses() == {}
    step(0)
    assert set(step.take_losses()) == {"total", "other"}
    assert step.take_losses() == {}


def first_and_last() -> tuple[Objective, ...]:
    return (
        Objective(noisy_loss, "first", ("0",)),
        Objective(noisy_loss, "last", ("2",), repeats=2, first=1, end=3),
    )


def test_each_objective_moves_its_own_parameters_while_it_is_active() -> None:
    network = small_network()
    step = training_step(network, first_and_last())
    for number, (first, last) in enumerate([(True, False), (True, True), (True, True), (True, False)]):
        before = {name: value.clone() for name, value in network.state_dict().items()}
        step(number)
        moved = {
            name.split(".")[0] for name, value in network.state_dict().items() if not torch.equal(value, before[name])
        }
        assert moved == {part for part, moves in (("0", first), ("2", last)) if moves}


def test_an_objective_may_have_its_turn_every_few_steps() -> None:
    objective = Objective(noisy_loss, first=1, end=8, every=3)
    assert [step for step in range(10) if objective.active(step)] == [1, 4, 7]


def test_an_objective_initialises_once_with_all_data_before_its_first_step() -> None:
    seen: list[int] = []

    def initialise(network: nn.Module, data: Batch) -> None:
        seen.append(len(data))
        torch.nn.init.constant_(network[2].weight, 7.0)  # type: ignore[index]

    network = small_network()
    objectives = (
        Objective(noisy_loss, "first", ("0",)),
        Objective(noisy_loss, "last", ("2",), repeats=2, first=1, initialise=initialise),
    )
    step = training_step(network, objectives)
    for number in range(4):
        step(number)
        assert len(seen) == min(number, 1)
    assert seen == [60]
    assert torch.allclose(network.state_dict()["2.weight"], torch.tensor(7.0), atol=0.2)


def test_losses_of_several_objectives_go_by_their_names() -> None:
    step = training_step(small_network(), first_and_last())
    step(0)
    assert set(step.take_losses()) == {"first", "first_other", "total"}
    step(1)
    taken = step.take_losses()
    assert set(taken) == {"first", "first_other", "last", "last_other", "total"}
    assert taken["total"] == pytest.approx(taken["first"] + taken["last"])


def test_every_optimizer_step_has_a_batch_and_noise_of_its_own() -> None:
    seen: list[tuple[Tensor, Tensor]] = []

    def watched(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
        seen.append((batch.continuous, noise.normal()))
        return {"total": network(batch.continuous).square().mean()}

    step = training_step(small_network(), (Objective(watched, "a", repeats=2), Objective(watched, "b")))
    for number in range(2):
        step(number)
    assert len(seen) == 6
    for number, (batch, draw) in enumerate(seen):
        for other, drawn in seen[:number]:
            assert not torch.equal(batch, other)
            assert not torch.equal(draw, drawn)


def test_the_average_warms_up() -> None:
    """After n training steps 9 / (10 + n) of the network goes in, however slow the average is to become."""
    network = small_network()
    ema = EMA(network, 0.999)
    step = training_step(network, (Objective(noisy_loss),), ema=ema, lr=0.1)
    for number in range(3):
        before = ema.weights["0.weight"].clone()
        step(number)
        expected = before + 9 / (10 + number) * (network[0].weight.detach() - before)
        assert torch.allclose(ema.weights["0.weight"], expected, atol=1e-6)
        assert not torch.allclose(network[0].weight.detach(), before, atol=0.01)


@pytest.mark.parametrize("first", [0, 4])
def test_the_average_changes_every_few_steps_and_counts_its_own_changes(first: int) -> None:
    """A training that goes on in the middle changes it at the same steps, at the same rates."""
    network = small_network()
    ema = EMA(network, 0.999)
    step = training_step(network, (Objective(noisy_loss),), ema=ema, lr=0.1, ema_every=3)
    changed = {}
    for number in range(first, 10):
        before = ema.weights["0.weight"].clone()
        step(number)
        if not torch.equal(before, ema.weights["0.weight"]):
            distance = network[0].weight.detach() - before
            changed[number] = float(((ema.weights["0.weight"] - before) / distance).mean())
    assert changed == pytest.approx({n: 9 / (10 + n / 3) for n in (0, 3, 6, 9) if n >= first}, rel=1e-3)
