"""The generators we are compared with: each learns, is resumed to the bit, and keeps no training stay."""

import math
import re
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from small_rivals import RIVALS, columns_of, rival
from timediff.codec import Codec, carried
from timediff.cohort import Cohort
from timediff.config import generator_of, presets, resolve
from timediff.errors import TimeDiffError
from timediff.generators.columns import Columns
from timediff.generators.first import Copula
from timediff.generators.nextstep import NextStep
from timediff.generators.registry import GENERATORS, chosen, generator
from timediff.generators.settings import ForcingModel
from timediff.generators.tforcing import Predictor
from timediff.generators.timegan import Supervisor
from timediff.metrics.fidelity import fidelity
from timediff.randomness import Noise
from timediff.sources.simulated import simulate

pytestmark = pytest.mark.usefixtures("one_thread")


def complete(stays: int, steps: int) -> Cohort:
    """A simulated ICU in which everything was measured."""
    cohort = simulate(stays, steps=steps, seed=0)
    filled = {name: carried(values) for name, values in cohort.series.items()}
    return replace(cohort, series={name: np.where(np.isnan(v), np.nanmean(v), v) for name, v in filled.items()})


def errors(real: Cohort, synthetic: Cohort) -> dict[str, float]:
    """How far marginals and autocorrelations are from the real ones."""
    found = fidelity(real, synthetic, bootstrap=0)
    distances = [score.value for score in found if score.what == "wasserstein" and score.feature]
    (lags,) = (score.value for score in found if score.what == "autocorrelation")
    return {"wasserstein": float(np.mean(distances)), "autocorrelation": lags}


UPDATES = {"timegan": 300, "rcgan": 1600, "crnngan": 800, "tforcing": 400, "pforcing": 150}
SHORT = {"model__hidden": 24, "training__batch": 64, "training__lr": 3e-3}
SHORTER = {  # presets are for ten times as many updates, and more
    "rcgan": {"training__decay": "none", "training__lr": 1e-3},
    "crnngan": {"training__decay": "none"},
}


@pytest.mark.parametrize("name", RIVALS)
def test_it_learns(name: str) -> None:
    """By a margin that other seeds have too: what players of a game learn depends on the last digit."""
    cohort = complete(500, steps=8)

    def drawn(updates: int) -> Cohort:
        model = rival(name, training__steps=updates, **(SHORT | SHORTER.get(name, {})))
        made: Cohort = model.fit(cohort, seed=0).sample(500, seed=1)
        return made

    before, after = errors(cohort, drawn(1)), errors(cohort, drawn(UPDATES[name]))
    assert after["wasserstein"] < 0.8 * before["wasserstein"], (before, after)
    assert after["autocorrelation"] < 0.8 * before["autocorrelation"], (before, after)


@pytest.mark.parametrize("name", RIVALS)
@pytest.mark.parametrize("at", [2, 7])
def test_stopped_and_resumed_it_is_the_same(name: str, at: int, mixed: Cohort, tmp_path: Path) -> None:
    """Of TimeGAN in its first phase and in its last."""
    short: dict[str, object] = {"training__steps": 10, "training__checkpoint_every": 1}
    if name == "timegan":
        short |= {"phases__embedding": 0.3, "phases__supervised": 0.3}
    whole = rival(name, **short).fit(mixed, seed=3)

    def stop(done: int, total: int, **values: float) -> None:
        if done == at + 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rival(name, **short).fit(mixed, seed=3, run=tmp_path / "run", progress=stop)
    said: list[str] = []
    resumed = rival(name, **short).fit(mixed, seed=3, run=tmp_path / "run", resume=True, say=said.append)
    assert said == [f"going on from update {at}"]
    assert resumed.identity == whole.identity
    assert rival(name, **short).fit(mixed, seed=4).identity != whole.identity


@pytest.mark.parametrize("name", RIVALS)
def test_gru_and_other_sizes(name: str, mixed: Cohort) -> None:
    model = rival(name, model__cell="gru", model__layers=1, model__hidden="unset", training__steps=1)
    columns = Columns(Codec.fit(mixed)).width
    assert model.plan(mixed)["width of each direction"] == 4 * columns
    assert len(model.fit(mixed, seed=0).sample(3)) == 3


@pytest.mark.parametrize("name", RIVALS)
def test_a_run_folder_holds_no_first_vector_unless_it_is_asked_to(name: str, mixed: Cohort, tmp_path: Path) -> None:
    def kept(**changes: object) -> tuple[int, list[str]]:
        said: list[str] = []
        run = tmp_path / f"run-{len(changes)}"
        model = rival(name, training__steps=2, **changes).fit(mixed, seed=0, run=run, say=said.append)
        content = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
        codec = Codec.fit(mixed, model.settings.codec)
        encoded = codec.encode(mixed)
        steps = Columns(codec).join(torch.from_numpy(encoded.continuous), torch.from_numpy(encoded.discrete)).numpy()
        by_stay, by_column = steps[:, 0], steps[:, 0].T.copy()
        return sum(one.tobytes() in content for vectors in (by_stay, by_column) for one in vectors), said

    assert kept() == (0, [])
    if name in ("tforcing", "pforcing"):
        count, said = kept(model__first="real")
        assert count == len(mixed)
        assert ["holds the first vector of every training stay" in line for line in said] == [True]


def test_real_first_vectors_are_those_of_training_stays(mixed: Cohort) -> None:
    made = rival("tforcing", training__steps=1, model__first="real").fit(mixed, seed=0).sample(40, seed=1)
    pulses = set(mixed.series["pulse"][:, 0][~np.isnan(mixed.series["pulse"][:, 0])])
    drawn = made.series["pulse"][:, 0]
    assert set(drawn[~np.isnan(drawn)]) <= pulses


def test_columns_and_channels_are_each_others_inverse(mixed: Cohort) -> None:
    encoded = Codec.fit(mixed).encode(mixed)
    columns, joined = columns_of(mixed)
    x, c = columns.split(joined)
    assert joined.shape[-1] == columns.width
    assert np.array_equal(x.numpy(), encoded.continuous)
    assert np.array_equal(c.numpy(), encoded.discrete)


@given(st.lists(st.floats(-3, 3, width=32), min_size=19, max_size=19))
def test_whatever_a_method_makes_is_rounded_to_valid_classes(mixed: Cohort, numbers: list[float]) -> None:
    """To the nearest: no other class of a channel has columns that are less far away."""
    columns, _ = columns_of(mixed)
    values = torch.tensor(numbers).repeat(3)[: columns.width]
    x, c = columns.split(values)
    for channel, k in enumerate(columns.classes):
        own = columns.of_channel(channel)
        away = []
        for other in range(k):
            valid = columns.join(x, c.index_fill(0, torch.tensor(channel), other))
            away.append(float((valid - values)[own].double().norm()))
        assert away[c[channel]] <= min(away) + 1e-6


def test_fitted_first_vectors_are_spread_and_correlated_like_the_real_ones() -> None:
    columns, joined = columns_of(simulate(3000, steps=2, seed=0))
    vectors = joined[:, 0]
    first = Copula(columns)
    first.fit(vectors)
    drawn = first.draw(Noise("sampling", [(0, 0)], [20_000], 20_000, torch.device("cpu")))
    real, made = vectors.double().numpy(), drawn.double().numpy()
    assert np.allclose(made.mean(axis=0), real.mean(axis=0), atol=0.03)
    assert np.allclose(made.std(axis=0), real.std(axis=0), atol=0.03)
    continuous = slice(0, columns.continuous)
    gap = np.corrcoef(made[:, continuous].T) - np.corrcoef(real[:, continuous].T)
    assert np.abs(gap).max() < 0.06
    assert set(np.unique(made[:, columns.continuous :])) == {-1.0, 1.0}


@given(stays=st.integers(10, 300), seed=st.integers(0, 99))
def test_no_knot_of_fitted_first_vectors_is_of_fewer_than_ten_stays(stays: int, seed: int, mixed: Cohort) -> None:
    """Where stays have the values 0, 1, 2 …, means of ten neighbours lie ten apart. So a knot is nobody's value."""
    columns, _ = columns_of(mixed)
    draws = torch.Generator().manual_seed(seed)
    first = Copula(columns)
    first.fit(torch.stack([torch.randperm(stays, generator=draws).float() for _ in range(columns.width)], dim=1))
    for knots in first.knots.double():
        assert knots[0] >= 4.5
        assert knots[-1] <= stays - 5.5
        assert bool((knots.diff() >= 10).all())


@pytest.mark.parametrize("name", RIVALS)
def test_one_stay_is_enough(name: str, mixed: Cohort) -> None:
    one = mixed.take(np.array([3]))
    model = rival(name, training__steps=2, training__batch=1, codec__allow_constant=True)
    assert len(model.fit(one, seed=0).sample(5)) == 5


def test_fitted_first_vectors_have_every_class_at_its_rate(mixed: Cohort) -> None:
    """Of two, three and five classes."""
    columns, joined = columns_of(mixed)
    first = Copula(columns)
    first.fit(joined[:, 0])
    _, real = columns.split(joined[:, 0])
    _, made = columns.split(first.draw(Noise("sampling", [(0, 0)], [20_000], 20_000, torch.device("cpu"))))
    for i, k in enumerate(columns.classes):
        rates = [(own[:, i].bincount(minlength=k) / len(own)).numpy() for own in (real, made)]
        assert np.allclose(*rates, atol=0.02)
    assert {2, 3, 5} <= set(columns.classes)


@pytest.mark.parametrize("name", ["timegan", "tforcing", "pforcing"])
def test_one_step_is_too_few_for_what_learns_the_next(name: str, mixed: Cohort) -> None:
    with pytest.raises(TimeDiffError, match=f"{name} learns how one step follows from another"):
        rival(name).plan(mixed.horizon(1))


@pytest.mark.parametrize("name", ["rcgan", "crnngan"])
def test_one_step_is_enough_for_the_others(name: str, mixed: Cohort) -> None:
    assert len(rival(name, training__steps=1).fit(mixed.horizon(1), seed=0).sample(3)) == 3


def test_a_run_of_another_generator_is_not_resumed(mixed: Cohort, tmp_path: Path) -> None:
    rival("tforcing", training__steps=1).fit(mixed, seed=0, run=tmp_path / "run")
    with pytest.raises(TimeDiffError, match="is a run of tforcing, not of pforcing"):
        rival("pforcing", training__steps=1).fit(mixed, seed=0, run=tmp_path / "run", resume=True)


def spoken(columns: int) -> NextStep:
    """A predictor whose numbers are all at random."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = NextStep(columns, ForcingModel(), 8)
        for weight in network.parameters():
            torch.nn.init.normal_(weight, std=0.5)
    return network


@settings(deadline=None)  # PyTorch loads its distributions when they are first used
@given(columns=st.integers(1, 6), stays=st.integers(1, 5), steps=st.integers(1, 4), seed=st.integers(0, 99))
def test_the_surprise_of_a_step_is_that_of_the_gaussian_it_is_drawn_from(
    columns: int, stays: int, steps: int, seed: int
) -> None:
    network, draws = spoken(columns).double(), torch.Generator().manual_seed(seed)
    x, after = (torch.randn(stays, steps, columns, dtype=torch.float64, generator=draws) for _ in range(2))
    with torch.no_grad():
        mean, spread, _, _ = network(x)
        mean, spread = mean.double(), spread.double()
        law = torch.distributions.MultivariateNormal(mean, scale_tril=spread[..., None] * network.factor())
        expected = -law.log_prob(after).mean() / columns
        assert network.surprise(mean, spread, after).item() == pytest.approx(expected.item(), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("across", [False, True])
def test_before_it_learns_a_predictor_is_the_linear_model_of_the_data(across: bool) -> None:
    """Columns that stay, half stay and do not stay, or follow another one; and two of them that move together."""
    torch.manual_seed(0)
    carry, steps = torch.tensor([[0.99, 0.0, 0.0], [0.7 * across, 0.2, 0.0], [0.0, 0.0, 0.0]]), [torch.randn(4000, 3)]
    factor = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.8, 0.6]])
    for _ in range(30):
        steps.append(steps[-1] @ carry.T + torch.tensor([0.2, 0.5, 1.0]) * (torch.randn(4000, 3) @ factor.T))
    network = NextStep(3, ForcingModel(), 8, across=across)
    network.begin(torch.stack(steps, dim=1))
    assert torch.allclose(network.carry, carry if across else carry.diagonal(), atol=0.02)
    assert torch.allclose(network.factor(), factor, atol=0.03)


def test_columns_that_are_equal_or_stand_still_have_a_beginning_too() -> None:
    x = torch.randn(50, 1, 1).expand(-1, 6, 3)
    network = NextStep(3, ForcingModel(), 8)
    network.begin(x)
    assert all(weight.isfinite().all() for weight in network.parameters())
    mean, spread, _, _ = network(x[:, :-1])
    assert network.surprise(mean, spread, x[:, 1:]).isfinite()


def test_a_latent_series_is_as_surprising_as_the_innovations_it_is_drawn_from() -> None:
    """−log p(h) is −log p(z), and the logarithm of how much larger the volume is."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        supervisor = Supervisor(3, resolve("timegan"), 8)
        for weight in supervisor.parameters():
            torch.nn.init.normal_(weight, std=0.3)
        z = torch.randn(20, 6, 3)
        with torch.no_grad():
            h = supervisor.series(z)
            surprise, error = supervisor.surprised(h), supervisor.unexpected(h)
            mean, spread, _, _ = supervisor(h[:, :-1])
    first, later = ((part.square().mean() + math.log(2 * math.pi)) / 2 for part in (z[:, 0], z[:, 1:]))
    later += spread.log().mean() + supervisor.factor.lower.diagonal().mean()
    first += supervisor.start_factor.lower.diagonal().mean()
    assert surprise.item() == pytest.approx((later + first / 5).item(), rel=1e-4)
    assert error.item() == pytest.approx((h[:, 1:] - mean).square().mean().item())


def test_a_supervisor_begins_with_the_first_steps_of_the_data() -> None:
    torch.manual_seed(0)
    factor = torch.tensor([[2.0, 0.0], [1.0, 0.5]])
    series = (torch.tensor([1.0, -3.0]) + torch.randn(20_000, 2) @ factor.T)[:, None].repeat(1, 2, 1)
    supervisor = Supervisor(2, resolve("timegan"), 8)
    supervisor.begin(series)
    assert torch.allclose(supervisor.start, torch.tensor([1.0, -3.0]), atol=0.05)
    assert torch.allclose(supervisor.start_factor(), factor, atol=0.05)


def test_drawn_steps_are_valid_and_pass_gradients_on(mixed: Cohort) -> None:
    columns, _ = columns_of(mixed)
    network = Predictor(columns, ForcingModel(), 8)
    steps = torch.randn(20, 5, columns.width, requires_grad=True)
    valid = network.valid(steps)
    x, c = columns.split(valid.detach())
    assert torch.equal(columns.join(x, c), valid.detach())
    assert valid.abs().max() <= 1
    valid.sum().backward()
    assert torch.equal(steps.grad, (steps.detach().abs() <= 1).float())  # type: ignore[arg-type]


def test_forced_steps_are_drawn_and_not_means(mixed: Cohort) -> None:
    """Two stays with the same first vector go different ways, and the same noise goes the same way."""
    columns, x = columns_of(mixed)
    network = Predictor(columns, ForcingModel(), 8)
    network.next.begin(x)
    first, z = x[:1, 0].expand(2, -1), torch.randn(2, 5, columns.width)
    with torch.no_grad():
        one, other = network.generate(first, z, length=6)
        again, _ = network.generate(first, z[:1].expand(2, -1, -1), length=6)
    assert torch.equal(one, again)
    assert torch.equal(one[0], other[0])
    assert not torch.allclose(one[1:], other[1:], atol=0.1)


def test_what_sampling_does_not_have_is_named(mixed: Cohort) -> None:
    model = rival("rcgan", training__steps=1).fit(mixed, seed=0)
    with pytest.raises(TimeDiffError, match="rcgan is not sampled with steps: what can be chosen is precision, batch"):
        model.sample(3, steps=50)


def test_every_generator_has_a_preset_of_its_own_that_names_its_source() -> None:
    for name, entry in GENERATORS.items():
        assert generator_of(entry.preset) == name
        assert chosen(name, None) == (name, entry.preset)
        assert chosen(None, entry.preset) == (name, entry.preset)
    assert chosen(None, None) == ("timediff", "fast")
    assert set(presets()) >= set(RIVALS)
    for name in RIVALS:
        heading = (resources.files("timediff") / "presets" / f"{name}.toml").read_text().partition("generator =")[0]
        assert re.search(r"^# .*(20\d\d|from)", heading, re.MULTILINE), name
        assert "To expect, discriminative score of Stocks and Energy: " in heading, name


def test_a_preset_of_another_generator_is_refused() -> None:
    with pytest.raises(TimeDiffError, match="'fast' is for the generator timediff, not for timegan"):
        chosen("timegan", "fast")
    with pytest.raises(TimeDiffError, match="another generator"):
        generator("timegan")("fast")


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("timegan", "phases.embedding", 0.9, "leave some for joint"),
        ("timegan", "phases.together", 0, "above 0"),
        ("timegan", "diffusion.steps", 5, "no setting diffusion;"),
        ("rcgan", "adversarial.rounds", 0, "adversarial.rounds is 0"),
        ("rcgan", "model.noise", 0, "model.noise is 0"),
        ("rcgan", "model.held", 1.5, "a share from 0 to 1"),
        ("timegan", "model.held", 0.5, "no setting model.held"),
        ("timegan", "adversarial.smooth", -1, "a weight of 0 or more"),
        ("crnngan", "training.validation", 0.1, "expected 0"),
        ("tforcing", "model.first", "training", "one of fitted, real"),
        ("rcgan", "codec.scale", "quantile", "lie in a range"),
        ("pforcing", "adversarial.lr", -1, "above 0"),
        ("pforcing", "adversarial.enough", 1.5, "a share from 0 to 1"),
        ("pforcing", "model.noise", 3, "no setting model.noise"),
        ("rcgan", "adversarial.smooth", -1, "a weight of 0 or more"),
    ],
)
def test_mistaken_settings_are_named(name: str, path: str, value: object, said: str) -> None:
    with pytest.raises(TimeDiffError, match=said):
        resolve(name, assignments={path: value})
