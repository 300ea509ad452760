"""Samplers: given the true denoiser, what comes out is the data; and who computes it changes nothing."""

import pytest
import torch
from torch import Tensor

from helpers.denoisers import Function, built, no_network, stays_of
from timediff.data.batch import Batch, Layout
from timediff.diffusion.ddpm import gaussian
from timediff.diffusion.ddpm.process import MixedDiffusion
from timediff.diffusion.ddpm.schedules import cosine
from timediff.diffusion.process import NoiseSource
from timediff.diffusion.samplers import DDPM_SAMPLERS
from timediff.networks.brnn import BidirectionalRNN
from timediff.runtime.randomness import BLOCK

WAYS = [("ancestral", 100), ("ancestral", 25), ("ancestral", 7), ("ddim", 100), ("ddim", 10)]


@pytest.mark.parametrize(("name", "calls"), WAYS)
def test_the_true_denoiser_of_one_stay_gives_that_stay(name: str, calls: int) -> None:
    process = MixedDiffusion(Layout.of(2, (2, 3)), no_network, cosine(100))
    x0 = torch.tensor([[0.3, -0.8], [0.9, 0.0]])
    c0 = torch.tensor([[1, 2], [0, 1]])
    certain = 40 * process.one_hot(c0)

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        noise = gaussian.predict_noise(x[..., :2], x0.expand(len(x), 2, 2), process.alpha_bar(t))
        return torch.cat([noise, certain.expand(len(x), 2, 5)], dim=-1)

    process.denoiser = Function(denoise)
    sampled = process.sample(*stays_of(50, 2), sampler=name, steps=calls)
    assert torch.allclose(sampled.continuous, x0.expand(50, 2, 2), atol=1e-4)
    assert (sampled.discrete == c0).all()


@pytest.mark.parametrize("name", ["ancestral", "ddim"])
def test_whatever_the_network_says_values_stay_in_their_range(name: str) -> None:
    """The predicted x_0 is clipped to [−1, 1] before every step, so the last one gives −1 or 1 here."""
    network = built(lambda x, t: torch.where(torch.arange(2) == 0, 9.0, -9.0).expand(len(x), 3, 2))
    process = MixedDiffusion(Layout.of(2, ()), network, cosine(20))
    sampled = process.sample(*stays_of(30, 3), sampler=name, steps=5).continuous
    assert torch.allclose(sampled, torch.tensor([-1.0, 1.0]).expand(30, 3, 2), atol=1e-6)


@pytest.mark.parametrize(("name", "calls"), WAYS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_true_denoiser_of_a_distribution_gives_its_frequencies(name: str, calls: int, k: int) -> None:
    """One step alone: with ĉ_0 = π, φ is q(c_t | c_s) q(c_s), Bayes' rule itself, so every stride is exact."""
    wanted = torch.arange(1, k + 1) / sum(range(1, k + 1))
    network = built(lambda x, t: wanted.log().expand(len(x), 1, k))
    process = MixedDiffusion(Layout.of(0, (k,)), network, cosine(100))
    c = process.sample(*stays_of(20_000, 1, seed=1), sampler=name, steps=calls).discrete
    found = torch.bincount(c.flatten(), minlength=k) / c.numel()
    assert torch.allclose(found, wanted, atol=0.012)


@pytest.mark.parametrize(("name", "calls"), [("ancestral", 1000), ("ddim", 250)])
def test_the_true_denoiser_of_a_gaussian_gives_its_std(name: str, calls: int) -> None:
    """x_0 ~ N(0.2, 0.2²), well inside the clipping: E[ε | x_t] in closed form."""
    process, mean, std = MixedDiffusion(Layout.of(1, ()), no_network, cosine(1000)), 0.2, 0.2

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        alpha_bar = process.alpha_bar(t)
        variance = alpha_bar * std**2 + 1 - alpha_bar
        return ((1 - alpha_bar).sqrt() * (x.double() - alpha_bar.sqrt() * mean) / variance).float()

    process.denoiser = Function(denoise)
    x = process.sample(*stays_of(20_000, 1, seed=2), sampler=name, steps=calls).continuous
    assert abs(float(x.mean()) - mean) < 0.01
    assert abs(float(x.std()) / std - 1) < 0.025


@pytest.mark.parametrize("name", DDPM_SAMPLERS.names())
def test_the_predicted_x0_is_clipped_at_every_step(name: str) -> None:
    """x_0 far outside of [−1, 1], whether ±3 or ±5, is ±1: the whole path is the same."""
    process, ends = MixedDiffusion(Layout.of(2, ()), no_network, cosine(100)), torch.tensor([1.0, -1.0])

    def path(far: float) -> list[Tensor]:
        seen: list[Tensor] = []

        def denoise(x: Tensor, t: Tensor) -> Tensor:
            seen.append(x)
            return gaussian.predict_noise(x, (far * ends).expand_as(x), process.alpha_bar(t))

        sampled = process.sample(*stays_of(20, 3), sampler=name, steps=10, denoisers=[denoise])
        return [*seen, sampled.continuous]

    three, five = path(3.0), path(5.0)
    assert len(three) == 11
    assert all(torch.equal(one, other) for one, other in zip(three, five, strict=True))
    assert torch.allclose(three[-1], ends.expand(20, 3, 2), atol=1e-6)


def test_ddim_has_no_noise_of_its_own_and_ancestral_has() -> None:
    """What differs between two samplings that begin alike."""
    x_t, x0, one = torch.zeros(3, 2, 1), torch.ones(3, 2, 1), torch.ones(1, 1, 1, dtype=torch.float64)
    for name in ("ancestral", "ddim"):
        first, second = (
            DDPM_SAMPLERS(name)(x0, x_t, 0.3 * one, 0.6 * one, stays_of(3, 2, seed=seed)[0]) for seed in (0, 1)
        )
        assert torch.equal(first, second) == (name == "ddim")


def test_a_sampler_of_ones_own_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DDPM_SAMPLERS, "_parts", dict(DDPM_SAMPLERS._parts))
    used: list[float] = []

    @DDPM_SAMPLERS.register("mine")
    def mine(x0: Tensor, x_t: Tensor, alpha_bar_t: Tensor, alpha_bar_s: Tensor, noise: NoiseSource) -> Tensor:
        used.append(float(alpha_bar_s))
        return torch.full_like(x_t, 0.25)

    assert "mine" in DDPM_SAMPLERS
    process = MixedDiffusion(Layout.of(1, (2,)), built(lambda x, t: x), cosine(20))
    sampled = process.sample(*stays_of(5, 3), sampler="mine", steps=4)
    assert (sampled.continuous == 0.25).all()
    assert used == [*cosine(20)[[14, 9, 4]].tolist(), 1.0]


@pytest.fixture(scope="module")
def process() -> MixedDiffusion:
    torch.manual_seed(0)
    network = BidirectionalRNN(5, 8).eval()
    return MixedDiffusion(Layout.of(1, (2, 2)), lambda inputs, outputs: network, cosine(50))


def sampled(process: MixedDiffusion, seed: int, first: int, stays: int, name: str = "ddim") -> Batch:
    with torch.inference_mode():
        return process.sample(*stays_of(stays, 4, seed, first), sampler=name, steps=5)


def test_same_seed_and_batch_same_bytes(process: MixedDiffusion) -> None:
    one, again = (sampled(process, 3, 0, 700) for _ in range(2))
    assert torch.equal(one.continuous, again.continuous)
    assert torch.equal(one.discrete, again.discrete)
    assert not torch.equal(one.continuous, sampled(process, 4, 0, 700).continuous)


@pytest.mark.parametrize("name", DDPM_SAMPLERS.names())
def test_how_blocks_are_shared_out_changes_nothing(process: MixedDiffusion, name: str) -> None:
    whole = sampled(process, 3, 0, 3 * BLOCK, name)
    parts = [sampled(process, 3, block, BLOCK, name) for block in range(3)]
    assert torch.allclose(whole.continuous, torch.cat([part.continuous for part in parts]), atol=1e-5)
    assert torch.equal(whole.discrete, torch.cat([part.discrete for part in parts]))


def test_fewer_stays_are_the_first_of_more(process: MixedDiffusion) -> None:
    few, many = sampled(process, 3, 0, 30), sampled(process, 3, 0, 700)
    assert torch.allclose(few.continuous, many.continuous[:30], atol=1e-5)
