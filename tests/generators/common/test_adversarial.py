"""Adversarial losses and the gradient penalty; of every adversarial baseline both sides pull in opposite directions."""

import pytest
import torch

from helpers.small_baselines import baseline, noise_for, untrained
from timediff.data.cohort import Cohort
from timediff.generators.common.adversarial import (
    accuracy,
    discriminator_loss,
    gradient_penalty,
    loss_if_fake,
    loss_if_real,
    perturbed,
    with_penalty,
)


def test_losses_are_the_cross_entropies_of_either_class() -> None:
    logits = torch.tensor([[-3.0], [0.0], [2.0]])
    assert loss_if_real(logits).item() == pytest.approx(-torch.sigmoid(logits).log().mean().item(), rel=1e-5)
    assert loss_if_fake(logits).item() == pytest.approx(-torch.sigmoid(-logits).log().mean().item(), rel=1e-5)
    assert accuracy(torch.tensor([1.0, -1.0]), torch.tensor([-1.0, -2.0])) == 0.75


def test_the_penalty_is_the_squared_norm_of_the_gradient() -> None:
    """Exactly so, on average, for logits that are linear in the series: wᵀ x has the gradient w."""
    stays, weights = 20_000, torch.tensor([[0.5, -2.0], [1.0, 0.25], [0.0, 3.0]])
    series = torch.randn(2 * stays, 3, 2, generator=torch.Generator().manual_seed(0))
    moved = perturbed(series, noise_for(stays))
    logits = [(one.double() * weights).sum(dim=(1, 2))[:, None] for one in (series, moved)]
    assert gradient_penalty(logits[0], logits[1]).item() == pytest.approx(weights.square().sum().item(), rel=0.03)
    assert gradient_penalty(logits[0], logits[0]) == 0


def test_a_discriminator_without_a_penalty_is_asked_once() -> None:
    series, seen = torch.randn(6, 3, 2), list[int]()

    def discriminator(x: torch.Tensor) -> torch.Tensor:
        seen.append(len(x))
        return x.sum(dim=(1, 2))[:, None]

    (plain, none), (same, penalty) = (
        with_penalty(discriminator, series, noise_for(3), weight) for weight in (0.0, 1.0)
    )
    assert seen == [6, 12]
    assert torch.equal(plain, same)
    assert none == 0
    assert penalty > 0


@pytest.mark.parametrize("weight", [0.0, 0.5])
def test_a_discriminators_loss_is_both_cross_entropies_and_the_weighted_penalty(weight: float) -> None:
    """The first half of the series is real."""
    series = torch.randn(6, 3, 2, generator=torch.Generator().manual_seed(0))
    real, fake, losses = discriminator_loss(lambda x: x.sum(dim=(1, 2))[:, None], series, noise_for(3), weight)
    assert torch.equal(real, series[:3].sum(dim=(1, 2))[:, None])
    entropy = loss_if_real(real) + loss_if_fake(fake)
    assert losses["entropy"].item() == pytest.approx(entropy.item())
    assert losses["total"].item() == pytest.approx((entropy + weight * losses["penalty"]).item())
    assert (losses["penalty"] > 0) == (weight > 0)


@pytest.mark.parametrize("name", ["timegan", "rcgan", "crnngan", "latent-forcing"])
def test_both_sides_pull_in_opposite_directions(name: str, mixed: Cohort) -> None:
    """A discriminator trained alone is less easily fooled, and a generator trained alone fools it again."""
    made = untrained(baseline(name, adversarial__gradient_penalty=0.1), mixed)

    def fooling_after(objective: str, updates: int) -> float:
        optimizer = torch.optim.Adam(made.network.get_submodule(objective).parameters(), lr=0.01)
        for _ in range(updates):
            made.network.zero_grad()
            made.losses(objective)["total"].backward()
            optimizer.step()
        found = made.losses("generator")
        return found.get("fooling", found["total"]).item()

    before = fooling_after("generator", 0)
    wary = fooling_after("discriminator", 40)
    assert wary > before + 0.2
    assert fooling_after("generator", 40) < wary - 0.2
