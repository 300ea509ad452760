"""GT-GAN: the flow's likelihood, its phases, and what it cannot be without."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from helpers.small_baselines import baseline, noise_for, untrained
from timediff.data.batch import Batch
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.errors import TimeDiffError
from timediff.generators.gtgan.cde import Encoder
from timediff.generators.gtgan.flow import Flow
from timediff.generators.gtgan.generator import moments_apart
from timediff.generators.gtgan.gru_ode import GRUODELayer
from timediff.generators.gtgan.network import GTGANNetwork
from timediff.networks import ode
from timediff.networks.ode import ODESolver
from timediff.networks.spline import natural_cubic_spline
from timediff.settings.resolve import resolve

FINE = ODESolver("rk4", 0.02)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# The autoencoder.


@pytest.mark.parametrize("positive", [True, False])
def test_latents_are_positive_where_they_should_be(positive: bool) -> None:
    encoder = Encoder(2, 3, 4, 1, ODESolver("rk4", 1.0), positive=positive, skip=False)
    h = encoder(natural_cubic_spline(numbers(40, 6, 2)))
    assert bool((h > 0).all()) == positive
    assert not positive or h.max() < 1


def test_between_jumps_a_gru_ode_follows_its_equation() -> None:
    layer = GRUODELayer(2, 3, FINE)
    x = numbers(4, 2, 2)
    states = layer(x)
    h = torch.linalg.vector_norm(states[:, 0] - layer.jump(x[:, 0], torch.zeros(4, 3)))
    assert h == 0
    wr, wz = layer.gates.weight.chunk(2)
    y = states[:, 0]
    for _ in range(2000):  # Euler's method with far smaller steps
        r, z = torch.sigmoid(y @ wr.T), torch.sigmoid(y @ wz.T)
        y = y + (1 - z) * (torch.tanh((r * y) @ layer.candidate.weight.T) - y) / 2000
    assert torch.allclose(states[:, 1], layer.jump(x[:, 1], y), atol=1e-3)
    assert not torch.allclose(states[:, 1], layer.jump(x[:, 1], states[:, 0]), atol=1e-2)


# The flow.


def flow(latent: int = 3, *, held: bool = False, linear: bool = True) -> Flow:
    """One that bends."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        made = Flow(latent, (8, 8), 5, FINE, held=held, linear=linear)
        for parameter in made.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
        if made.linear is not None:
            made.linear.initialise(numbers(latent, latent, seed=4), numbers(latent, seed=5))
    return made


def exact(latent: int, *shape: int) -> Tensor:
    """Probes that give the whole trace."""
    unit = math.sqrt(latent) * torch.eye(latent)
    return unit.view(latent, *(1 for _ in shape), latent).expand(latent, *shape, latent)


@pytest.mark.parametrize("linear", [True, False])
def test_a_flow_is_invertible(linear: bool) -> None:
    made, w = flow(linear=linear), numbers(6, 5, 3)
    v = made(w)
    assert (v - w).abs().max() > 0.5
    assert torch.allclose(made.inverse(v, exact(3, 6, 5)).w, w, atol=1e-3)


@pytest.mark.parametrize("linear", [True, False])
def test_its_log_determinant_is_that_of_its_jacobian(linear: bool) -> None:
    made, v = flow(linear=linear), numbers(2, 4, 3)
    found = made.inverse(v, exact(3, 2, 4)).log_determinant

    def inverted(step: Tensor, i: int, j: int) -> Tensor:
        changed = v.clone()
        changed[i, j] = step
        return made.inverse(changed, exact(3, 2, 4)).w[i, j]

    for i in range(2):
        for j in range(4):
            jacobian = torch.autograd.functional.jacobian(lambda step, i=i, j=j: inverted(step, i, j), v[i, j])
            assert found[i, j].item() == pytest.approx(torch.linalg.slogdet(jacobian).logabsdet.item(), abs=1e-3)


def test_random_signs_give_its_log_determinant_on_average() -> None:
    made, v = flow(), numbers(2, 4, 3)
    signs = numbers(4000, 2, 4, 3, seed=1).sign()
    with torch.no_grad():
        found, expected = (made.inverse(v, one).log_determinant for one in (signs, exact(3, 2, 4)))
    assert torch.allclose(found, expected, atol=0.05)


def test_its_kinetic_energy_is_the_mean_square_of_its_velocity() -> None:
    made = flow(linear=False)
    for parameter in made.velocity.parameters():
        torch.nn.init.zeros_(parameter)
    made.velocity.layers[-1].bias.data.fill_(0.5)
    assert torch.allclose(made.inverse(numbers(2, 4, 3), exact(3, 2, 4)).kinetic, torch.tensor(0.25))


def test_a_process_has_the_density_it_is_sampled_with() -> None:
    made = flow()
    assert made.process_logits is not None
    held, rho = made.of_process(made.process_logits.detach())
    apart = (torch.arange(4)[:, None] - torch.arange(4)).abs()
    covariances = [held[j] + (1 - held[j]) * rho[j] ** apart for j in range(3)]
    w = made.process(numbers(50_000, 5, 3)).detach()
    for j in range(3):
        assert torch.allclose(w[..., j].T.cov(), covariances[j], atol=0.03)
    few = w[:5]
    joint = [torch.distributions.MultivariateNormal(torch.zeros(4), one) for one in covariances]
    expected = sum(one.log_prob(few[..., j]) for j, one in enumerate(joint))
    assert torch.allclose(4 * made.log_density(few), expected, atol=1e-3)
    assert torch.allclose(made.log_density(few[:, :1]), -(few[:, 0].square() + math.log(2 * math.pi)).sum(dim=1) / 2)


def test_held_noise_is_the_same_at_every_step_and_judged_as_a_random_walk() -> None:
    made, z = flow(held=True), numbers(5, 5, 3)
    assert torch.equal(made.process(z), z[:, :1].repeat(1, 4, 1))
    walk = numbers(5, 4, 3, seed=1).cumsum(dim=1)
    steps = torch.cat([walk[:, :1], walk.diff(dim=1)], dim=1)
    expected = torch.distributions.Normal(0, 1).log_prob(steps).sum(dim=(1, 2)) / 4
    assert torch.allclose(made.log_density(walk), expected, atol=1e-5)


def test_before_training_a_linear_flow_has_the_covariances_of_the_latents() -> None:
    """At all lags, where it is of such a process that they are."""
    source = flow()
    source.solver = ODESolver("euler", 1.0)
    for parameter in source.velocity.parameters():
        torch.nn.init.zeros_(parameter)
    assert source.process_logits is not None
    source.process_logits.data.copy_(torch.tensor([[-3.0, -3.0, 1.0], [3.0, -3.0, -3.0]]))
    with torch.no_grad():
        v = source(source.process(numbers(40_000, 6, 3)))
    made = Flow(3, (8,), 5, source.solver, held=False, linear=True)
    made.initialise(v, 0.0)
    with torch.no_grad():
        again = made(made.process(numbers(40_000, 6, 3, seed=1)))
    assert torch.allclose(again.mean(dim=(0, 1)), v.mean(dim=(0, 1)), atol=0.05)
    for lag in (1, 2, 4):
        both = [torch.cat([one[:, 0], one[:, lag]], dim=1).T.cov() for one in (v, again)]
        assert torch.allclose(*both, atol=0.05 * both[0].abs().max().item())


def test_the_likelihood_of_positive_latents_is_that_of_their_logarithms(mixed: Cohort) -> None:
    made = untrained(baseline("gtgan", model__range="positive", model__linear=False), mixed)
    network, v = made.network, numbers(4, 1, made.columns.width)
    for parameter in network.flow.velocity.parameters():
        torch.nn.init.zeros_(parameter)
    found, _ = network.log_likelihood(v.exp(), noise_for(4))
    expected = torch.distributions.LogNormal(0, 1).log_prob(v.exp()).sum(dim=-1)[:, 0]
    assert torch.allclose(found, expected, rtol=1e-4)


# Training.


def test_moments_are_those_of_each_column_of_each_step_over_the_batch() -> None:
    real, made = numbers(64, 3, 2), 3 * numbers(64, 3, 2, seed=1) + 5
    means, stds = ([f(x.numpy(), axis=0) for x in (real, made)] for f in (np.mean, np.std))
    expected = np.abs(means[1] - means[0]).mean() + np.abs(stds[1] - stds[0]).mean()
    assert moments_apart(made, real).item() == pytest.approx(float(expected), rel=1e-3)
    assert moments_apart(real, real) == 0


@pytest.mark.parametrize(("embedding", "likelihood", "every"), [(0.5, 0.3, 2), (0.0, 0.0, 3), (0.4, 0.0, 1)])
def test_its_phases(embedding: float, likelihood: float, every: int, mixed: Cohort) -> None:
    model = baseline(
        "gtgan", training__steps=10, phases__embedding=embedding, phases__likelihood=likelihood, likelihood__every=every
    )
    objectives = model.objectives(Codec.fit(mixed, model.settings.codec))
    active = [[one.name for one in objectives if one.active(step)] for step in range(10)]
    alone, joint = round(10 * embedding), round(10 * (embedding + likelihood))
    assert active[:alone] == [["embedding"]] * alone
    assert active[alone:joint] == [["flow"]] * (joint - alone)
    for i, names in enumerate(active[joint:]):
        likely = ["likelihood"] if i % every == 0 else []
        assert names == ["discriminator", "recovery", *likely, "generator"]
    initialising = [one for one in objectives if one.initialise and any(one.active(step) for step in range(10))]
    assert len(initialising) == 1


@pytest.mark.parametrize("preset", ["gtgan", "gtgan-published"])
def test_neither_side_is_deaf(preset: str, mixed: Cohort) -> None:
    """Every parameter of flow and discriminator has a gradient; the generator's comes through the discriminator."""
    model = baseline("gtgan")
    small = resolve(preset, assignments={"model.hidden": 8, "training.batch": 16})
    made = untrained(type(model)(settings=small), mixed)
    for parameter in made.network.flow.velocity.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    for objective, loss in (("generator", "fooling"), ("discriminator", "entropy")):
        made.network.zero_grad()
        made.losses(objective)[loss].backward()
        deaf = [
            name
            for module in made.objectives[objective].modules
            for name, one in made.network.get_submodule(module).named_parameters()
            if one.grad is None or not one.grad.any()
        ]
        assert deaf == []
    pull = made.gradient("generator", "fooling")
    made.network.discriminator.output.weight.data.neg_()
    assert torch.nn.functional.cosine_similarity(pull, made.gradient("generator", "fooling"), dim=0) < -0.5


def test_both_sides_pull_in_opposite_directions(mixed: Cohort) -> None:
    """A discriminator trained alone is less easily fooled, and a flow trained alone fools it again."""
    made = untrained(baseline("gtgan", adversarial__moments=0.0), mixed)

    def fooling_after(objective: str, updates: int) -> float:
        (module,) = made.objectives[objective].modules
        optimizer = torch.optim.Adam(made.network.get_submodule(module).parameters(), lr=0.01)
        for _ in range(updates):
            made.network.zero_grad()
            made.losses(objective)["total"].backward()
            optimizer.step()
        return made.losses("generator")["fooling"].item()

    before = fooling_after("generator", 0)
    wary = fooling_after("discriminator", 40)
    assert wary > before + 0.2
    assert fooling_after("generator", 40) < wary - 0.2


def test_a_discriminator_that_is_right_enough_waits(mixed: Cohort) -> None:
    for enough, skip in ((0.01, 0), (10.0, 1)):
        assert untrained(baseline("gtgan", adversarial__enough=enough), mixed).losses("discriminator")["skip"] == skip


def test_likelihood_of_the_data_rises(mixed: Cohort) -> None:
    made = untrained(baseline("gtgan"), mixed)
    made.objectives["flow"].initialise(made.network, made.batch)
    before = made.losses("flow")["nll"].item()
    optimizer = torch.optim.Adam(made.network.flow.parameters(), lr=0.01)
    for _ in range(40):
        made.network.zero_grad()
        made.losses("flow")["total"].backward()
        optimizer.step()
    assert made.losses("flow")["nll"].item() < before - 0.5


def test_it_is_trained_in_bfloat16_too(mixed: Cohort) -> None:
    model = baseline("gtgan", training__steps=6, training__precision="bfloat16")
    assert np.isfinite(model.fit(mixed, seed=0).sample(3).label).all()


# What it is given.


def test_what_stands_in_place_of_a_missing_value_changes_nothing(mixed: Cohort) -> None:
    """But at the first and last step."""
    made = untrained(baseline("gtgan"), mixed)
    network = made.network
    assert isinstance(network, GTGANNetwork)
    x = network.columns.of(made.batch)
    observed = network.observed(x)
    assert observed is not None
    hidden = ~observed[..., : network.columns.continuous]
    hidden[:, [0, -1]] = False
    assert hidden.any()
    other = replace(made.batch, continuous=torch.where(hidden, 7.0, made.batch.continuous))
    assert isinstance(other, Batch)
    for before, after in zip(network.path(made.batch)[0], network.path(other)[0], strict=True):
        assert torch.equal(before, after)
    before, after = (made.objectives["recovery"].loss(network, one, noise_for(len(one))) for one in (made.batch, other))
    assert before["error"] == after["error"]


def test_it_fits_what_is_observed_alone(mixed: Cohort) -> None:
    made = untrained(baseline("gtgan", likelihood__noise=0.0), mixed)
    network = made.network
    path, observed = network.path(made.batch)
    with torch.no_grad():
        squares = (network.decode(network.encoder(path)) - path.values).square()
    assert made.losses("recovery")["error"].item() == pytest.approx(squares[observed].mean().item(), rel=1e-3)
    assert not torch.isclose(squares[observed].mean(), squares.mean(), rtol=1e-3)


def test_the_error_of_a_stay_is_of_what_was_observed_alone(mixed: Cohort) -> None:
    model = baseline("gtgan")
    made = untrained(model, mixed)
    network, continuous = made.network, made.columns.continuous
    path, observed = network.path(made.batch)
    with torch.no_grad():
        found = model.losses_of(network, made.batch, model._sized_for(mixed), noise_for(len(mixed)))
        squares = (network.decode(network.encoder(path)) - path.values).square()
    for stay in range(20):
        for step in range(6):
            seen = observed[stay, step, :continuous]
            expected = squares[stay, step, :continuous][seen].mean() if seen.any() else torch.zeros(())
            assert found["values"][stay, step].item() == pytest.approx(expected.item(), rel=1e-4)


def cohort_of(values: dict[str, np.ndarray], **classes: tuple[str, ...]) -> Cohort:
    features = tuple(
        Feature(name, "categorical" if name in classes else "continuous", classes=classes.get(name, ()))
        for name in values
    )
    steps = next(iter(values.values())).shape[1]
    return Cohort(Schema(features, steps), np.arange(len(next(iter(values.values())))), values, {})


def test_one_step_one_feature_and_classes_alone_are_enough() -> None:
    rng = np.random.default_rng(0)
    one = cohort_of({"a": rng.normal(size=(20, 1))})
    classes = cohort_of({"a": rng.integers(0, 3, (20, 4)).astype(float)}, a=("x", "y", "z"))
    for preset in ("gtgan", "gtgan-published"):
        small = resolve(preset, assignments={"model.hidden": 8, "training.batch": 16, "training.steps": 4})
        for cohort in (one, classes):
            made = type(baseline("gtgan"))(settings=small).fit(cohort, seed=0).sample(7)
            assert np.isfinite(made.series["a"]).all()


def test_a_column_without_a_value_is_refused_or_carried_through() -> None:
    values = {"a": np.random.default_rng(0).normal(size=(20, 4)), "b": np.full((20, 4), np.nan)}
    with pytest.raises(TimeDiffError, match="'b' has no value at all"):
        baseline("gtgan").plan(cohort_of(values))
    made = baseline("gtgan", training__steps=2, codec__allow_constant=True).fit(cohort_of(values), seed=0).sample(3)
    assert np.isnan(made.series["b"]).all()
    assert np.isfinite(made.series["a"]).all()


def test_without_torchdiffeq_it_is_said_what_to_install(mixed: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ode, "find_spec", lambda name: None)
    with pytest.raises(TimeDiffError, match=r"pip install 'timediff-icu\[baselines\]'"):
        baseline("gtgan").plan(mixed)
