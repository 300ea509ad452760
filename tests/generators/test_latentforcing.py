"""Latent forcing: its three phases, its supervisor, and the weights of its losses."""

import math

import pytest
import torch

from helpers.small_baselines import baseline, noise_for, untrained
from timediff.data.cohort import Cohort
from timediff.generators.latentforcing.network import Supervisor, standardisation
from timediff.settings.resolve import resolve


def test_the_generator_also_follows_the_supervised_loss(mixed: Cohort) -> None:
    """Ten times as much, in value and in gradient (η of TimeGAN's paper)."""
    made = untrained(baseline("latent-forcing"), mixed)
    losses = made.losses("generator")
    assert losses["total"].item() == pytest.approx((losses["fooling"] + 10 * losses["nll"]).item(), rel=1e-6)
    fooling, nll = (made.gradient("generator", loss) for loss in ("fooling", "nll"))
    assert min(fooling.norm(), nll.norm()) > 1e-3
    assert torch.allclose(made.gradient("generator"), fooling + 10 * nll, atol=1e-4)


def test_the_embedder_also_follows_the_supervised_error(mixed: Cohort) -> None:
    """A tenth of it, beside ten times the root of the error of recovery (λ of TimeGAN's paper)."""
    made = untrained(baseline("latent-forcing"), mixed)
    alone, together = made.losses("embedding"), made.losses("embedder")
    with torch.no_grad():
        h = made.network.embedder(made.columns.of(made.batch)).float()
        supervised = made.network.supervisor.squared_error(h)
    assert alone["total"].item() == pytest.approx((10 * alone["error"].sqrt() + standardisation(h)).item(), rel=1e-5)
    assert (together["total"] - alone["total"]).item() == pytest.approx(0.1 * supervised.item(), rel=1e-3)


@pytest.mark.parametrize("fraction", [0.0, 0.5])
def test_a_supervisor_is_initialised_with_and_without_a_phase_of_its_own(fraction: float, mixed: Cohort) -> None:
    model = baseline(
        "latent-forcing", training__steps=2, training__ema=0.0, phases__embedding=0.0, phases__supervised=fraction
    )
    supervisor = model.fit(mixed, seed=0).fitted.network.get_submodule("supervisor")
    assert supervisor.start.abs().max() > 0.1  # two updates of 0.001 alone would not lead there


def test_the_supervisor_is_initialised_with_a_few_stays_at_a_time(mixed: Cohort) -> None:
    """So that what a GPU's memory holds in training it holds here too."""
    made = untrained(baseline("latent-forcing"), mixed)
    seen: list[int] = []
    made.network.embedder.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    initialise = made.objectives["supervised"].initialise
    assert initialise is not None
    initialise(made.network, made.batch)
    assert sum(seen) == len(mixed)
    assert max(seen) <= 64


def test_a_latent_series_is_as_likely_as_the_innovations_it_is_sampled_from() -> None:
    """−log p(h) is −log p(z), and the logarithm of how much larger the volume is."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        supervisor = Supervisor(3, resolve("latent-forcing"), 8)
        for weight in supervisor.parameters():
            torch.nn.init.normal_(weight, std=0.3)
        z = torch.randn(20, 6, 3)
        with torch.no_grad():
            h = supervisor.series(z)
            nll, error = supervisor.nll_of(h), supervisor.squared_error(h)
            mean, std, _, _ = supervisor(h[:, :-1])
    first, later = ((part.square().mean() + math.log(2 * math.pi)) / 2 for part in (z[:, 0], z[:, 1:]))
    later += std.log().mean() + supervisor.factor.lower.diagonal().mean()
    first += supervisor.start_factor.lower.diagonal().mean()
    assert nll.item() == pytest.approx((later + first / 5).item(), rel=1e-4)
    assert error.item() == pytest.approx((h[:, 1:] - mean).square().mean().item())


def test_a_supervisor_starts_with_the_first_steps_of_the_data() -> None:
    torch.manual_seed(0)
    factor = torch.tensor([[2.0, 0.0], [1.0, 0.5]])
    series = (torch.tensor([1.0, -3.0]) + torch.randn(20_000, 2) @ factor.T)[:, None].repeat(1, 2, 1)
    supervisor = Supervisor(2, resolve("latent-forcing"), 8)
    supervisor.initialise(series)
    assert torch.allclose(supervisor.start, torch.tensor([1.0, -3.0]), atol=0.05)
    assert torch.allclose(supervisor.start_factor(), factor, atol=0.05)


def test_a_discriminator_that_is_right_enough_waits(mixed: Cohort) -> None:
    made = untrained(baseline("latent-forcing"), mixed)
    assert made.losses("discriminator")["skip"] == 0
    optimizer = torch.optim.Adam(made.network.discriminator.parameters(), lr=0.05)
    for _ in range(80):
        made.network.zero_grad()
        losses = made.objectives["discriminator"].loss(made.network, made.batch, noise_for(len(mixed)))
        if losses["entropy"] < 0.15:
            break
        losses["total"].backward()
        optimizer.step()
    assert losses["skip"] == 1
