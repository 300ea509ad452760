"""HALO: a distribution over visits of codes, computed in one pass and sampled code by code; and values as codes."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from torch import Tensor

from helpers.small_generators import HALO_SHORT
from timediff.data.batch import Batch, Channel, Layout
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort
from timediff.errors import TimeDiffError
from timediff.generators.halo.codes import VisitCodes, quantile_edges
from timediff.generators.halo.generator import HALO
from timediff.generators.halo.heads import HEADS, one_or_none
from timediff.generators.halo.network import HALONetwork
from timediff.generators.halo.settings import HALOModelSettings
from timediff.settings.resolve import resolve

# Static of 2 classes; of a visit 3 that may be missing, and 2.
TINY = Layout(
    (),
    (
        Channel("sex", "value", 2, static=True),
        Channel("rhythm", "value", 3),
        Channel("rhythm", "mask", 2),
        Channel("ventilated", "value", 2),
    ),
)
WIDE = Layout((Channel("pulse", "value"),), (*TINY.discrete, Channel("pulse", "mask", 2)))


def network(layout: Layout, codes: str, *, steps: int = 2, hidden: int = 8, bins: int = 5) -> HALONetwork:
    """Of random weights, large enough for all to depend on all."""
    torch.manual_seed(0)
    model = HALOModelSettings(hidden=hidden, layers=2, heads=2, bins=bins, codes=codes)  # type: ignore[arg-type]
    made = HALONetwork(layout, model, steps).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.copy_(0.4 * torch.randn(weight.shape))
    return made


def some_choices(made: HALONetwork, stays: int, steps: int) -> tuple[Tensor, Tensor]:
    """Any of those that the network knows."""
    static, temporal = (VisitCodes.choices(own) for own in (made.codes.static, made.codes.temporal))

    def drawn(choices: tuple[tuple[int, bool], ...], *shape: int) -> Tensor:
        return torch.stack([torch.randint(codes + optional, shape) for codes, optional in choices], dim=-1)

    return drawn(static, stays), drawn(temporal, stays, steps)


@pytest.mark.parametrize("codes", HEADS)
def test_the_probabilities_of_all_stays_sum_to_one(codes: str) -> None:
    made = network(TINY, codes)
    visit = list(itertools.product(range(4), range(2)))
    every = [(sex, *stay) for sex in range(2) for stay in itertools.product(visit, visit)]
    static = torch.tensor([[one[0]] for one in every])
    visits = torch.tensor([one[1:] for one in every])
    with torch.no_grad():
        of_static, of_visits = made.nll_of(static, visits)
    p = (-of_static.sum(1) - of_visits.sum((1, 2))).exp()
    assert len(p) == 128
    assert float(p.sum()) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("always", [False, True])
def test_codes_are_independent_of_which_the_first_counts(always: bool) -> None:
    """By enumeration of all that independent codes can be; where there is always one, given that there is."""
    logits = torch.tensor([0.3, -1.2, 0.8])
    p, expected = logits.sigmoid(), torch.zeros(4)
    for codes in itertools.product((0, 1), repeat=3):
        first = codes.index(1) if 1 in codes else 3
        expected[first] += float(torch.where(torch.tensor(codes) == 1, p, 1 - p).prod())
    if always:
        expected = torch.cat([expected[:3] / expected[:3].sum(), torch.zeros(1)])
    assert torch.allclose(one_or_none(logits, torch.tensor(always)).exp(), expected, atol=1e-6)


@pytest.mark.parametrize("codes", HEADS)
def test_stays_are_sampled_as_often_as_their_probability_says(codes: str) -> None:
    made, n = network(TINY, codes), 40_000
    rng = np.random.default_rng(0)

    def uniform(*shape: int) -> Tensor:
        return torch.from_numpy(rng.random((n, *shape), dtype=np.float32))

    with torch.inference_mode():
        static, visits = made.choices(uniform(1), uniform(2, 2), 2)
        of_static, of_visits = made.nll_of(static, visits)
    stays, index, counts = torch.cat([static, visits.flatten(1)], dim=1).unique(
        dim=0, return_inverse=True, return_counts=True
    )
    p = torch.zeros(len(stays)).scatter_(0, index, (-of_static.sum(1) - of_visits.sum((1, 2))).exp())
    assert float(((counts - n * p).abs() / (n * p * (1 - p)).sqrt().clamp(min=1)).max()) < 5
    assert float(p.sum()) > 0.99


@pytest.mark.parametrize("codes", HEADS)
def test_a_head_samples_by_the_probabilities_that_it_states(codes: str) -> None:
    """Also after a variable that has no code."""
    torch.manual_seed(0)
    head, state, used = HEADS[codes]([(3, True), (2, False), (4, True), (3, True)], 8), torch.randn(200, 8), []

    def choose(log_p: Tensor, variable: int) -> Tensor:
        c = torch.multinomial(log_p.exp(), 1)
        used.append(log_p.gather(-1, c)[:, 0])
        return c[:, 0]

    with torch.no_grad():
        for weight in head.parameters():
            weight.copy_(torch.randn(weight.shape))
        c = head.sample(state, choose)
        assert torch.allclose(torch.stack(used, -1), -head(state, c, head.one_hot(c)), atol=1e-3)
    assert [int(one) for one in c.amax(dim=0)] == [3, 1, 4, 3]


@pytest.mark.parametrize("codes", HEADS)
def test_a_visit_changes_nothing_before_it_and_all_after_it(codes: str) -> None:
    made = network(WIDE, codes, steps=5)
    static, visits = some_choices(made, 30, 5)
    for step, choice in itertools.product(range(5), range(visits.shape[2])):
        other = visits.clone()
        other[:, step, choice] = (other[:, step, choice] + 1) % 2
        with torch.no_grad():
            one, two = made.nll_of(static, visits), made.nll_of(static, other)
        changed = (one[1] != two[1]).any(dim=0)
        assert torch.equal(one[0], two[0])
        assert not changed[:step].any()
        assert not changed[step, :choice].any()
        assert changed[step, choice + 1 :].all()
        assert changed[step + 1 :].all()


@pytest.mark.parametrize("codes", HEADS)
def test_static_codes_come_before_all_visits(codes: str) -> None:
    made = network(WIDE, codes, steps=4)
    static, visits = some_choices(made, 3, 4)
    with torch.no_grad():
        one, two = made.nll_of(static, visits), made.nll_of(1 - static, visits)
    assert (one[1] != two[1]).all(dim=-1).all()


@pytest.mark.parametrize("codes", HEADS)
@pytest.mark.parametrize("layout", [TINY, WIDE, replace(WIDE, discrete=WIDE.discrete[1:])])
def test_with_kept_keys_and_values_the_same_is_sampled(codes: str, layout: Layout) -> None:
    """The choices at each step follow from the states of all steps before it, computed anew."""
    made, stays, length = network(layout, codes, steps=4), 40, 6
    static_classes = made.static_head.one_hot.classes
    of_static, of_visits = torch.rand(stays, len(static_classes)), torch.rand(stays, length, 3)
    with torch.inference_mode():
        static, visits = made.choices(of_static, of_visits, length)
        seen = [made.start.expand(stays, -1)]
        if static_classes:
            seen.append(made.static_head.one_hot(static) @ made.of_static)
        seen += list((made.visit_head.one_hot(visits) @ made.of_codes).unbind(1))
        for i in range(length):
            x = torch.stack([one + made.position(at) for at, one in enumerate(seen[: made.before + i])], dim=1)
            state = made.coarse(x)[:, -1]
            again = made.visit_head.sample(state, lambda log_p, k, i=i: _inverse(log_p, of_visits[:, i, k]))  # type: ignore[misc]
            assert torch.equal(again, visits[:, i])


def _inverse(log_p: Tensor, uniform: Tensor) -> Tensor:
    return (uniform[:, None] >= log_p.exp().cumsum(-1)[:, :-1]).sum(-1)


def test_how_many_are_computed_at_once_changes_nothing() -> None:
    made = network(WIDE, "softmax", steps=4)
    noise = torch.rand(50, 1), torch.rand(50, 6, 3), torch.rand(50, 6, 1)
    with torch.inference_mode():
        whole = made.generate(*noise, length=6)
        parts = [made.generate(*(one[i : i + 17] for one in noise), length=6) for i in range(0, 50, 17)]
    assert torch.allclose(torch.cat(parts), whole, atol=1e-6)


def test_positions_beyond_the_longest_trained_on_are_as_its_last() -> None:
    made = network(TINY, "softmax", steps=3)
    assert len(made.positions) == 4  # the start visit, the static one, and all visits but the last
    assert torch.equal(made.position(9), made.position(3))
    assert not torch.equal(made.position(2), made.position(3))


values = arrays(
    np.float32, st.integers(1, 300), elements=st.one_of(st.integers(0, 5).map(float), st.floats(-1, 1, width=32))
)


@settings(deadline=None)
@given(values, st.integers(2, 20), st.booleans())
def test_a_value_comes_back_within_its_bin(x: np.ndarray, bins: int, extremes: bool) -> None:
    layout = Layout.of(1, ())
    codes = VisitCodes(layout, bins)
    batch = Batch.of(torch.from_numpy(x)[:, None, None], torch.zeros(len(x), 1, 0, dtype=torch.int32))
    codes.fit(batch, extremes=extremes)
    edges, number = codes.edges[0], codes.bin_of(batch.continuous[..., 0], 0)
    assert (edges.diff() >= 0).all()
    for place in (0.0, 0.5, 1 - 2**-24):
        back = codes.decode(*codes.encode(batch), torch.full(batch.continuous.shape, place)).continuous[..., 0]
        assert (back >= edges[number]).all()
        assert (back <= edges[number + 1]).all()
    inside = batch.continuous[..., 0].clamp(edges[0], edges[-1])
    assert (edges[number] <= inside).all()
    assert (inside <= edges[number + 1]).all()


def test_bins_hold_equally_many_and_what_many_share_comes_back_as_it_is() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=6000), np.full(4000, 0.21)]).astype(np.float32)
    codes = VisitCodes(Layout.of(1, ()), 50)
    batch = Batch.of(torch.from_numpy(x)[:, None, None], torch.zeros(len(x), 1, 0, dtype=torch.int32))
    codes.fit(batch, extremes=True)
    counts = codes.bin_of(batch.continuous[..., 0], 0).flatten().bincount(minlength=50)
    assert ((counts > 180) & (counts < 220)).sum() >= 28
    back = codes.decode(*codes.encode(batch), torch.rand(len(x), 1, 1)).continuous.flatten()
    assert (back[6000:] == np.float32(0.21)).all()
    assert float((back - batch.continuous.flatten()).abs().median()) < 0.03


def test_bins_go_by_observed_values_alone(mixed: Cohort) -> None:
    """And not by what stands in place of those that are missing, which is 70 % of them."""
    codec = Codec.fit(mixed)
    codes, batch = VisitCodes(codec.layout, 20), codec.encode(mixed)
    codes.fit(batch, extremes=True)
    (lactate,) = (i for i, channel in enumerate(codec.layout.continuous) if channel.feature == "lactate")
    observed = batch.continuous[..., lactate][torch.from_numpy(~np.isnan(mixed.series["lactate"]))]
    assert codes.bin_of(observed, lactate).bincount(minlength=20).min() > 0


def test_without_extremes_no_edge_is_the_value_of_one() -> None:
    x = np.random.default_rng(0).normal(size=2000)
    assert np.isin([x.min(), x.max()], quantile_edges(x, 101, extremes=True)).all()
    assert not np.isin(quantile_edges(x, 101, extremes=False), x).any()
    assert len(set(quantile_edges(x[:5], 11, extremes=False))) == 1
    shared = np.repeat([0.0, 1.0, 2.0], 20)
    assert set(quantile_edges(shared, 13, extremes=False)) == {0.0, 1.0, 2.0}


def test_what_is_missing_has_no_code_and_comes_back_missing(mixed: Cohort) -> None:
    """In every kind of feature, temporal and static."""
    codec = Codec.fit(mixed)
    codes, batch = VisitCodes(codec.layout, 8), codec.encode(mixed)
    codes.fit(batch, extremes=True)
    static, visits = codes.encode(batch)
    back = codec.decode(codes.decode(static, visits, torch.rand(batch.continuous.shape)))
    for name in ("pulse", "rhythm", "lactate", "height"):
        assert np.array_equal(np.isnan(back.values(name)), np.isnan(mixed.values(name)))
    for name in ("rhythm", "ventilated", "unit", "sex", "died"):
        assert np.array_equal(back.values(name), mixed.values(name), equal_nan=True)
    classes = [variable.codes for variable in (*codes.static, *codes.temporal)]
    assert sorted(classes) == [2, 2, 2, 3, 5, 8, 8, 8]


def test_what_is_always_the_same_where_it_was_measured_is_a_code_or_none(mixed: Cohort) -> None:
    absent = np.isnan(mixed.series["lactate"])
    series = {**mixed.series, "lactate": np.where(absent, np.nan, 2.0), "pulse": np.full(absent.shape, np.nan)}
    constant = replace(mixed, series=series)
    codec = Codec.fit(constant, replace(resolve("halo").codec, allow_constant=True))
    codes, batch = VisitCodes(codec.layout, 4), codec.encode(constant)
    codes.fit(batch, extremes=True)
    back = codec.decode(codes.decode(*codes.encode(batch), torch.rand(batch.continuous.shape)))
    assert np.array_equal(back.series["lactate"], constant.series["lactate"], equal_nan=True)
    assert np.isnan(back.series["pulse"]).all()


def short(**changes: Any) -> HALO:
    given = {key.replace("__", "."): value for key, value in changes.items()}
    return HALO(settings=resolve("halo", assignments={**HALO_SHORT, **given}))


def only(cohort: Cohort, *names: str) -> Cohort:
    """With these features alone."""
    schema = replace(cohort.schema, features=tuple(f for f in cohort.schema.features if f.name in names))
    series = {name: own for name, own in cohort.series.items() if name in names}
    return Cohort(schema, cohort.stay_id, series, {name: own for name, own in cohort.static.items() if name in names})


@pytest.mark.parametrize(
    "names", [("pulse",), ("rhythm",), ("ventilated", "rhythm"), ("lactate", "died"), ("pulse", "height")]
)
@pytest.mark.parametrize("codes", HEADS)
def test_any_features_will_do(names: tuple[str, ...], codes: str, mixed: Cohort) -> None:
    cohort = only(mixed, *names)
    made = short(model__codes=codes).fit(cohort, seed=0).sample(20, seed=1, length=9)
    assert made.schema.features == cohort.schema.features
    for name in names:
        assert np.isnan(cohort.values(name)).any() or not np.isnan(made.values(name)).any()


def test_a_column_that_was_never_measured_is_carried_through(mixed: Cohort) -> None:
    cohort = replace(mixed, series={**mixed.series, "lactate": np.full(mixed.series["lactate"].shape, np.nan)})
    with pytest.raises(TimeDiffError, match="has no value at all"):
        short().plan(cohort)
    made = short(codec__allow_constant=True).fit(cohort, seed=0).sample(20, seed=1)
    assert np.isnan(made.series["lactate"]).all()


def test_a_sparse_feature_and_bounds_in_place_of_extremes(mixed: Cohort) -> None:
    cohort = only(mixed, "pulse", "rhythm")
    model = short(codec__scale="bounds", codec__sparse=["pulse"], training__steps=1)
    made = model.fit(cohort, seed=0).sample(50, seed=1)
    pulse = made.series["pulse"]
    assert 0 < np.isnan(pulse).mean() < 1
    assert np.nanmin(pulse) >= 20
    assert np.nanmax(pulse) <= 250


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("model.hidden", 0, "model.hidden is 0; expected at least 1"),
        ("model.heads", 5, "a multiple of model.heads, 5"),
        ("model.layers", 65, "expected at most 64"),
        ("model.dropout", 1.0, "up to but not including 1"),
        ("model.bins", 1, "model.bins is 1; expected 2 to 10,000"),
        ("model.bins", 10_001, "model.bins is 10001; expected 2 to 10,000"),
        ("model.codes", "categorical", "one of bernoulli, softmax"),
        ("model.cell", "gru", "no setting model.cell"),
        ("codec.scale", "quantile", "expected training or bounds"),
        ("training.lr", "unset", "training.lr is unset"),
        ("sampling.batch", 0, "expected at least 1"),
    ],
)
def test_mistaken_settings_are_named(path: str, value: object, said: str) -> None:
    with pytest.raises(TimeDiffError, match=said):
        resolve("halo", assignments={path: value})


def test_the_published_preset_is_as_published() -> None:
    settings = resolve("halo-published")
    model, training = settings.model, settings.training
    assert (model.hidden, model.layers, model.heads, model.dropout) == (1440, 12, 18, 0)
    assert (model.bins, model.codes) == (100, "bernoulli")
    assert (training.lr, training.batch, training.accumulate, training.betas) == (1e-4, 56, 1, (0.9, 0.999))
    assert (training.ema, training.warmup, training.decay) == (0, 0, "none")
