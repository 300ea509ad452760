"""An optimizer step: computed whole or in parts it is the same; what Adam is given is the mean gradient, clipped."""

from itertools import pairwise
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from helpers.small_steps import BATCH, noisy_loss, small_network, training_step
from timediff.data.batch import Batch
from timediff.errors import TimeDiffError
from timediff.runtime.randomness import Noise
from timediff.training.objective import LossFunction, Objective


class Limited:
    """The loss on a device that holds so many rows."""

    def __init__(self, rows: int, spared: int = 0) -> None:
        self.rows, self.spared, self.seen = rows, spared, list[int]()

    def __call__(self, network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
        self.seen.append(len(batch))
        if len(batch) > self.rows and len(self.seen) > self.spared:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return noisy_loss(network, batch, noise)


def stepped(
    loss: LossFunction, steps: int = 3, accumulate: int = 2
) -> tuple[dict[str, Tensor], dict[str, float], list[str]]:
    """Weights after some training steps, the losses' means, and what was said."""
    network, said = small_network(), list[str]()
    step = training_step(network, (Objective(loss),), said, accumulate=accumulate)
    for number in range(steps):
        step(number)
    return network.state_dict(), step.take_losses(), said


@pytest.mark.parametrize(("rows", "spared"), [(12, 0), (7, 0), (1, 0), (12, 1), (12, 3)])
def test_a_batch_that_does_not_fit_is_computed_in_parts_with_the_same_result(rows: int, spared: int) -> None:
    """Whether memory is short at once, or in the second batch of an optimizer step."""
    whole, means, quiet = stepped(noisy_loss)
    loss = Limited(rows, spared)
    parts, part_means, said = stepped(loss)
    for name, value in whole.items():
        assert torch.allclose(parts[name], value, atol=1e-6)
    assert part_means == pytest.approx(means, rel=1e-5)
    assert not quiet
    assert all("memory is full" in line for line in said)
    assert loss.seen.count(BATCH) == spared + 1  # and once it is known, it is not tried again


def test_a_device_that_holds_not_even_one_stay_is_named() -> None:
    with pytest.raises(TimeDiffError, match=r"does not hold one stay.*model\.hidden"):
        stepped(Limited(0))


@pytest.mark.parametrize(("wishes", "moves"), [((1.0, 0.0), True), ((1.0, 1.0), False), ((0.0, 0.0), True)])
def test_where_most_batches_wish_to_skip_parameters_stay_where_they_are(
    wishes: tuple[float, float], moves: bool
) -> None:
    """Momentum does not carry them on either."""
    coming = iter([0.0, 0.0, *wishes, 0.0, 0.0])

    def wishing(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
        return {"total": network(batch.continuous).square().mean(), "skip": torch.tensor(next(coming))}

    network = small_network()
    step = training_step(network, (Objective(wishing),), accumulate=2)
    states = [network.state_dict()["0.weight"].clone()]
    for number in range(3):
        step(number)
        states.append(network.state_dict()["0.weight"].clone())
    assert [not torch.equal(a, b) for a, b in pairwise(states)] == [True, moves, True]
    assert "skip" not in step.take_losses()


SLOPE = 3.0
SIZE = 5 * 7 + 7 + 7 + 1  # parameters of the small network


def linear_loss(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
    """Its gradient is SLOPE for every parameter, whatever the batch."""
    return {"total": SLOPE * torch.stack([one.sum() for one in network.parameters()]).sum()}


def moments(**changes: object) -> tuple[Tensor, Tensor]:
    """Adam's of all parameters, after one training step with the linear loss."""
    network, optimizers = small_network(), list[torch.optim.Optimizer]()
    training_step(network, (Objective(linear_loss),), optimizers=optimizers, **changes)(0)
    states = [optimizers[0].state[one] for one in network.parameters()]
    first, second = (torch.cat([state[key].flatten() for state in states]) for key in ("exp_avg", "exp_avg_sq"))
    return first, second


@pytest.mark.parametrize("accumulate", [1, 2, 5])
def test_the_gradient_is_the_mean_over_the_accumulated_batches(accumulate: int) -> None:
    first, _ = moments(accumulate=accumulate, clip=1e9, betas=(0.9, 0.99))
    assert torch.allclose(first, torch.full((SIZE,), 0.1 * SLOPE))


@pytest.mark.parametrize(("kind", "of_objective"), [("sgd", None), ("adam", "sgd")])
@pytest.mark.parametrize("skip", [0.0, 1.0])
def test_a_step_of_sgd_is_the_learning_rate_times_the_gradient(
    kind: str, of_objective: Literal["sgd"] | None, skip: float
) -> None:
    """Whether all objectives are trained by it, or this one; and none is taken where it should be skipped."""

    def loss(network: nn.Module, batch: Batch, noise: Noise) -> dict[str, Tensor]:
        return {**linear_loss(network, batch, noise), "skip": torch.tensor(skip)}

    network = small_network()
    before = torch.cat([one.detach().flatten().clone() for one in network.parameters()])
    step = training_step(network, (Objective(loss, optimizer=of_objective),), optimizer=kind, clip=1e9, lr=0.25)
    step(0)
    after = torch.cat([one.detach().flatten() for one in network.parameters()])
    assert torch.allclose(before - after, torch.full((SIZE,), 0.25 * SLOPE * (1 - skip)), atol=1e-6)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize("clip", [0.01, 2.0, 1e9])
def test_the_gradient_that_adam_is_given_is_clipped(clip: float, accumulate: int) -> None:
    first, second = moments(accumulate=accumulate, clip=clip, betas=(0.9, 0.99))
    norm = min(clip, SLOPE * SIZE**0.5)
    assert (first / 0.1).norm().item() == pytest.approx(norm, rel=1e-4)
    assert (second / 0.01).sum().sqrt().item() == pytest.approx(norm, rel=1e-4)


@pytest.mark.parametrize("betas", [(0.9, 0.99), (0.5, 0.75), (0.0, 0.9)])
def test_adams_moments_follow_the_betas_that_are_set(betas: tuple[float, float]) -> None:
    first, second = moments(clip=1e9, betas=betas)
    assert torch.allclose(first, torch.full((SIZE,), (1 - betas[0]) * SLOPE))
    assert torch.allclose(second, torch.full((SIZE,), (1 - betas[1]) * SLOPE**2))


@pytest.mark.parametrize("lr", [0.5, 2.0])
def test_an_objective_has_its_own_learning_rate(lr: float) -> None:
    """Adam's first step is as long as the learning rate."""
    network = small_network()
    before = network[0].weight.detach().clone()
    training_step(network, (Objective(linear_loss, lr=lr),), lr=0.01)(0)
    assert torch.allclose(before - network[0].weight.detach(), torch.tensor(0.01 * lr), atol=1e-6)
