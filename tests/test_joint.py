"""Joint diffusion in continuous time: the laws of its parts, and that a perfect network gives back the data's law."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from timediff.diffusion import edm
from timediff.diffusion.joint import JointDiffusion
from timediff.diffusion.samplers import SAMPLERS
from timediff.randomness import Noise, sampling_noise

CPU = torch.device("cpu")


def training_noise(rows: int, key: int = 0) -> Noise:
    return Noise("training", [(key, 0, 0)], [rows], rows, CPU)


def test_noise_rises_with_the_level_and_its_logarithm_is_normal():
    u = torch.linspace(0.001, 0.999, 999)
    sigma = edm.sigma(u)
    assert (sigma.diff() > 0).all()
    assert float(edm.sigma(torch.tensor([0.5]))) == pytest.approx(math.exp(edm.P_MEAN), rel=1e-6)
    assert float(edm.sigma(torch.tensor([1.0]))) == edm.SIGMA_MAX
    assert float(edm.sigma(torch.tensor([0.0]))) == edm.SIGMA_MIN


@given(st.floats(0.01, 0.99))
def test_preconditioning_gives_back_the_data_for_the_output_that_it_wants(u):
    """F = (x_0 − c_skip x)/c_out makes D exactly x_0, and then F has unit variance for data of unit variance."""
    g = torch.Generator().manual_seed(0)
    x0, sigma = torch.randn(4000, 1, 1, generator=g), edm.sigma(torch.tensor([u]))[:, None, None]
    x = x0 + sigma.float() * torch.randn(4000, 1, 1, generator=g)
    wanted = (x0 - x / (sigma**2 + 1)) / (sigma * (sigma**2 + 1).rsqrt())
    assert torch.allclose(edm.denoised(x, wanted.float(), sigma), x0, atol=1e-4)
    assert float(wanted.std()) == pytest.approx(1, abs=0.1)
    assert float(edm.scaled_input(x, sigma).std()) == pytest.approx(1, abs=0.1)
    weighted = edm.weight(sigma) * (sigma * (sigma**2 + 1).rsqrt()) ** 2
    assert float(weighted) == pytest.approx(1)


@pytest.mark.parametrize("name", ["multistep", "euler"])
@pytest.mark.parametrize(("calls", "tolerance"), [(8, 0.15), (40, 0.05)])
def test_a_perfect_denoiser_of_a_normal_gives_that_normal(name, calls, tolerance):
    """Data N(0.5, 0.6²): D(x; σ) is known, and the sampler must end at that mean and spread."""
    process = JointDiffusion(1, (), ())

    def denoise(x, t):
        sigma = edm.sigma(t / 1000)[:, None, None]
        noisy = x * (sigma**2 + 1).sqrt()
        best = 0.5 + 0.36 / (0.36 + sigma**2) * (noisy - 0.5)
        return ((best - noisy / (sigma**2 + 1)) / (sigma * (sigma**2 + 1).rsqrt())).float()

    x, _ = SAMPLERS["edm"][name](process, denoise, sampling_noise(0, 0, 4000, CPU), 1, process.schedule(calls))
    assert float(x.mean()) == pytest.approx(0.5, abs=0.04)
    assert float(x.std()) == pytest.approx(0.6, abs=tolerance)


def test_cells_are_uncovered_by_the_networks_probabilities_given_what_is_known():
    """Two channels of one step: the second equals the first. A network that knows this gives it at 16 calls."""
    process = JointDiffusion(0, (3, 3), (False, False))

    def denoise(hot, t):
        a, b = hot[..., :4], hot[..., 4:]
        prior = torch.tensor([0.2, 0.3, 0.5]).log().expand(*hot.shape[:2], 3)
        sure = 40 * torch.stack([b[..., :3], a[..., :3]])
        known = torch.stack([b[..., 3:] == 0, a[..., 3:] == 0])
        first, second = torch.where(known, sure, prior)
        return torch.cat([first, second], dim=-1)

    _, c = SAMPLERS["edm"]["multistep"](process, denoise, sampling_noise(0, 0, 6000, CPU), 1, process.schedule(16))
    assert (c < 3).all()
    shares = torch.bincount(c[:, 0, 0], minlength=3) / len(c)
    assert torch.allclose(shares, torch.tensor([0.2, 0.3, 0.5]), atol=0.03)
    together = float((c[:, 0, 0] == c[:, 0, 1]).float().mean())
    assert together > 1 - 1 / 16 - 0.02  # cells that are uncovered in the same call do not know of each other


def test_whole_stay_classes_are_drawn_first_and_are_the_same_at_every_step():
    process = JointDiffusion(1, (2, 2), (True, False))
    seen = []

    def denoise(x, t):
        seen.append(float(t[0]))
        out = torch.zeros(*x.shape[:2], 1 + 4)
        out[..., 1] = math.log(0.8 / 0.2)  # class 0 of the whole-stay channel with probability .8
        known = x[..., 1 + 2 : 1 + 3].sum() == 0
        assert known == (len(seen) > 1)
        return out

    _, c = SAMPLERS["edm"]["multistep"](process, denoise, sampling_noise(0, 0, 3000, CPU), 5, process.schedule(9))
    assert len(seen) == 9
    assert (c[:, :, 0] == c[:, :1, 0]).all()
    assert float((c[:, 0, 0] == 0).float().mean()) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("lead", [0.0, 0.5])
def test_the_loss_of_a_perfect_guess_is_its_entropy(lead):
    """Independent cells: −log p(c_0) averaged, whatever the level: the weight −h′/h undoes how many are hidden."""
    process = JointDiffusion(0, (2,), (False,), lead=lead)
    g = torch.Generator().manual_seed(0)
    c0 = (torch.rand(20_000, 6, 1, generator=g) < 0.3).long()
    logits = torch.tensor([0.7, 0.3]).log()
    noise = training_noise(len(c0))
    losses = process.loss(
        lambda x, t: logits.expand(*x.shape[:2], 2), torch.zeros(len(c0), 6, 0), c0, process.times(noise), noise
    )
    assert float(losses.multinomial) == pytest.approx(0.6109, abs=0.02)  # less what u < 0.03 leaves out


def test_a_network_is_told_nothing_of_what_is_hidden():
    process = JointDiffusion(2, (2, 3), (True, False))
    g = torch.Generator().manual_seed(0)
    x0 = torch.randn(64, 4, 2, generator=g)
    c0 = torch.stack([torch.randint(2, (64, 1), generator=g).expand(64, 4), torch.randint(3, (64, 4), generator=g)], -1)

    def denoise(hot, t):
        whole, series = hot[..., 2:5], hot[..., 5:9]
        assert torch.equal(whole.sum(-1), torch.ones(64, 4))
        assert torch.equal(series.sum(-1), torch.ones(64, 4))
        first = t == 1000
        assert (series[first][..., 3] == 1).all()
        assert (whole[~first][..., 2] == 0).all()
        assert first.any()
        return torch.zeros(64, 4, 7)

    noise = training_noise(64, 3)
    losses = process.loss(denoise, x0, c0, process.times(noise), noise)
    assert all(torch.isfinite(value) for value in losses)


def test_with_a_lead_all_cells_are_settled_by_then():
    process, levels = JointDiffusion(1, (2,), (False,), lead=0.4), []

    def denoise(x, t):
        levels.append((float(t[0]) / 1000, bool((x[..., 3] == 1).any())))
        return torch.zeros(*x.shape[:2], 3)

    SAMPLERS["edm"]["multistep"](process, denoise, sampling_noise(0, 0, 200, CPU), 5, process.schedule(20))
    assert all(hidden == (u > 0.4 + 1e-6) for u, hidden in levels)


def test_the_number_of_calls_counts_those_for_whole_stay_classes():
    process = JointDiffusion(1, (2, 5, 2), (True, True, False))
    assert len(process.schedule(64)) == 64
    assert process.schedule(64)[:3] == [1.0, 1.0, 1.0]
    assert process.schedule(64)[-1] > 0
