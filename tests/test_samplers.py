"""Samplers: given the true denoiser, what comes out is the data; and who computes it changes nothing."""

import pytest
import torch
from torch import Tensor

from timediff.diffusion import gaussian
from timediff.diffusion.mixed import MixedDiffusion
from timediff.diffusion.samplers import SAMPLERS
from timediff.diffusion.schedules import cosine, subset
from timediff.networks.brnn import BidirectionalRNN
from timediff.randomness import BLOCK, sampling_noise

CPU = torch.device("cpu")
WAYS = [("ancestral", 100), ("ancestral", 25), ("ancestral", 7), ("ddim", 100), ("ddim", 10)]


@pytest.mark.parametrize(("name", "calls"), WAYS)
def test_the_true_denoiser_of_one_stay_gives_that_stay(name: str, calls: int) -> None:
    process = MixedDiffusion(2, (2, 3), cosine(100))
    x0 = torch.tensor([[0.3, -0.8], [0.9, 0.0]])
    c0 = torch.tensor([[1, 2], [0, 1]])
    certain = 40 * process.join(torch.zeros(1, 2, 2), c0[None])[..., 2:]

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        noise = gaussian.predict_noise(x[..., :2], x0.expand(len(x), 2, 2), process.alpha_bar(t))
        return torch.cat([noise, certain.expand(len(x), 2, 5)], dim=-1)

    x, c = SAMPLERS["ddpm"][name](process, denoise, sampling_noise(0, 0, 50, CPU), 2, subset(100, calls))
    assert torch.allclose(x, x0.expand(50, 2, 2), atol=1e-4)
    assert (c == c0).all()


@pytest.mark.parametrize(("name", "calls"), WAYS)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_true_denoiser_of_a_distribution_gives_its_frequencies(name: str, calls: int, k: int) -> None:
    """One cell alone: with ĉ_0 = π, φ is q(c_t | c_s) q(c_s), Bayes' rule itself, so every stride is exact."""
    process = MixedDiffusion(0, (k,), cosine(100))
    wanted = torch.arange(1, k + 1) / sum(range(1, k + 1))

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        return wanted.log().expand(len(x), 1, k)

    _, c = SAMPLERS["ddpm"][name](process, denoise, sampling_noise(1, 0, 20_000, CPU), 1, subset(100, calls))
    found = torch.bincount(c.flatten(), minlength=k) / c.numel()
    assert torch.allclose(found, wanted, atol=0.012)


@pytest.mark.parametrize(("name", "calls"), [("ancestral", 1000), ("ddim", 250)])
def test_the_true_denoiser_of_a_gaussian_gives_its_spread(name: str, calls: int) -> None:
    """x_0 ~ N(0.2, 0.2²), well inside the clipping: E[ε | x_t] in closed form."""
    process, mean, sd = MixedDiffusion(1, (), cosine(1000)), 0.2, 0.2

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        alpha_bar = process.alpha_bar(t)
        variance = alpha_bar * sd**2 + 1 - alpha_bar
        return ((1 - alpha_bar).sqrt() * (x.double() - alpha_bar.sqrt() * mean) / variance).float()

    x, _ = SAMPLERS["ddpm"][name](process, denoise, sampling_noise(2, 0, 20_000, CPU), 1, subset(1000, calls))
    assert abs(float(x.mean()) - mean) < 0.01
    assert abs(float(x.std()) / sd - 1) < 0.025


@pytest.fixture(scope="module")
def network() -> BidirectionalRNN:
    torch.manual_seed(0)
    return BidirectionalRNN(5, 8).eval()


def drawn(network: BidirectionalRNN, seed: int, first: int, stays: int, name: str = "ddim") -> tuple[Tensor, Tensor]:
    process = MixedDiffusion(1, (2, 2), cosine(50))
    with torch.inference_mode():
        return SAMPLERS["ddpm"][name](process, network, sampling_noise(seed, first, stays, CPU), 4, subset(50, 5))


def test_same_seed_and_batch_same_bytes(network: BidirectionalRNN) -> None:
    (x, c), (again, c_again) = (drawn(network, 3, 0, 700) for _ in range(2))
    assert torch.equal(x, again)
    assert torch.equal(c, c_again)
    assert not torch.equal(x, drawn(network, 4, 0, 700)[0])


@pytest.mark.parametrize("name", SAMPLERS["ddpm"])
def test_how_blocks_are_shared_out_changes_nothing(network: BidirectionalRNN, name: str) -> None:
    whole_x, whole_c = drawn(network, 3, 0, 3 * BLOCK, name)
    parts = [drawn(network, 3, block, BLOCK, name) for block in range(3)]
    assert torch.allclose(whole_x, torch.cat([x for x, _ in parts]), atol=1e-5)
    assert torch.equal(whole_c, torch.cat([c for _, c in parts]))


def test_fewer_stays_are_the_first_of_more(network: BidirectionalRNN) -> None:
    few, many = drawn(network, 3, 0, 30)[0], drawn(network, 3, 0, 700)[0]
    assert torch.allclose(few, many[:30], atol=1e-5)
