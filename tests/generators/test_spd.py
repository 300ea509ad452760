"""Stochastic process diffusion: the noise is the process, and the true denoiser gives back the law of the data."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from conftest import same
from helpers.denoisers import CPU, training_noise
from helpers.small_baselines import baseline, noise_for, untrained
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators.common.columns import Columns
from timediff.generators.spd.diffusion import SAMPLERS, ContinuousTime, DiffusionTime, DiscreteTime, levels_for
from timediff.generators.spd.network import SPD
from timediff.generators.spd.process import NoiseProcess
from timediff.generators.spd.settings import GaussianProcessSettings, OrnsteinUhlenbeckSettings
from timediff.runtime.randomness import sampling_noise

NAMES = ["dspd-gp", "dspd-ou", "cspd-gp", "cspd-ou"]
PROCESSES = {"gp": GaussianProcessSettings(), "ou": OrnsteinUhlenbeckSettings()}
TIMES: dict[str, DiffusionTime] = {"dspd": DiscreteTime(0.1, 20.0, 1000), "cspd": ContinuousTime(0.1, 20.0)}


def covariance(samples: Tensor) -> Tensor:
    """Of (N, L, 1), about zero, (L, L)."""
    flat = samples[..., 0].double()
    return flat.T @ flat / len(flat)


@pytest.mark.parametrize("steps", [1, 2, 6])
@pytest.mark.parametrize("length", [1, 6, 9])
def test_the_covariance_is_that_of_the_process(steps: int, length: int) -> None:
    """Times are 0 to 1 for the steps trained on, whatever the length that is asked for."""
    for i in range(length):
        for j in range(length):
            gap = (i - j) / max(1, steps - 1)
            jitter = 1e-4 * (i == j)
            gp = math.exp(-(gap**2) / 0.1**2) + jitter
            ou = math.exp(-0.5 * abs(gap)) + jitter
            assert PROCESSES["gp"].build(steps).covariance(length)[i, j] == pytest.approx(gp, abs=1e-12)
            assert PROCESSES["ou"].build(steps).covariance(length)[i, j] == pytest.approx(ou, abs=1e-12)


@pytest.mark.parametrize("name", PROCESSES)
@pytest.mark.parametrize("length", [1, 24, 40])
def test_its_factor_colors_white_noise_and_whitens_it_again(name: str, length: int) -> None:
    process: NoiseProcess = PROCESSES[name].build(24)
    factor = process.factor(length)
    color = factor.color
    assert torch.allclose((color @ color.T).double(), process.covariance(length), atol=1e-5)
    assert torch.allclose(color.triu(1), torch.zeros(()))  # what comes later does not change what came before
    z = torch.randn(200, length, 2)
    with torch.autocast("cpu", torch.bfloat16):  # in which the network alone is computed
        series = factor.colored(z)
        again = factor.whitened(series)
    assert torch.allclose(series, color @ z)
    assert torch.allclose(again, z, atol=2e-3)


def test_what_is_set_is_the_process_s() -> None:
    far = torch.tensor(0.5, dtype=torch.float64)
    wide, slow = GaussianProcessSettings(sigma=0.5).build(3), OrnsteinUhlenbeckSettings(theta=2.0).build(3)
    assert wide.covariance(2)[0, 1] == pytest.approx(math.exp(-1))
    assert slow.covariance(2)[0, 1] == pytest.approx(float((-2 * far).exp()))
    assert GaussianProcessSettings(jitter=0.5).build(3).covariance(2)[0, 0] == pytest.approx(1.5)


def test_both_forms_have_the_schedule_of_the_paper() -> None:
    """β of the 1,000 steps is 1e-4 to 0.02; of the SDE, 0.1 to 20."""
    discrete, continuous = TIMES["dspd"], TIMES["cspd"]
    assert isinstance(discrete, DiscreteTime)
    assert isinstance(continuous, ContinuousTime)
    beta = 1 - discrete.table[1:] / discrete.table[:-1]
    assert 1 - discrete.table[0] == pytest.approx(1e-4)
    assert beta[-1] == pytest.approx(0.02)
    assert torch.allclose(beta.diff(), beta.diff()[0], atol=1e-9)
    s = torch.linspace(0, 1, 10_001, dtype=torch.float64)
    integral = torch.trapezoid(0.1 + 19.9 * s, s)
    assert continuous.alpha_bar(s[-1]) == pytest.approx(float((-integral).exp()), rel=1e-6)


@pytest.mark.parametrize("form", TIMES)
def test_the_network_is_told_the_time_it_was_trained_at(form: str) -> None:
    time = TIMES[form]
    t, level = time.draw(training_noise(200))
    assert torch.allclose(time.at(level), t, atol=1e-2)
    assert (level[t.argsort()].diff() <= 0).all()
    assert 0 <= t.min() < 50
    assert 950 < t.max() <= 1000


@pytest.mark.parametrize("form", TIMES)
@pytest.mark.parametrize("calls", [1, 2, 7, 100])
def test_levels_go_from_the_latest_to_little_noise(form: str, calls: int) -> None:
    time = TIMES[form]
    uniform, spaced = (levels_for(time, sampler, calls) for sampler in ("ancestral", "multistep"))
    assert len(uniform) == calls
    assert len(spaced) <= calls
    for levels in (uniform, spaced):
        assert levels[0] == pytest.approx(float(time.uniform(100)[0]))
        assert (levels.diff() > 0).all()
    if calls == 100:
        assert spaced[-1] > uniform[-1]
        assert len(spaced) > 80


def network(form: str, process: str, **changes: Any) -> SPD:
    """Of one column and eight steps, not trained."""
    model = baseline(f"{form}-{process}", **changes)
    return SPD(1, 8, model.settings, 4)


@pytest.mark.parametrize("form", TIMES)
@pytest.mark.parametrize("process", PROCESSES)
def test_what_the_network_sees_has_the_forward_marginal(form: str, process: str) -> None:
    """x_t is N(√ᾱ x_0, (1 − ᾱ) Σ), at whichever time."""
    spd = network(form, process, model__innovations=False)
    x0, rows = torch.linspace(-1, 2, 8)[None, :, None].expand(40_000, -1, -1), 40_000
    level = torch.tensor([0.36], dtype=torch.float64)
    spd.time.draw = lambda noise: (torch.zeros(rows), level.expand(rows))  # type: ignore[method-assign]
    seen: list[Tensor] = []
    spd.denoiser.forward = lambda x, t: seen.append(x) or torch.zeros_like(x)  # type: ignore[method-assign,func-returns-value]
    spd.loss(x0, training_noise(rows))
    left = seen[0] - 0.6 * x0
    assert torch.allclose(left.mean(dim=0), torch.zeros(8, 1), atol=0.03)
    assert torch.allclose(covariance(left), 0.64 * PROCESSES[process].build(8).covariance(8), atol=0.02)


@pytest.mark.parametrize("prediction", ["whitened", "noise", "velocity"])
def test_what_the_network_should_predict_gives_the_data(prediction: str) -> None:
    spd = network("cspd", "gp", diffusion__prediction=prediction)
    spd.scale.uniform_(0.1, 3.0)
    factor = spd.process.factor(8)
    w0, z = torch.randn(2, 50, 8, 1)
    level = torch.rand(50, 1, 1) * 0.9 + 0.05
    a, s = level.sqrt(), (1 - level).sqrt()
    target = spd.target(w0, z, a, s, factor)
    assert torch.allclose(spd.predicted(target, a * w0 + s * z, a, s, factor), w0, atol=1e-2)


def test_velocity_is_what_a_known_scale_leaves() -> None:
    """Where whitened data are white noise of the scale, it is uncorrelated with them, of unit variance, at any time."""
    spd = network("cspd", "ou", diffusion__prediction="velocity", model__innovations=True)
    series = torch.randn(50_000, 8, 1) * torch.linspace(0.2, 3, 8)[:, None]
    factor = spd.process.factor(8)
    spd.fit_scale(factor.color @ series)
    assert torch.allclose(spd.scale[:, 0], torch.linspace(0.2, 3, 8), rtol=0.03)
    for level in (0.999, 0.5, 0.001):
        a, s = torch.tensor(level).sqrt(), torch.tensor(1 - level).sqrt()
        z = torch.randn_like(series)
        target, w = spd.target(series, z, a, s, factor), a * series + s * z
        assert torch.allclose(target.std(dim=0), torch.ones(8, 1), atol=0.03)
        assert torch.allclose((target * w).mean(dim=0) / w.std(dim=0), torch.zeros(8, 1), atol=0.03)
        innovations = spd.input(w, a, s, factor)[..., 1:]
        assert torch.allclose(innovations.std(dim=0), torch.ones(8, 1), atol=0.03)


WAYS = [
    ("dspd", "ancestral", None), ("dspd", "ancestral", 250), ("dspd", "multistep", 100),
    ("cspd", "sde", 400), ("cspd", "multistep", 100),
]  # fmt: skip


@pytest.mark.parametrize(("form", "sampler", "calls"), WAYS)
@pytest.mark.parametrize("process", PROCESSES)
def test_the_true_score_of_a_gaussian_law_gives_that_law(
    form: str, sampler: str, calls: int | None, process: str
) -> None:
    """x_0 ~ N(m, C): E[x_0 | x_t] in closed form, from the covariance of the process, without whitening."""
    spd, noise = network(form, process), PROCESSES[process].build(8)
    gap = torch.arange(8)[:, None] - torch.arange(8)
    wanted = (0.8 ** gap.abs() * 0.5 + 0.1 * (gap == 0)).double()
    mean = torch.linspace(-0.5, 0.5, 8, dtype=torch.float64)[:, None]
    sigma, factor = noise.covariance(8), noise.factor(8)

    def denoise(w: Tensor, level: Tensor) -> Tensor:
        x = (factor.color @ w).double()
        gain = level.sqrt() * wanted @ torch.linalg.inv(level * wanted + (1 - level) * sigma)
        return factor.whiten @ (mean + gain @ (x - level.sqrt() * mean)).float()

    draws = sampling_noise(0, 0, 8_000, CPU)
    levels = levels_for(spd.time, sampler, calls)
    x = factor.color @ SAMPLERS[sampler](denoise, draws.normal(8, 1), levels, draws)
    assert torch.allclose(x.mean(dim=0).double(), mean, atol=0.04)
    assert torch.allclose(covariance(x - mean), wanted, atol=0.04)


@pytest.mark.parametrize("name", NAMES)
def test_predicted_series_are_the_stays(name: str, mixed: Cohort, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the network always predicts one stay, that stay is sampled, and not its whitened form."""
    model = baseline(name, training__steps=1, sampling__steps=2).fit(mixed, seed=0)
    codec, stay = model.fitted.codec, mixed.take(np.zeros(3, np.int64))
    stay = codec.decode(codec.encode(stay))
    series = Columns(codec).of(codec.encode(stay))
    assert (model.fitted.network.scale != 1).all()
    monkeypatch.setattr(SPD, "denoise", lambda self, network, w, level, factor: factor.whiten @ series)
    made = model.sample(3, seed=1)
    for feature in ("pulse", "rhythm", "ventilated"):
        assert np.allclose(made.series[feature], stay.series[feature], equal_nan=True)


@pytest.mark.parametrize("name", NAMES)
def test_longer_and_shorter_series_than_trained_on(name: str, mixed: Cohort) -> None:
    model = baseline(name, training__steps=2, sampling__steps=3).fit(mixed, seed=0)
    for length in (1, 6, 15):
        made = model.sample(20, seed=1, length=length)
        assert made.series["pulse"].shape == (20, length)
        assert not np.isinf(made.series["pulse"]).any()


@pytest.mark.parametrize("name", NAMES)
def test_series_of_one_step(name: str, mixed: Cohort) -> None:
    model = baseline(name, training__steps=2, sampling__steps=3).fit(mixed.horizon(1), seed=0)
    assert len(model.sample(5, seed=1)) == 5
    assert model.sample(5, seed=1, length=3).schema.steps == 3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prediction", ["whitened", "noise", "velocity"])
def test_each_prediction_is_trained_and_sampled(name: str, prediction: str, mixed: Cohort) -> None:
    changes = {"diffusion__prediction": prediction, "model__innovations": prediction == "noise"}
    model = baseline(name, training__steps=2, sampling__steps=3, **changes).fit(mixed, seed=0)
    assert same(model.sample(20, seed=1), model.sample(20, seed=1))


@pytest.mark.parametrize("weighting", ["none", "variance"])
def test_the_loss_is_of_the_noise_weighted_by_its_variance_or_not(weighting: str, mixed: Cohort) -> None:
    """Of a network that predicts 0 it is E z² = 1, of which the weight leaves the mean of 1 − ᾱ(s)."""
    model = baseline("cspd-ou", diffusion__weighting=weighting, diffusion__prediction="whitened")
    found = untrained(model, mixed)
    width = found.columns.width
    found.network.denoiser.forward = lambda x, t: torch.zeros(*x.shape[:2], width)
    s = torch.linspace(0, 1, 1001, dtype=torch.float64)
    wanted = float((1 - found.network.time.alpha_bar(s)).mean()) if weighting == "variance" else 1.0
    assert float(found.losses("")["total"]) == pytest.approx(wanted, rel=0.08)


@pytest.mark.parametrize("form", TIMES)
def test_times_are_drawn_evenly_among_all(form: str) -> None:
    time, u = TIMES[form], training_noise(200).uniform()
    for drawn, given in zip(time.draw(training_noise(200)), time.fraction(u), strict=True):
        assert torch.equal(drawn, given)
    t, level = time.fraction(torch.tensor([0.0, 0.25, 0.5, 1 - 2**-24]))
    assert torch.allclose(t, torch.tensor([0.0, 250.0, 500.0, 999.5]), atol=0.6)
    assert (level.diff() < 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_the_mean_loss_of_stays_is_the_training_loss_at_each_of_24_times(name: str, mixed: Cohort) -> None:
    model = baseline(name)
    made = untrained(model, mixed)
    spd, stays, noise = made.network, len(mixed), noise_for(len(mixed))
    with torch.no_grad():
        losses = model.losses_of(spd, made.batch, model._sized_for(mixed), noise_for(stays))
        share = made.columns.continuous / made.columns.width
        assert losses["values"].shape == losses["classes"].shape == (stays, 24)
        found = share * losses["values"].mean(dim=0) + (1 - share) * losses["classes"].mean(dim=0)
        for k in range(24):
            u = torch.full((stays,), (k + 0.5) / 24)
            at = type(spd.time).fraction(spd.time, u)
            spd.time.draw = lambda _, at=at: at
            expected = spd.loss(made.columns.of(made.batch), noise)
            assert found[k].item() == pytest.approx(expected.item(), rel=1e-4)


def test_another_seed_is_another_noise(mixed: Cohort) -> None:
    model = baseline("cspd-ou", training__steps=1).fit(mixed, seed=0)
    one, again, other = (model.stay_losses(mixed, seed=seed)["values"] for seed in (1, 1, 2))
    assert np.array_equal(one, again)
    assert (one != other).all()


def test_more_network_calls_than_diffusion_steps_are_refused() -> None:
    with pytest.raises(TimeDiffError, match=r"sampling\.steps is 30; expected at most diffusion\.steps, 20"):
        baseline("dspd-ou", diffusion__steps=20, sampling__steps=30, diffusion__beta_end=5.0)


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("dspd-gp", "process__sigma", 0, "process.sigma is 0"),
        ("dspd-gp", "process__theta", 1, "no setting process.theta"),
        ("cspd-ou", "process__theta", -1, "process.theta is -1"),
        ("cspd-ou", "process__jitter", 0, "process.jitter is 0"),
        ("cspd-ou", "diffusion__steps", 10, "no setting diffusion.steps"),
        ("cspd-gp", "diffusion__beta_end", 0.01, "beta_end is 0.01"),
        ("dspd-gp", "diffusion__beta_end", 999.5, "less than diffusion.steps, 999"),
        ("cspd-gp", "sampling__sampler", "ancestral", "one of sde, multistep"),
        ("dspd-gp", "sampling__sampler", "sde", "one of ancestral, multistep"),
        ("cspd-gp", "sampling__steps", 0, "sampling.steps is 0"),
        ("cspd-gp", "diffusion__prediction", "score", "one of whitened, noise, velocity"),
    ],
)
def test_mistaken_settings_are_named(name: str, path: str, value: object, said: str) -> None:
    with pytest.raises(TimeDiffError, match=said):
        baseline(name, **({path: value} | ({"diffusion__steps": 999} if value == 999.5 else {})))
