"""C-RNN-GAN: feedback, feature matching and freezing."""

import pytest
import torch

from helpers.small_baselines import baseline, noise_for, untrained
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.settings.resolve import resolve


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


def test_as_published_features_are_matched_stay_by_stay(mixed: Cohort) -> None:
    """So two batches of the same stays in another order do not match; their means would."""
    made = untrained(baseline("crnngan-published"), mixed)
    network, stays = made.network, len(made.batch)
    with torch.no_grad():
        synthetic = network.generate(*network.sample_noise(noise_for(stays), 6), length=6)
        real, fake = (network.discriminator.states(x)[0] for x in (made.columns.of(made.batch), synthetic))
    expected = sum((a - b).square().sum().item() for a, b in zip(real, fake, strict=True)) / stays
    assert made.losses("generator")["total"].item() == pytest.approx(expected, rel=1e-4)


def test_as_published_the_discriminators_answer_is_the_mean_probability_of_its_steps(mixed: Cohort) -> None:
    made = untrained(baseline("crnngan-published"), mixed)
    network, stays = made.network, len(made.batch)
    with torch.no_grad():
        synthetic = network.generate(*network.sample_noise(noise_for(stays), 6), length=6)
        real, fake = (
            network.discriminator(x).sigmoid().mean(dim=(1, 2)) for x in (made.columns.of(made.batch), synthetic)
        )
        expected = -(real.log().mean() + (1 - fake).log().mean())
    losses = made.losses("discriminator")
    assert losses["total"].item() == pytest.approx(expected.item(), rel=1e-5)
    assert made.losses("generator")["fooling"].item() == pytest.approx(-fake.log().mean().item(), rel=1e-5)


def test_as_published_noise_lies_between_0_and_1(mixed: Cohort) -> None:
    (z,) = untrained(baseline("crnngan-published"), mixed).network.sample_noise(noise_for(500), 6)
    assert 0 <= z.min() < 0.01 < 0.99 < z.max() <= 1
    (standard,) = untrained(baseline("crnngan"), mixed).network.sample_noise(noise_for(500), 6)
    assert torch.allclose(standard, 3**0.5 * (2 * z - 1))


def test_as_published_its_generator_first_learns_the_next_step_of_real_stays(mixed: Cohort) -> None:
    """By the squared error, from noise and the real step before, of which the first has none."""
    made = untrained(baseline("crnngan-published"), mixed)
    network, x = made.network, made.columns.of(made.batch)
    (z,) = network.sample_noise(noise_for(len(x)), 6)
    with torch.no_grad():
        output, state, error = torch.zeros_like(x[:, :1]), None, 0.0
        for step in range(6):
            h, state = network.generator.states(torch.cat([z[:, step : step + 1], output], dim=-1), state)
            output = x[:, step : step + 1]
            error += (network.generator.output(h).tanh() - output).square().mean().item() / 6
    assert made.losses("pretraining")["total"].item() == pytest.approx(error, rel=1e-5)


def test_as_published_all_are_trained_by_sgd_and_pretraining_comes_first(mixed: Cohort) -> None:
    settings = resolve("crnngan-published")
    assert (settings.training.optimizer, settings.training.lr, settings.training.batch) == ("sgd", 0.1, 20)
    assert settings.adversarial.freeze == 0.7
    objectives = baseline("crnngan-published", training__steps=50).objectives(Codec.fit(mixed))
    assert [(one.name, one.first, one.end, one.optimizer) for one in objectives] == [
        ("pretraining", 0, 5, None), ("discriminator", 5, None, None), ("generator", 5, None, None),
    ]  # fmt: skip
    assert [one.name for one in baseline("crnngan").objectives(Codec.fit(mixed))] == ["discriminator", "generator"]
