"""The neural CDE: solutions that are known, what drives its states, and its conditioning on the noise level."""

import math

import pytest
import torch
from torch import Tensor, nn

from helpers.denoisers import training_noise
from timediff.data.batch import Batch, Layout
from timediff.diffusion.ddpm.process import MixedDiffusion
from timediff.diffusion.ddpm.schedules import cosine
from timediff.networks.cde import NeuralCDE, VectorField, controlled
from timediff.networks.ode import ODESolver
from timediff.networks.spline import natural_cubic_spline

FINE, COARSE = ODESolver("rk4", 0.02), ODESolver("rk4", 1.0)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def cde(inputs: int = 3, outputs: int = 4, hidden: int = 5, solver: ODESolver = COARSE) -> NeuralCDE:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return NeuralCDE(inputs, outputs, hidden, solver, field_layers=2, field_width=6)


# Solutions.


def test_along_a_straight_path_the_cde_is_a_matrix_exponential() -> None:
    """dz = A z dX with X = c t."""
    a, z, slope = 0.3 * numbers(3, 3), numbers(5, 3, seed=1), numbers(5, seed=2)
    path = natural_cubic_spline(slope[:, None, None] * torch.arange(4)[None, :, None])
    found = controlled(lambda z: (z @ a.T)[..., None], z, path, FINE)
    for t in range(4):
        exact = torch.linalg.matrix_exp(a * slope[:, None, None] * t) @ z[..., None]
        assert torch.allclose(found[:, t], exact[..., 0], atol=1e-4)


def test_a_constant_field_gives_back_how_far_the_path_has_gone() -> None:
    values, field = numbers(4, 7, 2), numbers(3, 2, seed=1)
    found = controlled(lambda z: field.expand(4, 3, 2), torch.zeros(4, 3), natural_cubic_spline(values), FINE)
    assert torch.allclose(found, (values - values[:, :1]) @ field.T, atol=1e-4)


@pytest.mark.parametrize(("method", "order"), [("euler", 1), ("midpoint", 2), ("rk4", 4)])
def test_along_a_spline_a_linear_field_is_a_matrix_exponential_to_the_order_of_the_solver(
    method: str, order: int
) -> None:
    """dz = z A₁ dX₁ + z A₂ dX₂ with matrices that commute: z = exp(A₁ ΔX₁ + A₂ ΔX₂) z₁ along any path."""
    a = 0.3 * numbers(3, 3).double()
    both, x, z = torch.stack([a, a @ a - 0.2 * a]), numbers(4, 6, 2, seed=1).double(), numbers(4, 3, seed=2).double()
    moved = torch.einsum("blp,pij->blij", x - x[:, :1], both)
    exact = (torch.linalg.matrix_exp(moved) @ z[:, None, :, None])[..., 0]
    path = natural_cubic_spline(x)

    def error(step: float) -> float:
        found = controlled(lambda z: torch.einsum("pij,bj->bip", both, z), z, path, ODESolver(method, step))
        return (found - exact).abs().max().item()

    coarse, fine = error(1 / 16), error(1 / 32)
    assert math.log2(coarse / fine) == pytest.approx(order, abs=0.3)
    assert fine < {1: 0.5, 2: 0.02, 4: 1e-5}[order]


def test_states_follow_the_equation_of_the_series_and_the_time() -> None:
    """Euler's method with far smaller steps, along a path of which the last column is the time."""
    made, x = cde(solver=FINE), numbers(2, 4, 3)
    made.requires_grad_(False)
    path, states, z = natural_cubic_spline(x), made.states(x), made.first(x[:, 0])
    assert torch.equal(states[:, 0], z)
    for i in range(3 * 500):
        slope = torch.cat([path.derivative(i / 500), torch.ones(2, 1)], dim=1)
        z = z + torch.einsum("bhp,bp->bh", made.field(z), slope) / 500
        if i % 500 == 499:
            assert torch.allclose(states[:, i // 500 + 1], z, atol=0.02)
    assert (states[:, -1] - states[:, 0]).abs().max() > 0.3


def test_of_a_series_that_stands_still_the_time_goes_on() -> None:
    states = cde().states(numbers(2, 1, 3).expand(2, 5, 3))
    assert (states.diff(dim=1).abs().amax(dim=-1) > 1e-3).all()


# The network.


@pytest.mark.parametrize("length", [1, 2, 3, 30])
def test_any_length(length: int) -> None:
    found = cde()(numbers(3, length, 3), torch.tensor([0, 5, 999]))
    assert found.shape == (3, length, 4)
    assert found.isfinite().all()


def test_of_a_single_step_the_state_is_that_of_the_first() -> None:
    made, x, t = cde(), numbers(2, 4, 3), torch.tensor([3, 500])
    assert torch.allclose(made(x[:, :1], t), made(x, t)[:, :1], atol=1e-6)


def test_a_state_sees_the_steps_before_it() -> None:
    made, x, t = cde(), numbers(1, 6, 3), torch.tensor([3])
    for step in range(6):
        other = x.clone()
        other[:, step] += 1
        moved = (made(other, t) - made(x, t)).abs().amax(dim=-1)[0] > 1e-4
        assert moved[step:].all()


def test_stays_are_computed_each_alone() -> None:
    made, x, t, order = cde(), numbers(7, 5, 3), torch.arange(7) * 100, torch.tensor([3, 0, 6, 1, 5, 2, 4])
    assert torch.allclose(made(x[order], t[order]), made(x, t)[order], atol=1e-6)
    assert torch.allclose(made(x[2:3], t[2:3]), made(x, t)[2:3], atol=1e-6)


def test_normalised_states_are_scaled_and_shifted_by_the_step_and_then_read() -> None:
    made, x, t = cde(), numbers(4, 6, 3), torch.tensor([0, 4, 400, 999])
    with torch.no_grad():
        made.norm.weight.uniform_(0.5, 2)
        made.norm.bias.normal_()
    scale, shift = made.embedding(t)[:, None].chunk(2, dim=-1)
    normal = nn.functional.layer_norm(made.states(x), (5,), made.norm.weight, made.norm.bias)
    assert torch.allclose(made(x, t), made.output(normal * (1 + scale) + shift), atol=1e-5)
    assert not torch.allclose(made(x, t), made(x, t + 1))


def test_nothing_is_read_on_the_host() -> None:
    """Tensors without content would say so; a CUDA graph could not be captured."""
    made = cde().to("meta")
    found = made(torch.empty(2, 4, 3, device="meta"), torch.empty(2, device="meta"))
    found.sum().backward()
    assert found.shape == (2, 4, 4)


def test_with_rounded_products_it_is_the_same_to_their_rounding() -> None:
    made, x, t = cde(), numbers(4, 6, 3), torch.tensor([0, 4, 400, 999])
    with torch.autocast("cpu", torch.bfloat16):
        rounded = made(x, t)
        assert made.states(x).dtype == torch.float32
    assert (rounded - made(x, t)).abs().max() < 0.1


def test_more_and_other_steps_of_the_solver_change_little() -> None:
    x, t = numbers(4, 6, 3), torch.tensor([0, 4, 400, 999])
    coarse, fine, exact = (
        cde(solver=solver)(x, t) for solver in (ODESolver("euler", 0.1), ODESolver("rk4", 1 / 3), FINE)
    )
    assert (fine - exact).abs().max() < (coarse - exact).abs().max() < 0.5


def test_every_parameter_has_a_gradient() -> None:
    made = cde()
    made(numbers(4, 6, 3), torch.tensor([0, 4, 400, 999])).square().sum().backward()
    deaf = [name for name, one in made.named_parameters() if one.grad is None or not one.grad.any()]
    assert deaf == []
    assert all(one.grad.isfinite().all() for one in made.parameters())


def test_the_field_has_the_layers_that_are_asked_for_and_is_within_one() -> None:
    field = VectorField(3, 5, 2, 7)
    assert [tuple(layer.weight.shape) for layer in [*field.layers, field.output]] == [(7, 5), (7, 7), (15, 7)]
    assert field(100 * numbers(4, 5)).shape == (4, 5, 3)
    assert field(1e4 * numbers(4, 5)).abs().max() <= 1


def test_it_learns() -> None:
    torch.manual_seed(0)
    process = MixedDiffusion(Layout.of(2, (2,)), lambda inputs, outputs: cde(inputs, outputs, 16), cosine(100))
    waves = torch.sin(torch.arange(6) + numbers(64, 2)[..., None]).transpose(1, 2)
    batch = Batch.of(waves, (waves[..., :1] > 0).long())

    def loss(key: int) -> Tensor:
        return process.loss(batch, training_noise(64, key)).total

    with torch.no_grad():
        before = loss(1000)
    optimizer = torch.optim.Adam(process.parameters(), lr=0.01)
    for key in range(60):
        optimizer.zero_grad()
        loss(key).backward()
        optimizer.step()
    with torch.no_grad():
        assert loss(1000) < 0.7 * before
