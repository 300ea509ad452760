"""The mixed process against the authors' own numbers, against brute force, and for every mixture of channels."""

import json
import math
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from helpers.denoisers import Function, built, no_network, stays_of, training_noise
from timediff.data.batch import Batch, Layout
from timediff.diffusion.ddpm import gaussian, multinomial
from timediff.diffusion.ddpm.process import MixedDiffusion
from timediff.diffusion.ddpm.schedules import cosine
from timediff.diffusion.process import Losses
from timediff.settings.resolve import resolve

# Computed once with the authors' implementation, for three stays, two continuous channels and K = 2 and 3.
GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "mixed_diffusion.json").read_text())


def golden(name: str) -> Tensor:
    """(stay, channel, step) there, (stay, step, channel) here."""
    return torch.tensor(GOLDEN[name]).transpose(1, 2)


@pytest.fixture
def process() -> MixedDiffusion:
    return MixedDiffusion(Layout.of(2, GOLDEN["K"]), no_network, cosine(GOLDEN["T"]), GOLDEN["lambda"])


T = torch.tensor(GOLDEN["t"])
OUTPUT = torch.cat([golden("network_output_continuous"), golden("network_output_discrete")], dim=-1)


def test_golden_schedule() -> None:
    alpha_bar = cosine(GOLDEN["T"])
    before = torch.cat([torch.ones(1, dtype=torch.float64), alpha_bar])
    for t, expected in GOLDEN["alpha_bar"].items():
        assert math.isclose(alpha_bar[int(t)], expected, rel_tol=1e-9)
    for t, expected in GOLDEN["beta"].items():
        assert math.isclose(1 - before[int(t) + 1] / before[int(t)], expected, rel_tol=1e-9)


def test_golden_gaussian_forward_and_reverse(process: MixedDiffusion) -> None:
    x_t = gaussian.q_sample(golden("x0"), golden("noise"), process.alpha_bar(T))
    assert torch.allclose(x_t, golden("x_t"), rtol=1e-4, atol=1e-6)
    x0 = gaussian.predict_x0(x_t, OUTPUT[..., :2], process.alpha_bar(T)).clamp(-1, 1)
    assert torch.allclose(x0, golden("x0_predicted_clipped"), rtol=1e-4, atol=1e-6)
    mean, variance = gaussian.posterior(x0, x_t, process.alpha_bar(T), process.alpha_bar(T - 1))
    assert torch.allclose(mean, golden("p_mean"), rtol=1e-4, atol=1e-6)
    assert torch.allclose(variance.flatten(), torch.tensor(GOLDEN["p_variance"]), rtol=1e-3, atol=1e-7)


def test_golden_distributions(process: MixedDiffusion) -> None:
    c0, c_t, columns = golden("c0"), golden("c_t"), {2: slice(0, 2), 3: slice(2, 5)}
    alpha_bar_t, alpha_bar_s = process.alpha_bar(T)[..., None], process.alpha_bar(T - 1)[..., None]
    for group in process.groups:
        start, now = group.members(c0), group.members(c_t)
        hot = multinomial.log_one_hot(start, group.k)
        log_c0 = process.logits(OUTPUT, group).log_softmax(-1)
        for name, computed in {
            "q_c_t_given_c0": multinomial.log_q(start, group.k, alpha_bar_t),
            "posterior": multinomial.log_posterior(hot, now, alpha_bar_t, alpha_bar_s),
            "p_c_prev": multinomial.log_posterior(log_c0, now, alpha_bar_t, alpha_bar_s),
        }.items():
            expected = golden(name)[..., columns[group.k]]
            assert torch.allclose(computed.exp()[:, :, 0], expected, atol=1e-3), name


def test_golden_losses(process: MixedDiffusion) -> None:
    c0, c_t = golden("c0"), golden("c_t")
    divergence = process.divergence(OUTPUT, c0, c_t, T)
    assert torch.allclose(divergence, torch.tensor(GOLDEN["L_t_per_stay"]), rtol=1e-4)
    bound = process.discrete_bound(OUTPUT, c0, c_t, T)
    assert torch.allclose(bound, torch.tensor(GOLDEN["bound_per_stay"]), rtol=1e-4)
    discrete = bound.mean() / 2
    assert math.isclose(discrete, GOLDEN["discrete_loss"], rel_tol=1e-4)
    normal = (OUTPUT[..., :2] - golden("noise")).square().mean()
    assert math.isclose(normal, GOLDEN["gaussian_loss"], rel_tol=1e-4)
    assert math.isclose(GOLDEN["lambda"] * discrete + normal, GOLDEN["total_loss"], rel_tol=1e-4)


class Fixed:
    """Noise that was decided beforehand."""

    def __init__(self, normal: Tensor, uniform: Tensor) -> None:
        self._normal, self._uniform, self.total = normal, uniform, len(normal)

    def normal(self, *shape: int) -> Tensor:
        return self._normal

    def uniform(self, *shape: int) -> Tensor:
        return self._uniform


def golden_path(process: MixedDiffusion) -> tuple[Losses, Tensor]:
    """Losses, and what the network saw. Uniforms are such that the golden c_t is sampled; it answers as in golden."""
    c0, c_t = golden("c0"), golden("c_t")
    uniform = torch.empty(c0.shape)
    for group in process.groups:
        p = multinomial.log_q(group.members(c0), group.k, process.alpha_bar(T)[..., None]).exp()
        wanted = group.members(c_t)[..., None]
        uniform[..., group.channels] = (p.cumsum(-1).gather(-1, wanted) - p.gather(-1, wanted) / 2)[..., 0]
    seen = {}

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        seen["input"] = x
        return OUTPUT

    process.denoiser = Function(denoise)
    losses = process.loss_at(Batch.of(golden("x0"), c0), T, Fixed(golden("noise"), uniform))
    return losses, seen["input"]


def golden_one_hot() -> Tensor:
    """Of c_t, channel after channel."""
    hot = [torch.nn.functional.one_hot(golden("c_t")[..., i], k) for i, k in enumerate(GOLDEN["K"])]
    return torch.cat(hot, dim=-1).float()


def test_golden_total_loss_through_the_whole_path(process: MixedDiffusion) -> None:
    losses, seen = golden_path(process)
    assert math.isclose(losses.total, GOLDEN["total_loss"], rel_tol=1e-4)
    assert torch.allclose(seen, torch.cat([golden("x_t"), golden_one_hot()], dim=-1), atol=1e-6)


def test_golden_input_of_the_preset_paper() -> None:
    """The golden x_t, then the log of the golden one-hot c_t, in which 1e-30 stands for 0 as the authors have it."""
    diffusion = resolve("paper").diffusion
    assert (diffusion.steps, diffusion.lambda_) == (GOLDEN["T"], GOLDEN["lambda"])
    losses, seen = golden_path(diffusion.build(Layout.of(2, GOLDEN["K"]), no_network))
    assert math.isclose(losses.total, GOLDEN["total_loss"], rel_tol=1e-4)
    expected = torch.cat([golden("x_t"), golden_one_hot().clamp(min=1e-30).log()], dim=-1)
    assert torch.allclose(seen, expected, rtol=1e-6, atol=1e-6)
    assert seen[..., 2:].unique().tolist() == pytest.approx([-69.0776, 0.0])


@pytest.mark.parametrize("class_input", ["log one-hot", "one-hot"])
def test_the_network_samples_from_what_it_is_trained_on(class_input: str) -> None:
    """The same columns: nothing but 0 and 1, or 0 and −69.1."""
    process = resolve(
        "paper", assignments={"diffusion.steps": 3, "diffusion.class_input": class_input}
    ).diffusion.build(Layout.of(1, (2, 3)), no_network)
    seen = set[float]()

    def denoise(x: Tensor, t: Tensor) -> Tensor:
        seen.update(round(value, 1) for value in x[..., 1:].unique().tolist())
        return torch.zeros_like(x)

    noise = training_noise(4)
    process.denoiser = Function(denoise)
    process.sample(noise, torch.full((4,), 5), sampler="ancestral")
    assert seen == ({0.0, -69.1} if class_input == "log one-hot" else {0.0, 1.0})


@pytest.mark.parametrize("classes", [(2,), (3, 2, 3), (2, 5, 2, 7)])
def test_divergence_is_the_sum_over_channels_by_brute_force(classes: tuple[int, ...]) -> None:
    """Every channel alone, every step alone, from the definition in double precision."""
    process = MixedDiffusion(Layout.of(1, classes), no_network, cosine(20))
    generator = torch.Generator().manual_seed(0)
    c0, c_t = (torch.stack([torch.randint(k, (4, 3), generator=generator) for k in classes], dim=-1) for _ in range(2))
    output = torch.randn(4, 3, process.layout.width, generator=generator, dtype=torch.float64)
    t = torch.tensor([0, 1, 7, 19])
    table = torch.cat([torch.ones(1, dtype=torch.float64), cosine(20)])
    expected = torch.zeros(4, dtype=torch.float64)
    for stay in range(4):
        alpha_bar, earlier = table[t[stay] + 1], table[t[stay]]
        alpha = alpha_bar / earlier
        for step in range(3):
            start = 1
            for channel, k in enumerate(classes):
                guess = output[stay, step, start : start + k].softmax(-1)
                start += k
                now = torch.nn.functional.one_hot(c_t[stay, step, channel], k).double()
                true = torch.nn.functional.one_hot(c0[stay, step, channel], k).double()
                q, p = ((alpha * now + (1 - alpha) / k) * (earlier * c + (1 - earlier) / k) for c in (true, guess))
                q, p = q / q.sum(), p / p.sum()
                expected[stay] += torch.where(q > 0, q * (q / p).log(), 0.0).sum()
    assert torch.allclose(process.divergence(output, c0, c_t, t), expected)


def test_the_bound_is_unbiased_for_the_sum_over_steps() -> None:
    """Mean over t of T · L_t = Σ_t L_t: what a uniform t estimates. The schedule ends far from pure noise."""
    alpha_bar = torch.linspace(0.9, 0.4, 10, dtype=torch.float64)
    process = MixedDiffusion(Layout.of(0, (3,)), no_network, alpha_bar)
    output, c0 = (
        torch.randn(10, 2, 3, generator=torch.Generator().manual_seed(0)),
        torch.ones(10, 2, 1, dtype=torch.long),
    )
    t = torch.arange(10)
    bound, each = process.discrete_bound(output, c0, c0, t), process.divergence(output, c0, c0, t)
    prior = 2 * multinomial.prior_kl(3, 0.4)
    assert prior > 0.1
    assert math.isclose(bound.mean(), each.sum() + prior, rel_tol=1e-5)


@pytest.mark.parametrize(("continuous", "classes"), [(3, ()), (0, (2, 4)), (2, (2, 3)), (1, (2, 2))])
def test_any_mixture_has_a_finite_loss_and_gradient(continuous: int, classes: tuple[int, ...]) -> None:
    layout = Layout.of(continuous, classes)
    layer = torch.nn.Linear(layout.width, layout.width)
    process = MixedDiffusion(layout, built(lambda x, t: layer(x)), cosine(1000))
    c0 = (
        torch.stack([torch.arange(16 * 5).reshape(16, 5) % k for k in classes], -1)
        if classes
        else torch.zeros(16, 5, 0).long()
    )
    t = torch.tensor([0, 1, 998, 999]).repeat(4)
    losses = process.loss_at(Batch.of(torch.rand(16, 5, continuous) * 2 - 1, c0), t, training_noise(16))
    losses.total.backward()
    assert math.isfinite(losses.total.detach())
    assert all(torch.isfinite(p.grad).all() for p in layer.parameters())
    assert (losses.discrete == 0) == (not classes)
    assert (losses.continuous == 0) == (not continuous)


def test_confident_and_wrong_is_still_finite() -> None:
    """Logits of ±100 in float32: the loss is large, not infinite."""
    process = MixedDiffusion(Layout.of(0, (2,)), no_network, cosine(1000))
    c0 = torch.zeros(4, 3, 1, dtype=torch.long)
    output = torch.tensor([-100.0, 100.0]).expand(4, 3, 2).clone().requires_grad_()
    bound = process.discrete_bound(output, c0, c0, torch.tensor([0, 1, 500, 999]))
    bound.sum().backward()
    assert torch.isfinite(bound).all()
    assert torch.isfinite(output.grad).all()


def test_the_loss_is_that_at_steps_of_the_noise_source() -> None:
    """Steps come first from the source, then the noise: a seed says which."""
    process = MixedDiffusion(Layout.of(2, (3,)), built(lambda x, t: x * t[:, None, None]), cosine(50))
    batch = Batch.of(torch.rand(16, 5, 2) * 2 - 1, torch.arange(80).reshape(16, 5, 1) % 3)
    noise = training_noise(16, 4)
    found, expected = process.loss(batch, training_noise(16, 4)), process.loss_at(batch, noise.integers(50), noise)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 60), st.data(), st.sampled_from(["ancestral", "ddim"]))
def test_the_network_is_called_as_often_as_is_said(total: int, data: st.DataObject, sampler: str) -> None:
    called, ticks = [], []
    process = MixedDiffusion(Layout.of(1, (2,)), built(lambda x, t: called.append(t) or 0 * x), cosine(total))
    steps = data.draw(st.none() | st.integers(1, total))
    process.sample(*stays_of(2, 3), sampler=sampler, steps=steps, tick=lambda: ticks.append(1))
    assert len(called) == len(ticks) == process.calls(3, sampler=sampler, steps=steps) == (steps or total)


def test_another_way_to_compute_the_network_replaces_it() -> None:
    process = MixedDiffusion(Layout.of(1, (2,)), no_network, cosine(5))
    sampled = process.sample(*stays_of(4, 3), sampler="ddim", denoisers=[lambda x, t: x])
    assert sampled.continuous.shape == (4, 3, 1)


def test_nothing_but_the_network_is_saved() -> None:
    process = MixedDiffusion(Layout.of(1, (2, 3)), torch.nn.Linear, cosine(5))
    assert set(process.state_dict()) == {"denoiser.weight", "denoiser.bias"}
