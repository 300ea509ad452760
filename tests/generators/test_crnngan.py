"""C-RNN-GAN: feedback, feature matching and freezing."""

import pytest
import torch

from helpers.small_baselines import baseline, noise_for, untrained
from timediff.data.cohort import Cohort


def test_its_generator_matches_what_the_discriminator_sees_on_average(mixed: Cohort) -> None:
    """The states before the answer, at every step; and it does not minimise the adversarial loss."""
    made = untrained(baseline("crnngan"), mixed)
    network, stays = made.network, len(made.batch)
    with torch.no_grad():
        synthetic = network.generate(*network.sample_noise(noise_for(stays), 6), length=6)
        real, fake = (network.discriminator.states(x)[0] for x in (made.columns.of(made.batch), synthetic))
        expected = (real.mean(dim=0) - fake.mean(dim=0)).square().mean()
    losses = made.losses("generator")
    assert losses["total"].item() == pytest.approx(expected.item(), rel=1e-4)
    matching, fooling = made.gradient("generator"), made.gradient("generator", "fooling")
    assert min(matching.norm(), fooling.norm()) > 0
    assert torch.cosine_similarity(matching, fooling, dim=0) < 0.9


def test_trained_alone_its_generator_comes_to_match(mixed: Cohort) -> None:
    """What the discriminator sees of it approaches what it sees of real stays, step by step."""
    made = untrained(baseline("crnngan"), mixed)
    optimizer = torch.optim.Adam(made.network.generator.parameters(), lr=0.01)

    def distance() -> float:
        with torch.no_grad():
            network = made.network
            synthetic = network.generate(*network.sample_noise(noise_for(len(mixed)), 6), length=6)
            _, (real, fake) = network.discriminate(made.columns.of(made.batch), synthetic)
        return float((real.mean(dim=0) - fake.mean(dim=0)).square().mean())

    before = distance()
    for _ in range(30):
        made.network.zero_grad()
        made.losses("generator")["total"].backward()
        optimizer.step()
    assert distance() < 0.3 * before


@pytest.mark.parametrize("freeze", [0.0, 1.0])
def test_it_freezes_whoever_is_ahead(freeze: float, mixed: Cohort) -> None:
    made = untrained(baseline("crnngan", adversarial__freeze=freeze), mixed)
    with torch.no_grad():
        waits = [made.losses(name)["skip"].item() for name in made.objectives]
    assert sum(waits) == freeze


def test_it_is_fed_with_its_last_output(mixed: Cohort) -> None:
    network = untrained(baseline("crnngan"), mixed).network
    network.generate(*network.sample_noise(noise_for(5), 6), length=6).sum().backward()
    slope = network.generator.rnn.weight_ih_l0.grad
    assert slope[:, network.noise :].abs().max() > 0
