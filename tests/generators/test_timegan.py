"""TimeGAN: each loss is the published one, the phases and update ratio are, and noise enters at every step."""

import math

import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from helpers.small_baselines import Untrained, baseline, noise_for, untrained
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.generators.timegan.losses import moment_loss
from timediff.settings.resolve import resolve


@pytest.fixture
def made(mixed: Cohort) -> Untrained:
    return untrained(baseline("timegan"), mixed)


def seen(made: Untrained) -> dict[str, Tensor]:
    """All series of the published code's graph, by its names, with the noise that objectives get here."""
    gan = made.network
    with torch.no_grad():
        x = (made.columns.of(made.batch) + 1) / 2
        z = noise_for(len(x)).uniform(x.shape[1], x.shape[2])
        h, e = torch.sigmoid(gan.embedder(x)), torch.sigmoid(gan.generator(z))
        made_of_e = torch.sigmoid(gan.supervisor(e))
        return {
            "x": x, "h": h, "supervised": torch.sigmoid(gan.supervisor(h)),
            "x_tilde": torch.sigmoid(gan.recovery(h)), "x_hat": torch.sigmoid(gan.recovery(made_of_e)),
            "real": gan.discriminator(h), "fake": gan.discriminator(made_of_e), "fake_e": gan.discriminator(e),
        }  # fmt: skip


def entropy(logits: Tensor, real: bool) -> float:
    target = torch.full_like(logits, float(real))
    return binary_cross_entropy_with_logits(logits, target).item()


def squared(a: Tensor, b: Tensor) -> float:
    return (a - b).square().mean().item()


def test_the_generators_loss_is_the_published_one(made: Untrained) -> None:
    """Both adversarial losses, 100 times the root of the supervised one, and 100 times that of two moments."""
    s = seen(made)
    fooling = entropy(s["fake"], real=True) + entropy(s["fake_e"], real=True)
    supervised = squared(s["h"][:, 1:], s["supervised"][:, :-1])
    std = [(series.var(dim=0, correction=0) + 1e-6).sqrt() for series in (s["x_hat"], s["x"])]
    mean = [series.mean(dim=0) for series in (s["x_hat"], s["x"])]
    moments = ((std[0] - std[1]).abs().mean() + (mean[0] - mean[1]).abs().mean()).item()
    expected = fooling + 100 * supervised**0.5 + 100 * moments
    assert made.losses("generator")["total"].item() == pytest.approx(expected, rel=1e-5)
    assert min(fooling, supervised, moments) > 1e-3


@pytest.mark.parametrize("part", ["fooling", "supervised", "moments"])
def test_every_part_of_it_moves_the_generator_or_the_supervisor(part: str, made: Untrained) -> None:
    assert made.gradient("generator", part).norm() > 1e-4


def test_moments_are_those_of_each_step() -> None:
    """A series whose steps are in another order has the same moments over all steps, and others at each."""
    x = torch.rand(50, 4, 2, generator=torch.Generator().manual_seed(0)) + torch.arange(4)[:, None]
    assert moment_loss(x, x) == 0
    assert moment_loss(x.flip(0), x).item() == pytest.approx(0, abs=1e-6)
    assert moment_loss(x.flip(1), x) > 1
    assert moment_loss(2 * (x - x.mean(dim=0)) + x.mean(dim=0), x).item() == pytest.approx(
        x.std(dim=0, correction=0).mean().item(), rel=1e-3
    )


def test_the_embedders_losses_are_the_published_ones(made: Untrained) -> None:
    """Ten times the root of the error of recovery; later a tenth of the supervised loss too."""
    s = seen(made)
    recovery, supervised = squared(s["x"], s["x_tilde"]), squared(s["h"][:, 1:], s["supervised"][:, :-1])
    assert made.losses("embedding")["total"].item() == pytest.approx(10 * recovery**0.5, rel=1e-5)
    expected = 10 * recovery**0.5 + 0.1 * supervised
    assert made.losses("embedder")["total"].item() == pytest.approx(expected, rel=1e-6)
    assert made.losses("supervised")["total"].item() == pytest.approx(supervised, rel=1e-5)


def test_the_discriminator_sees_latent_series_of_three_kinds(made: Untrained) -> None:
    s = seen(made)
    expected = entropy(s["real"], real=True) + entropy(s["fake"], real=False) + entropy(s["fake_e"], real=False)
    losses = made.losses("discriminator")
    assert losses["total"].item() == losses["entropy"].item() == pytest.approx(expected, rel=1e-5)
    assert losses["penalty"] == losses["skip"] == 0


class Knows(torch.nn.Module):
    """Says with this certainty what is real, which is the first third of what it sees."""

    def __init__(self, logit: float) -> None:
        super().__init__()
        self.logit = logit

    def forward(self, series: Tensor) -> Tensor:
        is_real = torch.arange(len(series)) < len(series) // 3
        return torch.where(is_real, self.logit, -self.logit)[:, None, None].expand(-1, series.shape[1], 1)


@pytest.mark.parametrize(("logit", "waits"), [(9.0, 1), (3.0, 1), (2.9, 0), (-9.0, 0)])
def test_a_discriminator_waits_while_its_loss_is_below_15_hundredths(logit: float, waits: int, made: Untrained) -> None:
    made.network.discriminator = Knows(logit)
    losses = made.losses("discriminator")
    assert losses["entropy"].item() == pytest.approx(3 * math.log1p(math.exp(-logit)), rel=1e-4)
    assert losses["skip"] == waits


def test_generator_and_embedder_are_trained_twice_for_each_step_of_the_discriminator(mixed: Cohort) -> None:
    """And each phase has a third of the updates."""
    settings = resolve("timegan")
    objectives = {one.name: one for one in baseline("timegan", training__steps=150_000).objectives(Codec.fit(mixed))}
    repeats = {name: objectives[name].repeats for name in ("generator", "embedder", "discriminator")}
    assert repeats == {"generator": 2, "embedder": 2, "discriminator": 1}
    assert {name: one.modules for name, one in objectives.items()} == {
        "embedding": ("embedder", "recovery"), "supervised": ("supervisor",), "generator": ("generator", "supervisor"),
        "embedder": ("embedder", "recovery"), "discriminator": ("discriminator",),
    }  # fmt: skip
    assert [(one.first, one.end) for one in objectives.values()] == [
        (0, 50_000), (50_000, 100_000), (100_000, None), (100_000, None), (100_000, None),
    ]  # fmt: skip
    assert (settings.training.steps, settings.training.lr, settings.training.optimizer) == (150_000, 1e-3, "adam")


def test_its_networks_are_the_published_ones(mixed: Cohort) -> None:
    """Three layers of GRU, 4 × as wide as there are columns; two of the supervisor; noise as wide as the columns."""
    network = untrained(baseline("timegan", model__hidden="unset"), mixed).network
    layers = {name: getattr(network, name).rnn for name in ("embedder", "recovery", "generator", "supervisor")}
    assert {name: one.num_layers for name, one in layers.items()} == {
        "embedder": 3, "recovery": 3, "generator": 3, "supervisor": 2,
    }  # fmt: skip
    columns = network.recovery.output.out_features
    assert {one.hidden_size for one in layers.values()} == {4 * columns}
    assert {type(one) for one in layers.values()} == {torch.nn.GRU}
    assert layers["generator"].input_size == network.noise == columns


def test_noise_is_uniform_and_another_at_every_step(made: Untrained) -> None:
    (z,) = made.network.sample_noise(noise_for(500), 6)
    assert 0 <= z.min() < 0.01 < 0.99 < z.max() <= 1
    assert z.mean().item() == pytest.approx(0.5, abs=0.01)
    assert not torch.allclose(z[:, 0], z[:, 1], atol=0.1)


def test_stays_are_recovered_from_what_the_supervisor_makes_of_the_generators_series(made: Untrained) -> None:
    z = noise_for(len(made.batch)).uniform(6, made.network.noise)
    with torch.no_grad():
        assert torch.allclose(made.network.generate(z, length=6), 2 * seen(made)["x_hat"] - 1, atol=1e-6)


def test_the_published_preset_is_the_generators_own() -> None:
    assert resolve("timegan-published") == resolve("timegan")
