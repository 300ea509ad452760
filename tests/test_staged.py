"""Staged diffusion: the laws of its parts, and that a perfect network gives back the law of the data."""

import math
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from timediff.diffusion import edm, multinomial
from timediff.diffusion.samplers import SAMPLERS
from timediff.diffusion.staged import AFTER, EMBEDDED, StagedDiffusion, told_hidden, told_noise
from timediff.networks.brnn import BidirectionalRNN
from timediff.networks.chain import UNITS, Chain
from timediff.networks.staged import Answers, StagedNetwork
from timediff.randomness import BLOCK, Noise, Share, sampling_noise

CPU = torch.device("cpu")
CLASSES = st.lists(st.integers(2, 5), min_size=1, max_size=4).map(tuple)


def training_noise(rows: int, key: int = 0) -> Noise:
    return Noise("training", [(key, 0, 0)], [rows], rows, CPU)


@dataclass
class Fake:
    """A network whose RNN is a function, with real chains."""

    rnn: Any
    cells: Any
    stay: Any


# The noise and its preconditioning.


def test_the_noise_rises_with_the_level_and_its_logarithm_is_normal():
    sigma = edm.sigma(torch.linspace(0.001, 0.999, 999))
    assert (sigma.diff() >= 0).all()
    assert float(edm.sigma(torch.tensor([0.5]))) == pytest.approx(math.exp(edm.P_MEAN), rel=1e-6)
    assert float(edm.sigma(torch.tensor([1.0]))) == edm.SIGMA_MAX
    assert float(edm.sigma(torch.tensor([0.0]))) == edm.SIGMA_MIN


@given(st.integers(1, 300))
def test_a_sampler_goes_from_the_most_noise_to_the_least(calls):
    levels = edm.levels(calls)
    assert len(levels) == calls
    assert levels[0] == pytest.approx(edm.SIGMA_MAX)
    assert list(levels) == sorted(levels, reverse=True)
    if calls > 1:
        assert levels[-1] == pytest.approx(edm.SIGMA_MIN)


@given(st.floats(0.01, 0.99))
def test_preconditioning_gives_back_the_data_for_the_output_that_it_wants(u):
    """F = (x_0 − c_skip x)/c_out makes D exactly x_0, and then F has unit variance for data of unit variance."""
    g = torch.Generator().manual_seed(0)
    x0, sigma = torch.randn(4000, 1, 1, generator=g), edm.sigma(torch.tensor([u]))[:, None, None]
    x = x0 + sigma.float() * torch.randn(4000, 1, 1, generator=g)
    wanted = (x0.double() - x.double() / (sigma**2 + 1)) / (sigma * (sigma**2 + 1).rsqrt())
    assert torch.allclose(edm.denoised(x, wanted.float(), sigma), x0, atol=1e-4)
    assert float(edm.scaled_input(x, sigma).std()) == pytest.approx(1, abs=0.1)
    assert float(edm.weight(sigma) * (sigma * (sigma**2 + 1).rsqrt()) ** 2) == pytest.approx(1)
    if u > 0.1:  # below, x_0 − x is lost in single precision
        assert float(wanted.std()) == pytest.approx(1, abs=0.1)


def test_stages_are_told_apart():
    hidden, noise = told_hidden(torch.tensor([0.0, 1.0])), told_noise(torch.tensor([edm.SIGMA_MIN, edm.SIGMA_MAX]))
    assert hidden.min() == EMBEDDED * AFTER
    assert noise.max() < hidden.min() - 100


# Chains of classes.


@given(CLASSES, st.integers(0, 2**31 - 1))
def test_a_chain_is_a_distribution(classes, seed):
    """The probabilities of all combinations of classes sum to 1."""
    torch.manual_seed(seed)
    chain = Chain(classes)
    every = torch.cartesian_prod(*(torch.arange(k) for k in classes)).reshape(-1, len(classes))
    surprise = chain(
        torch.randn(chain.width), every, StagedDiffusion(0, classes, (False,) * len(classes)).cells_hot(every)
    )
    assert float((-surprise.detach().sum(-1)).exp().sum()) == pytest.approx(1, abs=1e-4)


@given(CLASSES, st.integers(0, 2**31 - 1))
def test_a_chain_draws_by_the_probabilities_that_it_states(classes, seed):
    """The log-probability of each drawn class, given those drawn before it, is what the whole pass says of it."""
    torch.manual_seed(seed)
    chain, start = Chain(classes), torch.randn(50, len(classes) * UNITS)
    used = []

    def choose(log_p: Tensor, channel: int) -> Tensor:
        c = multinomial.draw(log_p, torch.rand(50))
        used.append(log_p.gather(-1, c[:, None])[:, 0])
        return c

    c = chain.draw(start, choose)
    hot = StagedDiffusion(0, classes, (False,) * len(classes)).cells_hot(c)
    assert (c < torch.tensor(classes)).all()
    assert torch.allclose(torch.stack(used, -1), -chain(start, c, hot), atol=1e-4)


@pytest.mark.parametrize("joint", [True, False])
def test_a_channel_sees_the_classes_before_it_and_no_others(joint):
    torch.manual_seed(0)
    chain, process = Chain((2, 3, 2), joint=joint), StagedDiffusion(0, (2, 3, 2), (False,) * 3)
    start = torch.randn(chain.width)
    one, other = torch.tensor([0, 1, 0]), torch.tensor([0, 2, 0])  # the second channel differs
    first, second = (chain(start, c, process.cells_hot(c)) for c in (one, other))
    assert first[0] == second[0]
    assert (first[2] != second[2]) == joint


# Training.


@given(st.integers(1, 500))
def test_levels_are_spread_evenly_over_a_batch(rows):
    spread = training_noise(rows).spread()
    assert ((spread >= 0) & (spread < 1)).all()
    places = spread.double().sort().values * rows - torch.arange(rows)
    assert ((places > -1e-3) & (places < 1 + 1e-3)).all()  # one in each interval, to rounding


def test_many_processes_see_the_levels_of_one():
    whole = training_noise(64).spread()
    parts = [Share(training_noise(64), [], slice(i, i + 16)).spread() for i in range(0, 64, 16)]
    assert torch.equal(whole, torch.cat(parts))


def small(continuous: int = 2) -> tuple[StagedDiffusion, Tensor, Tensor]:
    process = StagedDiffusion(continuous, (2, 3), (True, False))
    g = torch.Generator().manual_seed(0)
    x0 = torch.randn(64, 4, continuous, generator=g)
    whole = torch.randint(2, (64, 1), generator=g).expand(64, 4)
    return process, x0, torch.stack([whole, torch.randint(3, (64, 4), generator=g)], -1)


def test_the_network_is_told_nothing_of_what_is_hidden():
    process, x0, c0 = small()

    def network(x, t, c, hot, whole, whole_hot):
        values, cells, hidden, stay = x.split([2, 3, 1, 2], dim=-1)
        second = t >= EMBEDDED * AFTER
        assert 0.3 < float(second.float().mean()) < 0.7
        assert (values[second] == 0).all()
        assert (values[~second] != 0).any(dim=2).all()
        assert torch.equal(cells.sum(-1), 1 - hidden[..., 0])
        assert (hidden[~second] == 0).all()
        assert (hidden[second].sum(dim=(1, 2)) >= 1).all()
        assert torch.equal(t[second], EMBEDDED * (AFTER + hidden[second].mean(dim=(1, 2))))
        assert torch.equal(stay.argmax(-1), c0[..., 0])
        return Answers(torch.zeros(64, 4, 2), torch.ones(64, 4, 1), torch.ones(64, 1))

    noise = training_noise(64, 3)
    losses = process.loss(network, x0, c0, process.times(noise), noise)
    assert all(torch.isfinite(value) for value in losses)


def test_the_loss_of_steps_is_their_surprise_however_many_are_hidden():
    """Every hidden step counts its surprise, known ones nothing, and a stay the mean over its hidden steps."""
    process, x0, c0 = small()

    def network(x, t, c, hot, whole, whole_hot):
        return Answers(torch.zeros(64, 4, 2), torch.where(x[..., 5:6] > 0, 0.7, 99.0), torch.zeros(64, 1))

    noise = training_noise(64, 3)
    losses = process.loss(network, x0, c0, process.times(noise), noise)
    assert float(losses.multinomial) == pytest.approx(0.7, abs=1e-6)


def test_a_perfect_denoiser_has_the_loss_that_theory_gives():
    """Data N(0, 1): the best D leaves the error σ²/(σ² + 1), which the weight makes 1 at every level."""
    process = StagedDiffusion(1, (), ())
    x0 = torch.randn(20_000, 3, 1, generator=torch.Generator().manual_seed(0))

    def network(x, t, c, hot, whole, whole_hot):
        return Answers(torch.zeros_like(x[..., :1]), torch.zeros(len(x), 3, 0), torch.zeros(len(x), 0))

    noise = training_noise(len(x0))
    assert float(process.loss(network, x0, torch.zeros(20_000, 3, 0).long(), process.times(noise), noise).gaussian) == (
        pytest.approx(1, abs=0.03)
    )


@pytest.mark.parametrize(
    ("continuous", "classes", "whole"),
    [(2, (2, 3), (True, False)), (1, (), ()), (0, (2,), (False,)), (1, (4,), (True,)), (0, (2,), (True,))],
)
def test_any_mixture_of_channels_can_be_learnt_and_drawn(continuous, classes, whole):
    process = StagedDiffusion(continuous, classes, whole)
    cells = Chain(process.cells)
    rnn = BidirectionalRNN(process.inputs, 8, outputs=max(1, continuous + cells.width))
    network = StagedNetwork(rnn, cells, Chain(process.stay))
    noise = training_noise(8)
    c0 = torch.zeros(8, 5, len(classes), dtype=torch.long)
    process.loss(network, torch.randn(8, 5, continuous), c0, process.times(noise), noise).total.backward()
    used = [*network.stay.parameters()] if process.stay else []
    used += [*network.rnn.parameters()] if continuous or process.cells else []
    used += [*network.cells.parameters()] if process.cells else []
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in used)
    with torch.inference_mode():
        plan = process.schedule(6, 5)
        x, c = SAMPLERS["edm"]["multistep"](process, network, sampling_noise(0, 0, 8, CPU), 5, plan)
    assert x.shape == (8, 5, continuous)
    assert c.shape == (8, 5, len(classes))
    assert torch.isfinite(x).all()
    assert all((c[..., i] < k).all() for i, k in enumerate(classes))


# Sampling.


@given(st.integers(1, 300), st.integers(1, 300), st.integers(0, 3), st.booleans())
def test_a_plan_has_as_many_calls_as_asked_for(calls, length, continuous, discrete):
    process = StagedDiffusion(continuous, (2,) * discrete, (False,) * discrete)
    plan = process.schedule(calls, length)
    assert len(plan) == max(calls, 2) if continuous and discrete else len(plan) <= calls
    assert bool(plan.sigmas) == bool(continuous)
    assert bool(plan.hidden) == discrete
    assert list(plan.hidden) == sorted(set(plan.hidden), reverse=True)  # every call uncovers something
    if discrete:
        assert plan.hidden[0] == length


@pytest.mark.parametrize("name", ["multistep", "euler"])
@pytest.mark.parametrize(("calls", "tolerance"), [(16, 0.15), (64, 0.05)])
def test_a_perfect_denoiser_of_a_normal_gives_that_normal(name, calls, tolerance):
    """Data N(0.5, 0.6²): D(x; σ) is known, and the sampler must end at that mean and spread."""
    process = StagedDiffusion(1, (), ())

    def rnn(x, t):
        sigma = (4 * t.double() / EMBEDDED).exp()[:, None, None]
        noisy = x[..., :1] * (sigma**2 + 1).sqrt()
        best = 0.5 + 0.36 / (0.36 + sigma**2) * (noisy - 0.5)
        return ((best - noisy / (sigma**2 + 1)) / (sigma * (sigma**2 + 1).rsqrt())).float()

    plan = process.schedule(calls, 1)
    fake = Fake(rnn, Chain(()), Chain(()))
    x, _ = SAMPLERS["edm"][name](process, fake, sampling_noise(0, 0, 4000, CPU), 1, plan)
    assert float(x.mean()) == pytest.approx(0.5, abs=0.04)
    assert float(x.std()) == pytest.approx(0.6, abs=tolerance)


class Copying:
    """A chain of one channel whose start is its logits."""

    width = 3

    def draw(self, start: Tensor, choose: Any) -> Tensor:
        return choose(start.log_softmax(-1), 0)[..., None]


def test_steps_are_uncovered_by_the_networks_probabilities_given_those_known():
    """All steps of a stay have the same class. A network that knows this gives it, one step a call."""
    process, calls = StagedDiffusion(0, (3,), (False,)), []

    def rnn(x, t):
        known, hidden = x[..., :3].sum(1, keepdim=True), x[..., 3]
        calls.append(int(hidden[0].sum()))
        prior = torch.tensor([0.2, 0.3, 0.5]).log().expand(*x.shape[:2], 3)
        return torch.where((known.sum(-1, keepdim=True) > 0).expand_as(prior), 40 * known.expand_as(prior), prior)

    fake = Fake(rnn, Copying(), Chain(()))
    plan = process.schedule(6, 6)
    _, c = SAMPLERS["edm"]["multistep"](process, fake, sampling_noise(0, 0, 6000, CPU), 6, plan)
    assert calls == [6, 5, 4, 3, 2, 1]
    assert (c == c[:, :1]).all()
    shares = torch.bincount(c[:, 0, 0], minlength=3) / len(c)
    assert torch.allclose(shares, torch.tensor([0.2, 0.3, 0.5]), atol=0.03)


def test_classes_of_the_stay_come_first_and_are_the_same_at_every_step():
    process, seen = StagedDiffusion(1, (2, 2), (True, False)), []
    stay = Chain((2,))
    with torch.no_grad():
        stay.weight.zero_()
        stay.bias.copy_(torch.tensor([[math.log(0.8), math.log(0.2)]]))

    def rnn(x, t):
        seen.append(x[:, 0, 4:])
        return torch.zeros(*x.shape[:2], 1 + UNITS)

    with torch.no_grad():
        _, c = SAMPLERS["edm"]["multistep"](
            process, Fake(rnn, Chain((2,)), stay), sampling_noise(0, 0, 3000, CPU), 5, process.schedule(9, 5)
        )
    assert len(seen) == 9
    assert all(torch.equal(one.argmax(-1), c[:, 0, 0]) for one in seen)
    assert (c[:, :, 0] == c[:, :1, 0]).all()
    assert float((c[:, 0, 0] == 0).float().mean()) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize("name", ["multistep", "euler"])
def test_how_blocks_are_shared_out_changes_nothing(name):
    process = StagedDiffusion(1, (2, 2), (True, False))
    torch.manual_seed(0)
    cells = Chain(process.cells)
    rnn = BidirectionalRNN(process.inputs, 8, outputs=1 + cells.width)
    network = StagedNetwork(rnn, cells, Chain(process.stay)).eval()

    def drawn(first: int, stays: int) -> tuple[Tensor, Tensor]:
        with torch.inference_mode():
            noise = sampling_noise(3, first, stays, CPU)
            return SAMPLERS["edm"][name](process, network, noise, 4, process.schedule(8, 4))

    whole_x, whole_c = drawn(0, 3 * BLOCK)
    parts = [drawn(block, BLOCK) for block in range(3)]
    assert torch.allclose(whole_x, torch.cat([x for x, _ in parts]), atol=1e-4)
    assert torch.equal(whole_c, torch.cat([c for _, c in parts]))
    assert torch.allclose(drawn(0, 30)[0], whole_x[:30], atol=1e-4)
