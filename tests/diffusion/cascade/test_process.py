"""The cascade: what its network sees in each stage, and that a perfect network gives back the law of the data."""

import math
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from helpers.denoisers import Function, built, no_network, stays_of, training_noise
from timediff.data.batch import Batch, Layout, OneHot
from timediff.diffusion.cascade import edm
from timediff.diffusion.cascade.head import UNITS
from timediff.diffusion.cascade.process import CALLS, EMBEDDED, STAGE_2, Cascade, stage_2_conditioning
from timediff.diffusion.cascade.solvers import second_order
from timediff.diffusion.process import NoiseSource
from timediff.diffusion.samplers import CASCADE_SAMPLERS
from timediff.networks.brnn import BidirectionalRNN
from timediff.runtime.randomness import BLOCK, NoiseSlice

NAMES = CASCADE_SAMPLERS.names()


def brnn(inputs: int, outputs: int) -> nn.Module:
    return BidirectionalRNN(inputs, 8, outputs=outputs)


class StartHead(nn.Module):
    """A head of one channel that takes its answer from the start."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.classes, self.width, self.one_hot = (k,), k, OneHot((k,))

    def forward(self, start: Tensor, c: Tensor, hot: Tensor) -> Tensor:
        """The start's first column is −log p."""
        return start[..., :1]

    def sample(self, start: Tensor, choose: Callable[[Tensor, int], Tensor]) -> Tensor:
        """The start is the logits."""
        return choose(start.log_softmax(-1), 0)[..., None]


def test_stages_have_conditioning_far_apart():
    stage_2 = stage_2_conditioning(torch.tensor([0.0, 1.0]))
    stage_3 = EMBEDDED * edm.c_noise(torch.tensor([edm.SIGMA_MIN, edm.SIGMA_MAX]))
    assert stage_2.min() == EMBEDDED * STAGE_2
    assert stage_3.max() < stage_2.min() - 100


# Training.


@given(st.integers(1, 500))
def test_levels_are_even_over_a_batch(rows):
    levels = training_noise(rows).stratified()
    assert ((levels >= 0) & (levels < 1)).all()
    places = levels.double().sort().values * rows - torch.arange(rows)
    assert ((places > -1e-3) & (places < 1 + 1e-3)).all()  # one in each interval, to rounding


def test_many_processes_see_the_levels_of_one():
    whole = training_noise(64).stratified()
    parts = [NoiseSlice(training_noise(64), [], slice(i, i + 16)).stratified() for i in range(0, 64, 16)]
    assert torch.equal(whole, torch.cat(parts))


def small(network: Callable[[Tensor, Tensor], Tensor]) -> tuple[Cascade, Batch]:
    """Two values, a static channel of two classes and one of steps of three."""
    g = torch.Generator().manual_seed(0)
    x0 = torch.randn(64, 4, 2, generator=g)
    static = torch.randint(2, (64, 1), generator=g).expand(64, 4)
    c0 = torch.stack([static, torch.randint(3, (64, 4), generator=g)], -1)
    return Cascade(Layout.of(2, (2, 3), (True, False)), built(network)), Batch.of(x0, c0)


def test_the_network_sees_nothing_of_what_is_masked():
    def network(x: Tensor, t: Tensor) -> Tensor:
        values, steps, masked, static = x.split([2, 3, 1, 2], dim=-1)
        second = t >= EMBEDDED * STAGE_2
        assert 0.3 < float(second.float().mean()) < 0.7
        assert (values[second] == 0).all()
        assert (values[~second] != 0).any(dim=2).all()
        assert torch.equal(steps.sum(-1), 1 - masked[..., 0])
        known = masked[..., 0] == 0
        assert torch.equal(steps.argmax(-1)[known], batch.discrete[..., 1][known])
        assert (masked[~second] == 0).all()
        assert (masked[second].sum(dim=(1, 2)) >= 1).all()
        assert torch.equal(t[second], EMBEDDED * (STAGE_2 + masked[second].mean(dim=(1, 2))))
        assert torch.equal(static.argmax(-1), batch.discrete[..., 0])
        called.append(1)
        return torch.zeros(64, 4, 2 + UNITS)

    called: list[int] = []
    process, batch = small(network)
    losses = process.loss(batch, training_noise(64, 3))
    assert called == [1]
    assert all(torch.isfinite(value) for value in losses)


def test_the_loss_of_steps_is_their_nll_however_many_are_masked():
    """Every masked step counts its −log p, known ones nothing, and a stay the mean over its masked steps."""

    def network(x: Tensor, t: Tensor) -> Tensor:
        return torch.cat([torch.zeros(64, 4, 2), torch.where(x[..., 5:6] > 0, 0.7, 99.0)], dim=-1)

    process, batch = small(network)
    process.step_head = StartHead(3)
    assert float(process.loss(batch, training_noise(64, 3)).discrete) == pytest.approx(0.7, abs=1e-6)


def test_a_perfect_denoiser_has_the_loss_that_theory_gives():
    """Data N(0, 1): the best D leaves the error σ²/(σ² + 1), which the weight makes 1 at every level."""
    process = Cascade(Layout.of(1, ()), built(lambda x, t: torch.zeros_like(x[..., :1])))
    x0 = torch.randn(20_000, 3, 1, generator=torch.Generator().manual_seed(0))
    batch = Batch.of(x0, torch.zeros(20_000, 3, 0).long())
    assert float(process.loss(batch, training_noise(20_000)).continuous) == pytest.approx(1, abs=0.03)


def test_the_loss_is_that_at_levels_of_the_noise_source():
    """Levels come first from the source, then the noise: a seed says which."""
    process, batch = small(lambda x, t: x[..., :1].expand(64, 4, 2 + UNITS))
    noise = training_noise(64, 4)
    found, expected = process.loss(batch, training_noise(64, 4)), process.loss_at(batch, noise.stratified(), noise)
    assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("sampler", NAMES)
@pytest.mark.parametrize(
    ("continuous", "classes", "static"),
    [(2, (2, 3), (True, False)), (1, (), ()), (0, (2,), (False,)), (1, (4,), (True,)), (0, (2,), (True,))],
)
def test_any_mixture_of_channels_can_be_trained_on_and_sampled(continuous, classes, static, sampler):
    process = Cascade(Layout.of(continuous, classes, static), brnn)
    batch = Batch.of(torch.randn(8, 5, continuous), torch.zeros(8, 5, len(classes), dtype=torch.long))
    process.loss(batch, training_noise(8)).total.backward()
    used = [*process.static_head.parameters()] if process.static_head.classes else []
    used += [*process.denoiser.parameters()] if continuous or process.step_head.classes else []
    used += [*process.step_head.parameters()] if process.step_head.classes else []
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in used)
    with torch.inference_mode():
        sampled = process.sample(*stays_of(8, 5), sampler=sampler, steps=6)
    x, c = sampled.continuous, sampled.discrete
    assert x.shape == (8, 5, continuous)
    assert c.shape == (8, 5, len(classes))
    assert torch.isfinite(x).all()
    assert all((c[..., i] < k).all() for i, k in enumerate(classes))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(2, 4), st.booleans()), max_size=5), st.integers(1, 4))
def test_classes_of_steps_and_static_ones_are_split_and_joined_again(channels, length):
    layout = Layout.of(1, [k for k, _ in channels], [static for _, static in channels])
    process = Cascade(layout, no_network)
    c = torch.randint(2, (3, length, len(channels)))
    at = layout.discrete_where(static=True)
    c[..., at] = c[:, :1, at]
    temporal, static = process.split(c)
    assert temporal.shape == (3, length, len(channels) - len(at))
    assert static.shape == (3, len(at))
    assert torch.equal(process.join(temporal, static), c)


# Sampling.


@settings(deadline=None)
@given(
    st.none() | st.integers(1, 300), st.integers(1, 300), st.integers(0, 3), st.booleans(), st.sampled_from(NAMES)
)  # fmt: skip
def test_a_plan_has_as_many_calls_as_asked_for(steps, length, continuous, discrete, sampler):
    process = Cascade(Layout.of(continuous, (2,) * discrete), no_network)
    plan = process.plan(length, sampler=sampler, steps=steps)
    calls, asked = process.calls(length, sampler=sampler, steps=steps), steps or CALLS
    if sampler in ("heun", "stochastic"):  # of an odd number of calls for values
        assert calls in (max(asked, 2), max(asked, 2) - 1) if continuous and discrete else calls <= asked
    else:
        assert calls == len(plan.masked) + len(plan.sigmas)
        assert calls == max(asked, 2) if continuous and discrete else calls <= asked
    assert bool(plan.sigmas) == bool(continuous)
    assert bool(plan.masked) == discrete
    assert list(plan.masked) == sorted(set(plan.masked), reverse=True)  # every call uncovers something
    if discrete:
        assert plan.masked[0] == length


@settings(deadline=None, max_examples=60)
@given(
    st.none() | st.integers(1, 40), st.integers(1, 12), st.integers(0, 2), st.booleans(), st.sampled_from(NAMES)
)  # fmt: skip
def test_the_network_is_called_as_often_as_is_said(steps, length, continuous, discrete, sampler):
    called, ticks = [], []

    def network(x: Tensor, t: Tensor) -> Tensor:
        called.append(t)
        return torch.zeros(*x.shape[:2], max(1, continuous + UNITS * discrete))

    process = Cascade(Layout.of(continuous, (2,) * discrete), built(network))
    with torch.inference_mode():
        process.sample(*stays_of(2, length), sampler=sampler, steps=steps, tick=lambda: ticks.append(1))
    assert len(called) == len(ticks) == process.calls(length, sampler=sampler, steps=steps)


def test_another_way_to_compute_the_network_replaces_it():
    process = Cascade(Layout.of(1, (2,)), no_network)
    with torch.inference_mode():
        sampled = process.sample(
            *stays_of(4, 3), sampler="euler", steps=6, denoisers=[lambda x, t: torch.zeros(4, 3, 1 + UNITS)]
        )
    assert sampled.continuous.shape == (4, 3, 1)


@pytest.mark.parametrize(
    ("name", "calls", "tolerance"),
    [("multistep", 16, 0.15), ("euler", 16, 0.15), *((name, 64, 0.05) for name in NAMES)],
)
def test_a_perfect_denoiser_of_a_normal_gives_that_normal(name, calls, tolerance):
    """Data N(0.5, 0.6²): D(x; σ) is known, and the sampler must end at that mean and std."""

    def network(x: Tensor, t: Tensor) -> Tensor:
        sigma = (4 * t.double() / EMBEDDED).exp()[:, None, None]
        noisy = x[..., :1] * (sigma**2 + 1).sqrt()
        best = 0.5 + 0.36 / (0.36 + sigma**2) * (noisy - 0.5)
        return ((best - noisy / (sigma**2 + 1)) / (sigma * (sigma**2 + 1).rsqrt())).float()

    process = Cascade(Layout.of(1, ()), built(network))
    x = process.sample(*stays_of(4000, 1), sampler=name, steps=calls).continuous
    assert float(x.mean()) == pytest.approx(0.5, abs=0.04)
    assert float(x.std()) == pytest.approx(0.6, abs=tolerance)


def test_steps_are_uncovered_by_the_networks_probabilities_given_those_known():
    """All steps of a stay have the same class. A network that knows this gives it, one step a call."""
    calls = []

    def network(x: Tensor, t: Tensor) -> Tensor:
        known, masked = x[..., :3].sum(1, keepdim=True), x[..., 3]
        calls.append(int(masked[0].sum()))
        prior = torch.tensor([0.2, 0.3, 0.5]).log().expand(*x.shape[:2], 3)
        return torch.where((known.sum(-1, keepdim=True) > 0).expand_as(prior), 40 * known.expand_as(prior), prior)

    process = Cascade(Layout.of(0, (3,)), built(network))
    process.step_head = StartHead(3)
    c = process.sample(*stays_of(6000, 6), sampler="multistep", steps=6).discrete
    assert calls == [6, 5, 4, 3, 2, 1]
    assert (c == c[:, :1]).all()
    rates = torch.bincount(c[:, 0, 0], minlength=3) / len(c)
    assert torch.allclose(rates, torch.tensor([0.2, 0.3, 0.5]), atol=0.03)


def test_static_classes_come_first_and_are_the_same_at_every_step():
    seen = []

    def network(x: Tensor, t: Tensor) -> Tensor:
        seen.append(x[:, 0, 4:])
        return torch.zeros(*x.shape[:2], 1 + UNITS)

    process = Cascade(Layout.of(1, (2, 2), (True, False)), built(network))
    with torch.no_grad():
        process.static_head.weight.zero_()
        process.static_head.bias.copy_(torch.tensor([[math.log(0.8), math.log(0.2)]]))
        c = process.sample(*stays_of(3000, 5), sampler="multistep", steps=9).discrete
    assert len(seen) == 9
    assert all(torch.equal(one.argmax(-1), c[:, 0, 0]) for one in seen)
    assert (c[:, :, 0] == c[:, :1, 0]).all()
    assert float((c[:, 0, 0] == 0).float().mean()) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("name", NAMES)
def test_how_blocks_are_shared_out_changes_nothing(name):
    torch.manual_seed(0)
    process = Cascade(Layout.of(1, (2, 2), (True, False)), brnn).eval()

    def sampled(first: int, stays: int) -> Batch:
        with torch.inference_mode():
            return process.sample(*stays_of(stays, 4, seed=3, first_block=first), sampler=name, steps=8)

    whole, parts = sampled(0, 3 * BLOCK), [sampled(block, BLOCK) for block in range(3)]
    assert torch.allclose(whole.continuous, torch.cat([part.continuous for part in parts]), atol=1e-4)
    assert torch.equal(whole.discrete, torch.cat([part.discrete for part in parts]))
    assert torch.allclose(sampled(0, 30).continuous, whole.continuous[:30], atol=1e-4)


@pytest.mark.parametrize("twice", [False, True])
def test_a_sampler_of_ones_own_is_used(twice, monkeypatch):
    """It gets the noise levels, of which there are half as many where it says that it calls the denoiser twice."""
    monkeypatch.setattr(CASCADE_SAMPLERS, "_parts", dict(CASCADE_SAMPLERS._parts))
    given_levels: list[Tensor] = []

    @CASCADE_SAMPLERS.register("mine")
    def mine(denoise: Callable[[Tensor, Tensor], Tensor], x: Tensor, sigmas: Tensor, noise: NoiseSource) -> Tensor:
        given_levels.append(sigmas)
        return torch.full_like(x, 0.25)

    if twice:
        second_order(mine)
    assert "mine" in CASCADE_SAMPLERS
    process = Cascade(Layout.of(1, ()), no_network)
    sampled = process.sample(*stays_of(5, 3), sampler="mine", steps=7)
    assert (sampled.continuous == 0.25).all()
    expected = [*edm.sigma_steps(4 if twice else 7), 0.0]
    assert torch.equal(given_levels[0], torch.tensor(expected, dtype=torch.float64))
    assert process.calls(3, sampler="mine", steps=7) == 7


def test_what_is_saved_are_the_network_and_two_heads():
    process = Cascade(Layout.of(1, (2, 2), (True, False)), lambda inputs, outputs: nn.Linear(inputs, outputs))
    parts = {name.split(".")[0] for name in process.state_dict()}
    assert parts == {"denoiser", "step_head", "static_head"}
    assert set(process.state_dict()) == {name for name, _ in process.named_parameters()}


def test_the_network_has_the_inputs_and_outputs_that_it_is_built_for():
    built_for: list[tuple[int, int]] = []

    def build(inputs: int, outputs: int) -> nn.Module:
        built_for.append((inputs, outputs))
        return Function(lambda x, t: x)

    Cascade(Layout.of(3, (2, 4, 5), (True, False, False)), build)
    assert built_for == [(3 + 2 + 4 + 5 + 1, 3 + 2 * UNITS)]
