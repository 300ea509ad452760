"""Classes by Gaussian diffusion: as numbers and back, the Gaussian loss of all, and what a true denoiser gives."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from helpers.denoisers import Function, built, no_network, stays_of, training_noise
from timediff.data.batch import Batch, Layout
from timediff.diffusion.ddpm import gaussian
from timediff.diffusion.ddpm.gaussian_classes import NUMBERS, GaussianClasses, Rounding, Softmax
from timediff.diffusion.ddpm.process import MixedDiffusion
from timediff.diffusion.ddpm.schedules import cosine
from timediff.diffusion.process import STAY_LEVELS

WAYS = [("ancestral", 100), ("ancestral", 7), ("ddim", 100), ("ddim", 10)]
C = torch.tensor([[[0, 2], [1, 0]], [[1, 1], [0, 2]]])  # of K = 2 and 3: two stays of two steps
BY_HAND = {
    "rounding": torch.tensor([[[-1.0, 1], [1, -1]], [[1, 0], [-1, 1]]]),
    "softmax": torch.tensor(
        [[[1.0, -1, -1, -1, 1], [-1, 1, 1, -1, -1]], [[-1, 1, -1, 1, -1], [1, -1, -1, -1, 1]]]
    ),
}  # fmt: skip


def process_of(discrete: str, continuous: int = 2, classes: tuple[int, ...] = (2, 3)) -> GaussianClasses:
    return GaussianClasses(Layout.of(continuous, classes), no_network, cosine(100), discrete)


def classes_of(sizes: list[int], stays: int = 5, steps: int = 4) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.stack([torch.randint(k, (stays, steps), generator=generator) for k in sizes], dim=-1)


mixtures = st.lists(st.integers(2, 7), min_size=1, max_size=6)


@pytest.mark.parametrize("discrete", NUMBERS)
def test_classes_are_these_numbers(discrete: str) -> None:
    assert torch.equal(process_of(discrete).numbers.encode(C), BY_HAND[discrete])


@pytest.mark.parametrize("discrete", NUMBERS)
@given(sizes=mixtures)
def test_classes_as_numbers_and_back_are_the_same(discrete: str, sizes: list[int]) -> None:
    numbers, every = NUMBERS[discrete](sizes), torch.stack([torch.arange(7 * 6 * 5) % k for k in sizes], dim=-1)
    encoded = numbers.encode(every)
    assert encoded.shape == (210, numbers.width)
    assert encoded.min() == -1
    assert encoded.max() == 1
    assert torch.equal(numbers.decode(encoded), every)


@given(sizes=mixtures, disturbed=st.floats(-0.49, 0.49))
def test_rounding_gives_the_nearest_class_within_the_range(sizes: list[int], disturbed: float) -> None:
    numbers, c, apart = Rounding(sizes), classes_of(sizes), 2 / (torch.tensor(sizes) - 1)
    assert torch.equal(numbers.decode(numbers.encode(c) + disturbed * apart), c)
    beyond = torch.full((3, len(sizes)), 9.0)
    assert (numbers.decode(beyond) == torch.tensor(sizes) - 1).all()
    assert (numbers.decode(-beyond) == 0).all()


@given(sizes=mixtures)
def test_softmax_gives_the_largest_of_each_channel_alone(sizes: list[int]) -> None:
    x = torch.randn(20, sum(sizes), generator=torch.Generator().manual_seed(0))
    expected = [one.argmax(-1) for one in x.split(sizes, dim=-1)]
    assert torch.equal(Softmax(sizes).decode(x), torch.stack(expected, dim=-1))


@pytest.mark.parametrize("discrete", NUMBERS)
@pytest.mark.parametrize("continuous", [0, 2])
def test_the_loss_is_the_gaussian_one_of_values_and_numbers_together(discrete: str, continuous: int) -> None:
    x0, t, process = torch.rand(2, 2, continuous) * 2 - 1, torch.tensor([3, 70]), process_of(discrete, continuous)
    together, noise = torch.cat([x0, BY_HAND[discrete]], dim=-1), training_noise(2)
    eps = noise.normal(*together.shape[1:])
    x_t = gaussian.q_sample(together, eps, process.alpha_bar(t))
    process.denoiser = Function(lambda x, t: x.sin() * t[:, None, None] / 50)
    expected = (process.denoiser(x_t, t) - eps).square().mean()
    losses = process.loss_at(Batch.of(x0, C), t, training_noise(2))
    assert torch.allclose(losses.total, expected)
    assert losses.continuous == losses.total
    assert losses.discrete == 0


@pytest.mark.parametrize("discrete", NUMBERS)
def test_losses_are_those_of_the_same_numbers_as_continuous_channels(discrete: str) -> None:
    x0, process = torch.rand(2, 2, 2) * 2 - 1, process_of(discrete)
    together = torch.cat([x0, BY_HAND[discrete]], dim=-1)
    width = together.shape[-1]
    other = MixedDiffusion(Layout.of(width, ()), built(lambda x, t: x.sin()), cosine(100))
    process.denoiser = other.denoiser
    batch, numbers = Batch.of(x0, C), Batch.of(together, C[..., :0])
    found, expected = (one.loss(b, training_noise(2)) for one, b in ((process, batch), (other, numbers)))
    assert found == expected
    of_stays, others = (one.stay_losses(b, training_noise(2)) for one, b in ((process, batch), (other, numbers)))
    assert of_stays.keys() == {"values"}
    assert of_stays["values"].shape == (2, STAY_LEVELS)
    assert torch.equal(of_stays["values"], others["values"])


@pytest.mark.parametrize("discrete", NUMBERS)
@pytest.mark.parametrize(("name", "calls"), WAYS)
def test_the_true_denoiser_of_one_stay_gives_that_stay(discrete: str, name: str, calls: int) -> None:
    sizes, x0 = (2, 3, 2, 7), torch.tensor([[0.3, -0.8], [0.9, 0.0]])
    c0, process = torch.tensor([[1, 2, 0, 3], [0, 1, 0, 5]]), process_of(discrete, 2, sizes)
    together = torch.cat([x0, process.numbers.encode(c0)], dim=-1)
    process.denoiser = Function(
        lambda x, t: gaussian.predict_noise(x, together.expand_as(x), process.alpha_bar(t))
    )  # fmt: skip
    sampled = process.sample(*stays_of(50, 2), sampler=name, steps=calls)
    assert torch.allclose(sampled.continuous, x0.expand(50, 2, 2), atol=1e-4)
    assert (sampled.discrete == c0).all()
    assert sampled.lengths.tolist() == [2] * 50


@pytest.mark.parametrize("discrete", NUMBERS)
def test_whatever_the_network_says_classes_are_valid(discrete: str) -> None:
    sizes = (2, 7, 3)
    for factor in (-50.0, 0.0, 0.7):
        process = process_of(discrete, 1, sizes)
        process.denoiser = Function(lambda x, t, factor=factor: factor * x)
        sampled = process.sample(*stays_of(40, 3), sampler="ancestral", steps=5)
        assert sampled.continuous.shape == (40, 3, 1)
        assert sampled.discrete.dtype == torch.long
        assert ((sampled.discrete >= 0) & (sampled.discrete < torch.tensor(sizes))).all()


@pytest.mark.parametrize(("discrete", "width"), [("rounding", 2 + 2), ("softmax", 2 + 5)])
def test_the_network_is_as_wide_as_the_numbers_and_all_that_is_saved(discrete: str, width: int) -> None:
    process = GaussianClasses(Layout.of(2, (2, 3)), torch.nn.Linear, cosine(5), discrete)
    assert process.denoiser.weight.shape == (width, width)
    assert set(process.state_dict()) == {"denoiser.weight", "denoiser.bias"}


@pytest.mark.parametrize("discrete", NUMBERS)
def test_without_discrete_channels_it_is_the_mixed_process(discrete: str) -> None:
    process, other = (
        one(Layout.of(2, ()), built(lambda x, t: x.sin()), cosine(20), *more)
        for one, more in ((GaussianClasses, (discrete,)), (MixedDiffusion, ()))
    )
    batch = Batch.of(torch.rand(3, 4, 2) * 2 - 1, torch.zeros(3, 4, 0, dtype=torch.long))
    assert process.loss(batch, training_noise(3)) == other.loss(batch, training_noise(3))
    first, second = (one.sample(*stays_of(3, 4), sampler="ddim", steps=5) for one in (process, other))
    assert torch.equal(first.continuous, second.continuous)
    assert first.discrete.shape == (3, 4, 0)
